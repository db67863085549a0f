"""What a layer promises besides the right numbers: nothing is changed that belongs to others."""

from __future__ import annotations

import numpy as np

from cnncli.nn.arrays import FloatArray
from cnncli.nn.frozen_subject import FrozenSubject

INPUT = "input"


def broken_promises(
    frozen: FrozenSubject, x: FloatArray, y: FloatArray, upstream: FloatArray
) -> dict[str, list[str]]:
    """Run two steps and see what they leave behind.

    Parameters
    ----------
    x, y : an input, and what forward has given for it
    upstream : gradient of the output

    Returns
    -------
    dict : the promises that are broken, in words, by the name of the array that they are about
    """
    values = {name: parameter.value.copy() for name, parameter in frozen.parameters.items()}
    faults: dict[str, list[str]] = {INPUT: [], **{name: [] for name in values}}
    grad_input = _first_step(frozen, x, y, upstream, faults[INPUT])
    first = {INPUT: grad_input.copy(), **frozen.parameter_gradients()}
    # any other input; its forward must not reach into what backward returned
    frozen.forward(-x)
    if _differs(grad_input, first[INPUT]):
        faults[INPUT].append("forward writes over the array that backward returned")
    frozen.forward(x.copy())
    second = {INPUT: np.array(frozen.backward(upstream.copy())), **frozen.parameter_gradients()}
    for name, gradient in first.items():
        faults[name] += _repetition_faults(gradient, second[name])
    for name, parameter in frozen.parameters.items():
        if _differs(parameter.value, values[name]):
            faults[name].append("forward or backward changes the parameter")
    return faults


def _first_step(
    frozen: FrozenSubject, x: FloatArray, y: FloatArray, upstream: FloatArray, faults: list[str]
) -> FloatArray:
    given, grad_output = x.copy(), upstream.copy()
    output = frozen.forward(given)
    if _differs(output, y):
        faults.append("forward gives other numbers the second time, for the same input and the same rng")
    if _differs(given, x):
        faults.append("forward changes its input in place")
    before = {"output": output.copy(), "given": given.copy()}
    frozen.clear_gradients()
    grad_input = np.asarray(frozen.backward(grad_output))
    if _differs(grad_output, upstream):
        faults.append("backward changes grad_output in place")
    if _differs(output, before["output"]):
        faults.append("backward writes over the array that forward returned")
    elif _differs(given, before["given"]):
        faults.append("backward changes the input of forward in place")
    if grad_input.dtype.kind == "f" and {grad_input.dtype, output.dtype} != {x.dtype}:
        faults.append(f"{x.dtype} went in, but forward gave {output.dtype} and backward {grad_input.dtype}")
    return grad_input


def _repetition_faults(first: FloatArray, second: FloatArray) -> list[str]:
    if _is_close(second, first):
        return []
    if _is_close(second, 2 * first):
        return ["backward adds to the gradient that is there; it must overwrite it"]
    return ["backward gives other numbers the second time, for the same input and grad_output"]


def _is_close(a: FloatArray, b: FloatArray) -> bool:
    if a.dtype.kind != "f" or a.shape != b.shape:
        return a.shape == b.shape  # no gradient at all; said elsewhere
    return bool(np.allclose(a, b, rtol=1e-9, atol=1e-12, equal_nan=True))


def _differs(a: FloatArray, b: FloatArray) -> bool:
    both_nan = (a != a) & (b != b)
    return a.shape != b.shape or not bool(((a == b) | both_nan).all())
