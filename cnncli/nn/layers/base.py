"""What every layer is: shapes, parameters, forward, backward, replica."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Any, TypeVar

import numpy as np

from cnncli.errors import ShapeError
from cnncli.nn.arrays import FLOAT_DTYPES, FloatArray
from cnncli.nn.layout import Scratch
from cnncli.nn.options import checked

L = TypeVar("L", bound="Layer")


class Parameter:
    """A trained array and the gradient of the loss with respect to it.

    `value` is written in place and never rebound, so that replicas can share it. `grad` has the
    same shape; backward overwrites it.
    """

    __slots__ = ("grad", "value")

    def __init__(self, value: FloatArray) -> None:
        # row-major: optimizers read and write values and gradients in flat pieces
        self.value = np.asarray(value, order="C")
        self.grad = np.zeros_like(self.value)

    def replica(self) -> Parameter:
        """Share the value, own a gradient."""
        return Parameter(self.value)

    def __repr__(self) -> str:
        return f"Parameter(shape={self.value.shape}, dtype={self.value.dtype})"


class Layer(ABC):
    """A function of one array with a backward pass.

    Subclasses set `input_shape` and `output_shape` (both without the batch axis) in their
    constructor, put what is trained into `parameters`, and implement `forward` and
    `input_gradient`; with parameters also `parameter_gradients`. Backward belongs to the last
    forward. An array that forward or backward returns is valid until the same method of the layer
    is called again.

    Attributes
    ----------
    parameters : what is trained
    buffers : state that is saved but not trained, e.g. running averages
    scratch : the arrays that forward and backward work in
    """

    _forward_batch: tuple[int, np.dtype[Any]] | None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            setattr(cls, "__init__", checked(vars(cls)["__init__"]))  # noqa: B010

    def __init__(self, input_shape: tuple[int, ...], output_shape: tuple[int, ...]) -> None:
        self.input_shape = input_shape
        self.output_shape = output_shape
        self.parameters: dict[str, Parameter] = {}
        self.buffers: dict[str, FloatArray] = {}
        self.reset()

    @property
    def macs(self) -> int:
        """Multiply-adds of forward for one image: those of its matrix product, so 0 for most layers."""
        return 0

    @abstractmethod
    def forward(
        self, x: FloatArray, training: bool = False, rng: np.random.Generator | None = None
    ) -> FloatArray:
        """Map (*input_shape, N) to (*output_shape, N).

        Raises
        ------
        ShapeError : `x` has another shape, rank or dtype
        """

    def backward(self, grad_output: FloatArray) -> FloatArray:
        """Write the gradient of every parameter and return that of the input.

        Parameters
        ----------
        grad_output : ndarray of shape (*output_shape, N), gradient of the loss with respect to what
            the last forward returned

        Raises
        ------
        ShapeError : `grad_output` does not fit the last forward, or there was none
        """
        self.check_grad_output(grad_output)
        self.parameter_gradients(grad_output)
        return self.input_gradient(grad_output)

    def parameter_gradients(self, grad_output: FloatArray) -> None:
        """Overwrite ``Parameter.grad`` of every parameter; layers without parameters do nothing."""
        return

    @abstractmethod
    def input_gradient(self, grad_output: FloatArray) -> FloatArray:
        """Return the gradient with respect to the input, of shape (*input_shape, N)."""

    def replica(self: L) -> L:
        """Make a layer that shares the parameter values and owns its gradients and scratch."""
        twin = copy.copy(self)
        twin.parameters = {name: parameter.replica() for name, parameter in self.parameters.items()}
        twin.reset()
        return twin

    def check_input(self, x: FloatArray) -> None:
        """Raise `ShapeError` unless `x` has the shape and dtype that this layer takes."""
        if not isinstance(x, np.ndarray):
            raise ShapeError(f"{self}: expected a NumPy array, got {type(x).__name__}")
        if x.ndim != len(self.input_shape) + 1 or x.shape[:-1] != self.input_shape:
            expected = ", ".join([*map(str, self.input_shape), "N"])
            raise ShapeError(f"{self}: expected an input of shape ({expected}), got {x.shape}")
        self._check_dtype("an input", x)
        self._forward_batch = (x.shape[-1], x.dtype)

    def check_grad_output(self, grad_output: FloatArray) -> None:
        """Raise `ShapeError` unless `grad_output` fits the last forward."""
        if self._forward_batch is None:
            raise ShapeError(f"{self}: backward needs a forward before it")
        if not isinstance(grad_output, np.ndarray):
            raise ShapeError(f"{self}: expected a NumPy array, got {type(grad_output).__name__}")
        N, dtype = self._forward_batch
        expected = (*self.output_shape, N)
        if grad_output.shape != expected:
            raise ShapeError(f"{self}: expected a grad_output of shape {expected}, got {grad_output.shape}")
        if grad_output.dtype != dtype:
            raise ShapeError(
                f"{self}: expected a grad_output of {dtype} as the input, got {grad_output.dtype}"
            )

    def _check_dtype(self, what: str, x: FloatArray) -> None:
        for parameter in self.parameters.values():
            if x.dtype != parameter.value.dtype:
                raise ShapeError(
                    f"{self}: expected {what} of {parameter.value.dtype} as the parameters, got {x.dtype}"
                )
            return
        if x.dtype not in FLOAT_DTYPES:
            raise ShapeError(f"{self}: expected {what} of float32 or float64, got {x.dtype}")

    def reset(self) -> None:
        """Forget the last forward and own new scratch memory."""
        self.scratch = Scratch()
        self._forward_batch = None

    def _options(self) -> dict[str, object]:
        """Give the options to show in the repr."""
        return {}

    def __repr__(self) -> str:
        parts = [str(self.input_shape), *(f"{name}={value!r}" for name, value in self._options().items())]
        return f"{type(self).__name__}({', '.join(parts)})"


def image_shape(layer: str, shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Return a shape as (C, H, W), or raise `ShapeError`."""
    checked = positive_shape(layer, shape)
    if len(checked) != 3:
        raise ShapeError(f"{layer}: expected an input shape (C, H, W), got {checked}")
    return checked[0], checked[1], checked[2]


def positive_shape(layer: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape as a tuple of positive ints, or raise `ShapeError`."""
    try:
        checked = tuple(size.__index__() for size in shape)
    except (TypeError, AttributeError):
        raise ShapeError(f"{layer}: expected an input shape of integers, got {shape!r}") from None
    if not checked or min(checked) < 1:
        raise ShapeError(f"{layer}: expected an input shape of sizes of at least 1, got {checked}")
    return checked
