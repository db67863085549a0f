"""Check every gradient that backward gives against differences of forward.

A difference counts only where the slopes of its two halves agree, output by output: then no ReLU has
switched and no maximum has moved to another cell within the step. That is seen from forward alone, so a
wrong backward cannot hide behind it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from cnncli.errors import ShapeError
from cnncli.nn.arrays import FloatArray

# Rounding leaves a right gradient with an error of 1e-7 at most, mostly far less; one wrong number
# among n shows along a random direction as about 1 / sqrt(n), so 1e-5 finds it among billions.
TOLERANCE = 1e-5
N_IMAGES = 3
N_DIRECTIONS = 2
# inputs that are tried until one has a step without a kink
N_DRAWS = 8
# from long steps, which rounding disturbs least, to short ones, which cross the fewest kinks
STEPS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
# how far the slopes before and after a point may differ where there is no kink between
STRAIGHT = 1e-6
# what a few roundings in a sum amount to
ROUNDING = 32 * float(np.finfo(np.float64).eps)
# what rounding may leave of a gradient that cancels to 0, for outputs of size 1
LEFT_OVER = 1e-12
INPUT = "input"

Verdict = Literal["right", "wrong", "unclear"]


class Checkable(Protocol):
    """What has a gradient to check: a layer, a network, or any object with these two methods.

    It may also have `parameters`, a dict of objects with `value` and `grad`, `buffers`, a dict of arrays,
    and `output_shape`; `forward` may take `training` and `rng`.
    """

    @property
    def forward(self) -> Callable[..., FloatArray]: ...

    @property
    def backward(self) -> Callable[[FloatArray], FloatArray]: ...


@dataclass(frozen=True)
class Element:
    """One number of a gradient: what backward gives, and the slope that differences give."""

    index: tuple[int, ...]
    analytic: float
    numeric: float
    relative_error: float


@dataclass(frozen=True)
class ArrayCheck:
    """What was found for the gradient of one array.

    Attributes
    ----------
    name : "input" or a parameter's name
    shape : of the array, for the input with the batch axis last
    relative_error : the largest met, of whole directions and of single elements; None where the
        gradient cannot be compared, see `faults`, or every step met a kink
    elements : those compared one by one, the worst first
    faults : what else is wrong, in words
    """

    name: str
    shape: tuple[int, ...]
    relative_error: float | None
    elements: tuple[Element, ...]
    faults: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """Say "unclear" only where no step without a kink was found."""
        if self.faults or (self.relative_error is not None and self.relative_error > TOLERANCE):
            return "wrong"
        return "unclear" if self.relative_error is None else "right"


def check_gradients(
    subject: Checkable,
    input_shape: tuple[int, ...],
    rng: np.random.Generator,
    *,
    n_elements: int = 8,
    training: bool = True,
) -> tuple[ArrayCheck, ...]:
    """Compare every gradient that backward gives with differences of forward.

    For each array, whole random directions first: one of them feels every number. Then single
    elements: some drawn, and where a direction disagrees, a wrong one found by halving. Inputs have
    no ties and none near 0; the upstream gradient is random, as with ones a backward with height and
    width exchanged would pass; parameters are moved off their initial values and put back at the end.
    Ties and the contract of a layer are checked as well.

    Parameters
    ----------
    subject : its parameters are turned into float64 where they are not
    input_shape : without the batch axis
    n_elements : of each array, to compare one by one; all of an array that has no more
    training : what a forward that knows the difference is told

    Raises
    ------
    ShapeError : forward does not give an array of finite numbers in the shape that it promises, or
        `parameters` holds something without `value` and `grad`
    """
    run = _Run(subject, training, seed=int(rng.integers(2**32)))
    shape = (*input_shape, N_IMAGES)
    with np.errstate(all="ignore"), run.moved_parameters(rng):
        points = [_Point(run, spaced_numbers(shape, rng), rng)]
        faults = contract_violations(run, points[0])
        checks = [_check(name, run, points, faults[name], rng, n_elements) for name in points[0].arrays]
        if checks[0].verdict == "right":
            checks[0] = replace(checks[0], faults=_tie_faults(run, shape, rng))
        run.restore_buffers()
    return tuple(checks)


def spaced_numbers(shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
    """Draw numbers from 0.1 to 2 and their negatives, no two of the same size."""
    n = int(np.prod(shape))
    sizes = 0.1 + 1.9 * (rng.permutation(n) + 0.5) / n
    numbers: FloatArray = sizes * rng.choice([-1.0, 1.0], n)
    return numbers.reshape(shape)


class _Run:
    """Runs a subject with everything held that could differ from call to call.

    The generator starts from the same seed in every forward, so that dropout drops the same numbers;
    buffers are put back before it. Nothing here depends on the class of the subject.
    """

    def __init__(self, subject: Checkable, training: bool, seed: int) -> None:
        self._subject = subject
        self._training = training
        self._seed = seed
        arguments = inspect.signature(subject.forward).parameters
        takes_any = any(argument.kind is argument.VAR_KEYWORD for argument in arguments.values())
        self._takes = {name for name in ("training", "rng") if name in arguments or takes_any}
        self._buffers = {name: array.copy() for name, array in self._live_buffers.items()}
        self._name = type(subject).__name__
        self.parameters: dict[str, Any] = dict(getattr(subject, "parameters", {}))
        for name, parameter in self.parameters.items():
            self._make_float64(name, parameter)

    def forward(self, x: FloatArray) -> FloatArray:
        """Return what the subject's forward returns, as it is."""
        self.restore_buffers()
        extras = {"training": self._training, "rng": np.random.default_rng(self._seed)}
        y: FloatArray = self._subject.forward(x, **{name: extras[name] for name in self._takes})
        return y

    def backward(self, grad_output: FloatArray) -> FloatArray:
        """Return what the subject's backward returns, as it is."""
        return self._subject.backward(grad_output)

    def output(self, x: FloatArray) -> FloatArray:
        """Copy what forward gives for a copy of `x`, or raise `ShapeError` where that is of no use."""
        y = self.forward(x.copy())
        if not isinstance(y, np.ndarray):
            raise ShapeError(f"{self._name}: forward returned {type(y).__name__}, expected a NumPy array")
        output_shape = getattr(self._subject, "output_shape", None)
        if output_shape is not None and y.shape != (*output_shape, x.shape[-1]):
            raise ShapeError(
                f"{self._name}: forward returned the shape {y.shape}, but output_shape {tuple(output_shape)} "
                f"and a batch of {x.shape[-1]} make {(*output_shape, x.shape[-1])}"
            )
        if not np.isfinite(y).all():
            raise ShapeError(
                f"{self._name}: forward gives numbers that are not finite for inputs between -2 and 2, "
                "so there is no slope to compare with"
            )
        return np.array(y)

    def gradients(self, x: FloatArray, upstream: FloatArray) -> dict[str, FloatArray]:
        """Copy what one backward gives, by name of the array: "input" and those of the parameters."""
        self.forward(x.copy())
        self.clear_gradients()
        grad_input = np.array(self.backward(upstream.copy()))
        return {INPUT: grad_input, **self.parameter_gradients()}

    def parameter_gradients(self) -> dict[str, FloatArray]:
        """Copy the gradient of every parameter."""
        return {name: np.array(parameter.grad) for name, parameter in self.parameters.items()}

    def restore_buffers(self) -> None:
        """Put the buffers back to what they were at the start."""
        for name, array in self._live_buffers.items():
            array[...] = self._buffers[name]

    def clear_gradients(self) -> None:
        """Zero the gradients, so that a backward that adds to them starts from nothing."""
        for parameter in self.parameters.values():
            if isinstance(parameter.grad, np.ndarray):
                parameter.grad[...] = 0

    @contextmanager
    def moved_parameters(self, rng: np.random.Generator) -> Iterator[None]:
        """Move every parameter by about half its size, and put it back at the end.

        Initial values hide faults: a factor that is forgotten where it is 1, a bias where it is 0.
        """
        originals = {name: parameter.value.copy() for name, parameter in self.parameters.items()}
        try:
            for parameter in self.parameters.values():
                size = float(np.sqrt(np.mean(parameter.value**2))) if parameter.value.size else 0.0
                parameter.value[...] += 0.5 * (size or 0.2) * rng.standard_normal(parameter.value.shape)
            yield
        finally:
            for name, parameter in self.parameters.items():
                parameter.value[...] = originals[name]

    @property
    def _live_buffers(self) -> Mapping[str, FloatArray]:
        buffers: Mapping[str, FloatArray] = getattr(self._subject, "buffers", {})
        return buffers

    def _make_float64(self, name: str, parameter: Any) -> None:
        if not isinstance(getattr(parameter, "value", None), np.ndarray) or not hasattr(parameter, "grad"):
            raise ShapeError(
                f"{self._name}: expected parameters[{name!r}] to have value and grad, as "
                f"cnncli.nn.Parameter does, got {type(parameter).__name__}"
            )
        if parameter.value.dtype != np.float64:
            parameter.value = parameter.value.astype(np.float64)
            parameter.grad = np.zeros_like(parameter.value)


class _Slope(NamedTuple):
    """How ``<upstream, forward(x)>`` changes, and how far rounding may have moved that, or the gradient."""

    value: float
    noise: float


class _Comparison(NamedTuple):
    analytic: float
    numeric: float
    relative_error: float


class _Point:
    """An input, an upstream gradient, and what the subject makes of them."""

    def __init__(self, run: _Run, x: FloatArray, rng: np.random.Generator) -> None:
        self._run = run
        self.x = x
        self.y = run.output(x)
        self.upstream = rng.standard_normal(self.y.shape)
        self.gradients = run.gradients(x, self.upstream)
        self.arrays: dict[str, FloatArray] = {INPUT: x}
        self.arrays |= {name: parameter.value for name, parameter in run.parameters.items()}

    def compare(self, name: str, span: slice, direction: FloatArray) -> _Comparison | None:
        """Compare along a direction within a part of an array, or give None where kinks are in the way.

        The error is the difference of the two, divided by the largest of: the length of the gradient
        (which the slope along a random direction is expected to have), the slope, and the slope that
        rounding could make up.
        """
        gradient = self.gradients[name].reshape(-1)[span]
        analytic, length = float(gradient @ direction), _length(gradient)
        slope = self._slope(self.arrays[name], span, direction, length)
        if slope is None:
            return None
        largest = max(length, abs(slope.value), 10 * slope.noise / TOLERANCE, 1e-300)
        return _Comparison(analytic, slope.value, abs(slope.value - analytic) / largest)

    def compare_at_random(self, name: str, span: slice, rng: np.random.Generator) -> _Comparison | None:
        return self.compare(name, span, rng.standard_normal(span.stop - span.start))

    def _slope(self, array: FloatArray, span: slice, direction: FloatArray, scale: float) -> _Slope | None:
        """Return the slope along a direction, or None if every step meets a kink.

        `scale` is the size of the slopes to be told apart, such as the length of the gradient.
        """
        left_over = LEFT_OVER * _length(self.upstream * self.y)
        for step in STEPS:
            above = self._moved(array, span, step * direction)
            below = self._moved(array, span, -step * direction)
            # per output: what does not move cancels without rounding
            value = float(np.vdot(self.upstream, above - below)) / (2 * step)
            bend = _length(self.upstream * (above - 2 * self.y + below)) / step
            moving = (self.upstream * self.y)[above != below]
            noise = ROUNDING * _length(moving) / step + left_over
            if bend <= max(STRAIGHT * max(scale, abs(value)), noise):
                return _Slope(value, noise)
        return None

    def _moved(self, array: FloatArray, span: slice, by: FloatArray) -> FloatArray:
        flat: Any = array.reshape(-1) if array.flags.c_contiguous else array.flat
        original = flat[span].copy()
        flat[span] = original + by
        try:
            return np.array(self._run.forward(self.x.copy()))
        finally:
            flat[span] = original


def _check(
    name: str, run: _Run, points: list[_Point], faults: list[str], rng: np.random.Generator, n_elements: int
) -> ArrayCheck:
    """Check the gradient of one array, at the points that there are, then at new ones."""
    array, gradient = points[0].arrays[name], points[0].gradients[name]
    unusable = _unusable(array, gradient)
    if unusable:
        return ArrayCheck(name, array.shape, None, (), (*faults, unusable))
    error: float | None = None
    elements: list[Element] = []
    for draw in range(N_DRAWS):
        if draw == len(points):
            points.append(_Point(run, spaced_numbers(points[0].x.shape, rng), rng))
        error = _error_along_directions(points[draw], name, rng)
        if error is not None:
            elements = _elements(points[draw], name, rng, n_elements, search=error > TOLERANCE)
            error = max([error, *(element.relative_error for element in elements)])
            break
    if error is not None and error > TOLERANCE:
        faults = [*faults, *_factor_faults(elements)]
    return ArrayCheck(name, array.shape, error, tuple(elements), tuple(faults))


def _error_along_directions(point: _Point, name: str, rng: np.random.Generator) -> float | None:
    """Return the largest error along random directions of the whole array; see `_Point.compare`."""
    errors, size = [0.0], point.arrays[name].size
    for _ in range(N_DIRECTIONS if size else 0):
        found = point.compare_at_random(name, slice(0, size), rng)
        if found is None:
            return None
        errors.append(found.relative_error)
    return max(errors)


def _elements(
    point: _Point, name: str, rng: np.random.Generator, n_elements: int, *, search: bool
) -> list[Element]:
    """Compare some elements, the worst first; with `search` also one that is wrong."""
    array = point.arrays[name]
    places = set(map(int, rng.choice(array.size, min(n_elements, array.size), replace=False)))
    if search:
        places.add(_wrong_place(point, name, rng))
    elements = []
    for place in sorted(places):
        found = point.compare(name, slice(place, place + 1), np.ones(1))
        if found is not None:
            elements.append(Element(tuple(map(int, np.unravel_index(place, array.shape))), *found))
    return sorted(elements, key=lambda element: -element.relative_error)


def _wrong_place(point: _Point, name: str, rng: np.random.Generator) -> int:
    """Halve the array again and again, going on where gradient and slope differ most."""

    def gap(span: slice) -> float:
        found = point.compare_at_random(name, span, rng)
        return 0.0 if found is None else abs(found.numeric - found.analytic)

    start, stop = 0, point.arrays[name].size
    while stop - start > 1:
        middle = (start + stop) // 2
        first, second = gap(slice(start, middle)), gap(slice(middle, stop))
        start, stop = (start, middle) if first >= second else (middle, stop)
    return start


def _factor_faults(elements: Sequence[Element]) -> list[str]:
    """Say by what every slope must be multiplied to give the gradient, if there is one such number."""
    largest = max((abs(element.numeric) for element in elements), default=0.0)
    telling = [element for element in elements if abs(element.numeric) > 1e-3 * largest]
    factors = np.array([element.analytic / element.numeric for element in telling])
    if len(telling) < 2 or not np.allclose(factors, factors[0], rtol=1e-4, atol=1e-9):
        return []
    if abs(factors[0] - 1) < 1e-3:
        return []
    if factors[0] == 0:
        return ["it is 0 in every number compared"]
    return [f"it is {factors[0]:.6g} times the slope in every number compared"]


def _tie_faults(run: _Run, shape: tuple[int, ...], rng: np.random.Generator) -> tuple[str, ...]:
    """Move equal numbers together: there the slope is defined, and every share must add up to it.

    A max-pool that hands the gradient to each of its tied maxima is right everywhere else.
    """
    x = np.broadcast_to(spaced_numbers(shape[-1:], rng), shape).copy()
    if not np.isfinite(run.forward(x.copy())).all():
        return ()
    point = _Point(run, x, rng)
    if _unusable(x, point.gradients[INPUT]):
        return ()
    found = point.compare(INPUT, slice(0, x.size), np.ones(x.size))
    if found is None or found.relative_error <= TOLERANCE:
        return ()
    return (
        "where all numbers of an image are equal, and move together, its gradient adds up to "
        f"{found.analytic:.6g}, but the slope is {found.numeric:.6g}; a tie counts once",
    )


def contract_violations(run: _Run, point: _Point) -> dict[str, list[str]]:
    """Run two steps and see what they leave behind: nothing may change that belongs to others.

    Returns
    -------
    dict : what is violated, in words, by the name of the array that it is about
    """
    values = {name: parameter.value.copy() for name, parameter in run.parameters.items()}
    faults: dict[str, list[str]] = {INPUT: [], **{name: [] for name in values}}
    grad_input = _first_step(run, point, faults[INPUT])
    first = {INPUT: grad_input.copy(), **run.parameter_gradients()}
    # any other input; its forward must not reach into what backward returned
    run.forward(-point.x)
    if _differs(grad_input, first[INPUT]):
        faults[INPUT].append("forward writes over the array that backward returned")
    run.forward(point.x.copy())
    second = {INPUT: np.array(run.backward(point.upstream.copy())), **run.parameter_gradients()}
    for name, gradient in first.items():
        faults[name] += _repetition_faults(gradient, second[name])
    for name, parameter in run.parameters.items():
        if _differs(parameter.value, values[name]):
            faults[name].append("forward or backward changes the parameter")
    return faults


def _first_step(run: _Run, point: _Point, faults: list[str]) -> FloatArray:
    given, grad_output = point.x.copy(), point.upstream.copy()
    output = run.forward(given)
    if _differs(output, point.y):
        faults.append("forward gives other numbers the second time, for the same input and the same rng")
    if _differs(given, point.x):
        faults.append("forward changes its input in place")
    before = {"output": output.copy(), "given": given.copy()}
    run.clear_gradients()
    grad_input = np.asarray(run.backward(grad_output))
    if _differs(grad_output, point.upstream):
        faults.append("backward changes grad_output in place")
    if _differs(output, before["output"]):
        faults.append("backward writes over the array that forward returned")
    elif _differs(given, before["given"]):
        faults.append("backward changes the input of forward in place")
    dtype = point.x.dtype
    if grad_input.dtype.kind == "f" and {grad_input.dtype, output.dtype} != {dtype}:
        faults.append(f"{dtype} went in, but forward gave {output.dtype} and backward {grad_input.dtype}")
    return grad_input


def _repetition_faults(first: FloatArray, second: FloatArray) -> list[str]:
    if _is_close(second, first):
        return []
    if _is_close(second, 2 * first):
        return ["backward adds to the gradient that is there; it must overwrite it"]
    return ["backward gives other numbers the second time, for the same input and grad_output"]


def _unusable(array: FloatArray, gradient: FloatArray) -> str:
    if gradient.shape != array.shape:
        got = "None" if gradient.dtype == object else str(gradient.shape)
        return f"expected a gradient of shape {array.shape}, got {got}"
    if gradient.dtype.kind != "f":
        return f"expected a gradient of float64, got {gradient.dtype}"
    if not np.isfinite(gradient).all():
        return "the gradient holds numbers that are not finite"
    return ""


def _is_close(a: FloatArray, b: FloatArray) -> bool:
    if a.dtype.kind != "f" or a.shape != b.shape:
        return a.shape == b.shape  # no gradient at all; said elsewhere
    return bool(np.allclose(a, b, rtol=1e-9, atol=1e-12, equal_nan=True))


def _differs(a: FloatArray, b: FloatArray) -> bool:
    both_nan = (a != a) & (b != b)
    return a.shape != b.shape or not bool(((a == b) | both_nan).all())


def _length(array: FloatArray) -> float:
    return float(np.sqrt(np.vdot(array, array)))
