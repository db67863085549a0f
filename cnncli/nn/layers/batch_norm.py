"""Batch normalisation: every channel shifted and scaled to mean 0 and variance 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from cnncli.errors import ShapeError
from cnncli.nn.arrays import DType, FloatArray
from cnncli.nn.layers.base import Layer, Parameter, image_shape, positive_shape
from cnncli.nn.layout import row_sums
from cnncli.nn.options import Fraction, PositiveFloat

B = TypeVar("B", bound="BatchNorm")

# Channels are taken in blocks of about so many numbers, which stay in the cache from pass to pass.
_BLOCK_SIZE = 65536


@dataclass(frozen=True)
class BatchStatistics:
    """What a batch norm has seen of each channel.

    Attributes
    ----------
    count : numbers of one channel, N*H*W
    mean : ndarray of shape (C,)
    variance : ndarray of shape (C,), biased: the mean of the squared distances from `mean`
    """

    count: int
    mean: FloatArray
    variance: FloatArray

    def unbiased_variance(self) -> FloatArray:
        """Estimate the variance of what the numbers were drawn from; needs a count of at least 2."""
        estimate: FloatArray = self.variance * (self.count / (self.count - 1))
        return estimate


def combined(a: BatchStatistics, b: BatchStatistics) -> BatchStatistics:
    """Return the statistics of two sets of numbers together, float64.

    Exact but for rounding (Chan, Golub and LeVeque 1979, "Updating formulae and a pairwise algorithm
    for computing sample variances", eq. 2.1). Rounding depends on the order of the shards, so it
    must be theirs and not that in which they are done.
    """
    count = a.count + b.count
    if count == 0:
        return a
    share = b.count / count
    distance = np.subtract(b.mean, a.mean, dtype=np.float64)
    mean = a.mean + share * distance
    variance = (1 - share) * a.variance + share * b.variance + share * (1 - share) * distance**2
    return BatchStatistics(count, mean, variance)


class BatchNorm(Layer):
    """What batch norm of images and of features have in common: channels are the first axis.

    In training every channel is normalised by the mean and the biased variance of the batch at hand,
    which is a shard where a batch is cut into shards. A channel with a single number has the variance
    0, so it comes out as its bias, and hands back no gradient (PyTorch refuses it).

    Forward in training moves the running averages, as PyTorch's does:
    ``running = (1 - momentum) * running + momentum * batch``, with the unbiased variance. A replica only
    leaves its `statistics`: those of all shards together make one update, see `update_averages`.

    Attributes
    ----------
    parameters : weight and bias, the scale and shift after normalising, of shape (C,)
    buffers : running_mean and running_var, of shape (C,), what evaluation normalises by
    statistics : of the last forward in training; None before the first
    """

    statistics: BatchStatistics | None
    _kept: FloatArray
    _inverse_std: FloatArray
    _grad_sums: tuple[FloatArray, FloatArray]
    _was_training: bool

    def __init__(self, input_shape: tuple[int, ...], momentum: float, epsilon: float, dtype: DType) -> None:
        super().__init__(input_shape, input_shape)
        self.momentum = momentum
        self.epsilon = epsilon
        C = input_shape[0]
        self.parameters["weight"] = Parameter(np.ones(C, dtype=dtype))
        self.parameters["bias"] = Parameter(np.zeros(C, dtype=dtype))
        self.buffers["running_mean"] = np.zeros(C, dtype=dtype)
        self.buffers["running_var"] = np.ones(C, dtype=dtype)
        self._is_replica = False

    def forward(
        self, x: FloatArray, training: bool = False, rng: np.random.Generator | None = None
    ) -> FloatArray:
        """Normalise by the batch in training, by the running averages otherwise."""
        self.check_input(x)
        self._was_training = training
        y = self.scratch.array("output", x.shape, x.dtype)
        if not training:
            self._scale_by_averages(self._rows(x), self._rows(y))
            return y
        centred = self.scratch.array("centred", x.shape, x.dtype)
        self.statistics = self._normalize(self._rows(x), self._rows(centred), self._rows(y))
        if not self._is_replica:
            self.update_averages(self.statistics)
        return y

    def parameter_gradients(self, grad_output: FloatArray) -> None:
        grad = self._rows(grad_output)
        sums, products = np.empty_like(self._inverse_std), np.empty_like(self._inverse_std)
        for block in self._blocks(grad.shape[1]):
            sums[block] = row_sums(grad[block])
            products[block] = np.vecdot(grad[block], self._kept[block])
        if not self._was_training:
            products -= self.buffers["running_mean"] * sums
        self._grad_sums = sums, products
        self.parameters["bias"].grad[...] = sums
        np.multiply(products, self._inverse_std, out=self.parameters["weight"].grad)

    def input_gradient(self, grad_output: FloatArray) -> FloatArray:
        """Differentiate through mean and variance too (Ioffe and Szegedy 2015, section 3)."""
        grad_input = self.scratch.array("grad_input", grad_output.shape, grad_output.dtype)
        grad, result = self._rows(grad_output), self._rows(grad_input)
        scale = self.parameters["weight"].value * self._inverse_std
        if not self._was_training:
            np.multiply(grad, scale[:, None], out=result)
            return grad_input
        sums, products = self._grad_sums
        L = max(grad.shape[1], 1)
        shift, slope = sums / L, products * self._inverse_std**2 / L
        for block in self._blocks(grad.shape[1]):
            part = result[block]
            np.multiply(self._kept[block], slope[block, None], out=part)
            part += shift[block, None]
            np.subtract(grad[block], part, out=part)
            part *= scale[block, None]
        return grad_input

    def update_averages(self, statistics: BatchStatistics) -> None:
        """Move the running averages towards the statistics of a batch; those of no numbers change nothing.

        A single number says nothing of the variance, so it moves the mean alone. What overflows becomes
        infinite without a warning.
        """
        if statistics.count == 0:
            return
        self._move("running_mean", statistics.mean)
        if statistics.count > 1:
            self._move("running_var", statistics.unbiased_variance())

    def replica(self: B) -> B:
        """Make a layer that shares parameter values and running averages, which it never moves."""
        twin = super().replica()
        twin._is_replica = True
        return twin

    def _move(self, name: str, new: FloatArray) -> None:
        buffer = self.buffers[name]
        with np.errstate(over="ignore", invalid="ignore"):
            buffer[...] = (1 - self.momentum) * buffer.astype(np.float64) + self.momentum * new

    def _normalize(self, rows: FloatArray, centred: FloatArray, y: FloatArray) -> BatchStatistics:
        """Write ``rows - mean`` and the output; return the statistics of the rows (C, L)."""
        C, L = rows.shape
        mean, variance, inverse_std = np.empty((3, C), rows.dtype)
        weight, bias = (self.parameters[name].value for name in ("weight", "bias"))
        for block in self._blocks(L):
            part = centred[block]
            mean[block] = row_sums(rows[block]) / max(L, 1)
            np.subtract(rows[block], mean[block, None], out=part)
            # from the centred numbers: the mean of the squares less the squared mean would cancel
            variance[block] = np.vecdot(part, part) / max(L, 1)
            inverse_std[block] = 1 / np.sqrt(variance[block] + self.epsilon)
            np.multiply(part, (weight[block] * inverse_std[block])[:, None], out=y[block])
            y[block] += bias[block, None]
        self._kept, self._inverse_std = centred, inverse_std
        return BatchStatistics(L, mean, variance)

    def _scale_by_averages(self, rows: FloatArray, y: FloatArray) -> None:
        """Write the output of evaluation: one scale and one shift for each channel."""
        self._kept = rows
        self._inverse_std = 1 / np.sqrt(self.buffers["running_var"] + self.epsilon)
        scale = self.parameters["weight"].value * self._inverse_std
        shift = self.parameters["bias"].value - self.buffers["running_mean"] * scale
        for block in self._blocks(rows.shape[1]):
            np.multiply(rows[block], scale[block, None], out=y[block])
            y[block] += shift[block, None]

    def _rows(self, array: FloatArray) -> FloatArray:
        """View (C, ..., N) as (C, L): one row for each channel."""
        return array.reshape(self.input_shape[0], -1)

    def _blocks(self, L: int) -> Iterator[slice]:
        C, step = self.input_shape[0], max(_BLOCK_SIZE // max(L, 1), 1)
        return (slice(start, min(start + step, C)) for start in range(0, C, step))

    def reset(self) -> None:
        super().reset()
        self.statistics = None
        self._was_training = False
        self._kept = self._inverse_std = np.empty(0)
        self._grad_sums = self._kept, self._kept

    def _options(self) -> dict[str, object]:
        return {"momentum": self.momentum, "epsilon": self.epsilon}


class BatchNorm2D(BatchNorm):
    """Normalise each channel over batch, height and width: (C, H, W, N) -> (C, H, W, N).

    Batch normalisation (Ioffe and Szegedy 2015). See `BatchNorm` for training and evaluation.

    Parameters
    ----------
    input_shape : (C, H, W)
    momentum : share of the latest batch in the running averages, 0 to 1 (as in PyTorch; Keras names
        the share of all earlier ones)
    epsilon : added to the variance
    dtype : type of parameters and running averages
    """

    def __init__(
        self,
        input_shape: tuple[int, ...],
        *,
        momentum: Fraction = 0.1,
        epsilon: PositiveFloat = 1e-5,
        dtype: DType = np.float32,
    ) -> None:
        super().__init__(image_shape("BatchNorm2D", input_shape), momentum, epsilon, dtype)


class BatchNorm1D(BatchNorm):
    """Normalise each feature over the batch: (D, N) -> (D, N).

    Batch normalisation (Ioffe and Szegedy 2015). See `BatchNorm` for training and evaluation.

    Parameters
    ----------
    input_shape : (D,)
    momentum : share of the latest batch in the running averages, 0 to 1 (as in PyTorch; Keras names
        the share of all earlier ones)
    epsilon : added to the variance
    dtype : type of parameters and running averages
    """

    def __init__(
        self,
        input_shape: tuple[int, ...],
        *,
        momentum: Fraction = 0.1,
        epsilon: PositiveFloat = 1e-5,
        dtype: DType = np.float32,
    ) -> None:
        shape = positive_shape("BatchNorm1D", input_shape)
        if len(shape) != 1:
            raise ShapeError(
                f"BatchNorm1D: expected an input shape (D,), got {shape}; "
                "images take BatchNorm2D (batch_norm2d)"
            )
        super().__init__(shape, momentum, epsilon, dtype)
