"""Layers that are wrong on purpose, each in one of the ways that layers are wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from cnncli.nn import Conv2D, Dense, Dropout, Layer, MaxPool2D, ReLU
from cnncli.nn.layers.base import Parameter


class DoubledWeight(Dense):
    """Forgets the 1/2 that it does not have."""

    def parameter_gradients(self, grad_output: Any) -> None:
        super().parameter_gradients(grad_output)
        self.parameters["weight"].grad *= 2


class OneWrongNumber(Dense):
    def parameter_gradients(self, grad_output: Any) -> None:
        super().parameter_gradients(grad_output)
        self.parameters["weight"].grad[17, 5] *= 1.5


class TransposedWeight(Dense):
    """Exchanges the axes of a square weight."""

    def parameter_gradients(self, grad_output: Any) -> None:
        super().parameter_gradients(grad_output)
        grad = self.parameters["weight"].grad
        grad[...] = grad.T.copy()


class Accumulating(Dense):
    def parameter_gradients(self, grad_output: Any) -> None:
        before = self.parameters["weight"].grad.copy()
        super().parameter_gradients(grad_output)
        self.parameters["weight"].grad[...] += before


class ForgottenBias(Dense):
    def parameter_gradients(self, grad_output: Any) -> None:
        super().parameter_gradients(grad_output)
        self.parameters["bias"].grad[...] = 0


class MovingWeight(Dense):
    """Takes the step of the optimizer itself."""

    def parameter_gradients(self, grad_output: Any) -> None:
        super().parameter_gradients(grad_output)
        self.parameters["weight"].value -= 1e-3


class WrongAxisBias(Conv2D):
    """Sums over the channels and keeps the rows, of which there are as many."""

    def parameter_gradients(self, grad_output: Any) -> None:
        super().parameter_gradients(grad_output)
        self.parameters["bias"].grad[...] = grad_output.sum(axis=(0, 2, 3))


class ExchangedSides(Conv2D):
    """Takes its square upstream gradient transposed: right if that is all ones."""

    def backward(self, grad_output: Any) -> Any:
        return super().backward(grad_output.swapaxes(1, 2).copy())


class LostBorder(Conv2D):
    def input_gradient(self, grad_output: Any) -> Any:
        grad_input = super().input_gradient(grad_output)
        grad_input[:, -1] = 0
        return grad_input


class WithoutGradient(Conv2D):
    def parameter_gradients(self, grad_output: Any) -> None:
        weight = self.parameters["weight"]
        weight.grad = np.zeros_like(weight.value)
        super().parameter_gradients(grad_output)
        weight.grad = None  # type: ignore[assignment]


class WrongShape(Conv2D):
    def input_gradient(self, grad_output: Any) -> Any:
        return super().input_gradient(grad_output)[:, :-1]


class StraightThrough(ReLU):
    def input_gradient(self, grad_output: Any) -> Any:
        return grad_output


class InPlace(ReLU):
    """Rectifies the array that belongs to the layer before."""

    def forward(self, x: Any, training: bool = False, rng: Any = None) -> Any:
        self.check_input(x)
        self._y = np.maximum(x, 0, out=x)
        return x


class UpstreamInPlace(ReLU):
    def input_gradient(self, grad_output: Any) -> Any:
        assert self._y is not None
        grad_output *= self._y > 0
        return grad_output


class OneBuffer(ReLU):
    """Writes the gradient over its own output."""

    def input_gradient(self, grad_output: Any) -> Any:
        assert self._y is not None
        return np.multiply(grad_output, self._y > 0, out=self._y)


class SharedBuffer(ReLU):
    """Hands out one array from backward, and the same from forward."""

    def input_gradient(self, grad_output: Any) -> Any:
        self._returned = super().input_gradient(grad_output)
        return self._returned

    def forward(self, x: Any, training: bool = False, rng: Any = None) -> Any:
        y = super().forward(x)
        if hasattr(self, "_returned"):
            self._returned[...] = y
        return y


class NotANumber(ReLU):
    def input_gradient(self, grad_output: Any) -> Any:
        return super().input_gradient(grad_output) / 0


class Noisy(ReLU):
    def __init__(self, input_shape: tuple[int, ...]) -> None:
        super().__init__(input_shape)
        self._noise = np.random.default_rng(0)

    def forward(self, x: Any, training: bool = False, rng: Any = None) -> Any:
        return super().forward(x) + self._noise.standard_normal(x.shape)


class SinglePrecision(ReLU):
    def input_gradient(self, grad_output: Any) -> Any:
        return super().input_gradient(grad_output).astype(np.float32)


class UnscaledDropout(Dropout):
    """Drops in backward what was dropped in forward, and forgets to scale the rest."""

    def input_gradient(self, grad_output: Any) -> Any:
        assert self._keep is not None
        return grad_output * (self._keep > 0)


class _Pool(MaxPool2D):
    """The plain loop over windows that a first attempt is."""

    overwrites = False
    counts_ties = False

    def forward(self, x: Any, training: bool = False, rng: Any = None) -> Any:
        self._x = x
        return super().forward(x)

    def input_gradient(self, grad_output: Any) -> Any:
        grad_input = np.zeros_like(self._x)
        (KH, KW), (SH, SW) = self.windows.kernel_size, self.windows.stride
        C, OH, OW, N = grad_output.shape
        for c, i, j, n in np.ndindex(C, OH, OW, N):
            rows, cols = slice(i * SH, i * SH + KH), slice(j * SW, j * SW + KW)
            window = self._x[c, rows, cols, n]
            won = window == window.max()
            if not self.counts_ties:
                won &= np.arange(won.size).reshape(won.shape) == window.argmax()
            part = grad_input[c, rows, cols, n]
            if self.overwrites:
                part[won] = grad_output[c, i, j, n]
            else:
                part += won * grad_output[c, i, j, n]
        return grad_input


class RightPool(_Pool):
    pass


class TiesCountedOften(_Pool):
    counts_ties = True


class OverlapsOverwritten(_Pool):
    overwrites = True


class BatchNorm(Layer):
    """Batch normalisation of features with running averages (Ioffe and Szegedy 2015, algorithm 1)."""

    forgets_mean = False

    def __init__(self, input_shape: tuple[int, ...]) -> None:
        super().__init__(input_shape, input_shape)
        self.parameters["gamma"] = Parameter(np.ones(input_shape))
        self.parameters["beta"] = Parameter(np.zeros(input_shape))
        self.buffers["mean"] = np.zeros(input_shape)

    def forward(self, x: Any, training: bool = False, rng: Any = None) -> Any:
        self.check_input(x)
        mean = x.mean(axis=-1) if training else self.buffers["mean"]
        if training:
            self.buffers["mean"] *= 0.9
            self.buffers["mean"] += 0.1 * mean
        self._deviation = np.sqrt(x.var(axis=-1) + 1e-5)[:, None]
        self._normal = (x - mean[:, None]) / self._deviation
        return self._normal * self.parameters["gamma"].value[:, None] + self.parameters["beta"].value[:, None]

    def parameter_gradients(self, grad_output: Any) -> None:
        self.parameters["gamma"].grad[...] = (grad_output * self._normal).sum(axis=-1)
        self.parameters["beta"].grad[...] = grad_output.sum(axis=-1)

    def input_gradient(self, grad_output: Any) -> Any:
        grad = grad_output * self.parameters["gamma"].value[:, None]
        along = (grad * self._normal).mean(axis=-1, keepdims=True) * self._normal
        mean = 0 if self.forgets_mean else grad.mean(axis=-1, keepdims=True)
        return (grad - mean - along) / self._deviation


class BatchNormWithoutMean(BatchNorm):
    forgets_mean = True


class BatchNormWithoutGamma(BatchNorm):
    """Right as long as gamma is what it is at the start."""

    def input_gradient(self, grad_output: Any) -> Any:
        return super().input_gradient(grad_output / self.parameters["gamma"].value[:, None])
