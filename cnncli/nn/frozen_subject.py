"""A layer or a network as a function that answers the same every time."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from cnncli.errors import ShapeError
from cnncli.nn.arrays import FloatArray


class Subject(Protocol):
    """What has a gradient to check: a layer, a network, or any object with these two methods.

    It may also have `parameters`, a dict of objects with `value` and `grad`, and `buffers`, a dict
    of arrays; `forward` may take `training` and `rng`.
    """

    @property
    def forward(self) -> Callable[..., FloatArray]: ...

    @property
    def backward(self) -> Callable[[FloatArray], FloatArray]: ...


class Trained(Protocol):
    """What stands in `parameters`, such as `cnncli.nn.Parameter`."""

    value: FloatArray
    grad: FloatArray


class FrozenSubject:
    """Runs a subject in training, with everything held that could differ from call to call.

    The generator starts from the same seed in every forward, so that dropout drops the same numbers;
    buffers are put back before it. Nothing here depends on the class of the subject.

    Parameters
    ----------
    subject : its parameters are turned into float64 where they are not
    seed : of the generator that forward gets, if it takes one

    Raises
    ------
    ShapeError : `parameters` holds something without `value` and `grad`
    """

    def __init__(self, subject: Subject, seed: int) -> None:
        self._subject = subject
        self._seed = seed
        self._arguments = inspect.signature(subject.forward).parameters
        self._buffers = {name: array.copy() for name, array in self._live_buffers().items()}
        self.name = type(subject).__name__
        self.parameters: dict[str, Trained] = dict(getattr(subject, "parameters", {}))
        for name, parameter in self.parameters.items():
            self._prepare(name, parameter)

    def forward(self, x: FloatArray) -> FloatArray:
        """Return what the subject's forward returns, as it is."""
        self.restore_buffers()
        extras: dict[str, Any] = {}
        if self._takes("training"):
            extras["training"] = True
        if self._takes("rng"):
            extras["rng"] = np.random.default_rng(self._seed)
        y: FloatArray = self._subject.forward(x, **extras)
        return y

    def backward(self, grad_output: FloatArray) -> FloatArray:
        """Return what the subject's backward returns, as it is."""
        return self._subject.backward(grad_output)

    def output(self, x: FloatArray) -> FloatArray:
        """Copy what forward gives for a copy of `x`.

        Raises
        ------
        ShapeError : it is no array, does not fit `output_shape`, or holds numbers that are not finite
        """
        y = self.forward(x.copy())
        if not isinstance(y, np.ndarray):
            raise ShapeError(f"{self.name}: forward returned {type(y).__name__}, expected a NumPy array")
        self._check_shape(y, x.shape[-1])
        if not np.isfinite(y).all():
            raise ShapeError(
                f"{self.name}: forward gives numbers that are not finite for inputs between -2 and 2, "
                "so there is no slope to compare with"
            )
        return np.array(y)

    def gradients(self, x: FloatArray, upstream: FloatArray) -> dict[str, FloatArray]:
        """Copy what one backward gives, by name of the array: "input" and those of the parameters."""
        self.forward(x.copy())
        self.clear_gradients()
        grad_input = np.array(self.backward(upstream.copy()))
        return {"input": grad_input, **self.parameter_gradients()}

    def parameter_gradients(self) -> dict[str, FloatArray]:
        """Copy the gradient of every parameter."""
        return {name: np.array(parameter.grad) for name, parameter in self.parameters.items()}

    def restore_buffers(self) -> None:
        """Put the buffers back to what they were at the start."""
        for name, array in self._live_buffers().items():
            array[...] = self._buffers[name]

    def clear_gradients(self) -> None:
        """Zero the gradients, so that a backward that adds to them starts from nothing."""
        for parameter in self.parameters.values():
            if isinstance(parameter.grad, np.ndarray):
                parameter.grad[...] = 0

    def _takes(self, name: str) -> bool:
        kinds = {argument.kind for argument in self._arguments.values()}
        return name in self._arguments or inspect.Parameter.VAR_KEYWORD in kinds

    def _live_buffers(self) -> Mapping[str, FloatArray]:
        buffers: Mapping[str, FloatArray] = getattr(self._subject, "buffers", {})
        return buffers

    def _prepare(self, name: str, parameter: Trained) -> None:
        if not isinstance(getattr(parameter, "value", None), np.ndarray) or not hasattr(parameter, "grad"):
            raise ShapeError(
                f"{self.name}: expected parameters[{name!r}] to have value and grad, as "
                f"cnncli.nn.Parameter does, got {type(parameter).__name__}"
            )
        if parameter.value.dtype != np.float64:
            parameter.value = parameter.value.astype(np.float64)
            parameter.grad = np.zeros_like(parameter.value)

    def _check_shape(self, y: FloatArray, n_images: int) -> None:
        output_shape = getattr(self._subject, "output_shape", None)
        if output_shape is not None and y.shape != (*output_shape, n_images):
            raise ShapeError(
                f"{self.name}: forward returned the shape {y.shape}, but output_shape {tuple(output_shape)} "
                f"and a batch of {n_images} make {(*output_shape, n_images)}"
            )


@contextmanager
def spread_parameters(parameters: Mapping[str, Trained], rng: np.random.Generator) -> Iterator[None]:
    """Move every parameter by about half its size, and put it back at the end.

    Initial values hide faults: a factor that is forgotten where it is 1, a bias where it is 0.
    """
    originals = {name: parameter.value.copy() for name, parameter in parameters.items()}
    try:
        for parameter in parameters.values():
            size = float(np.sqrt(np.mean(parameter.value**2))) if parameter.value.size else 0.0
            parameter.value[...] += 0.5 * (size or 0.2) * rng.standard_normal(parameter.value.shape)
        yield
    finally:
        for name, parameter in parameters.items():
            parameter.value[...] = originals[name]
