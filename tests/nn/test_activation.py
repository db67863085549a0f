"""ReLU, sigmoid and tanh."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cnncli.nn import ReLU, Sigmoid, Tanh

NAN, INF = math.nan, math.inf


@given(
    x=hnp.arrays(
        np.float64, (3, 4), elements=st.floats(-3, 3) | st.sampled_from([0.0, -0.0, 5e-324, -5e-324])
    ),
    grad=hnp.arrays(np.float64, (3, 4), elements=st.floats(-3, 3)),
)
def test_keeps_what_is_above_zero(x: np.ndarray, grad: np.ndarray) -> None:
    layer = ReLU((3,))
    y = layer.forward(x)
    grad_input = layer.backward(grad)
    for place in np.ndindex(x.shape):
        assert y[place] == (x[place] if x[place] > 0 else 0)
        assert grad_input[place] == (grad[place] if x[place] > 0 else 0)


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_derivative_at_zero_is_zero(zero: float) -> None:
    layer = ReLU((1,))
    assert layer.forward(np.array([[zero]])).item() == 0
    assert layer.backward(np.array([[3.0]])).item() == 0


def test_special_values() -> None:
    layer = ReLU((4,))
    y = layer.forward(np.array([[NAN], [INF], [-INF], [1.0]]))
    np.testing.assert_array_equal(y, [[NAN], [INF], [0], [1]])
    assert layer.backward(np.full((4, 1), 2.0))[1:].ravel().tolist() == [2, 0, 2]


@given(x=st.floats(-700, 700), grad=st.floats(-3, 3))
def test_sigmoid_and_tanh_of_any_number(x: float, grad: float) -> None:
    sigmoid, tanh = Sigmoid((1,)), Tanh((1,))
    y = 1 / (1 + math.exp(-x))
    assert sigmoid.forward(np.array([[x]])).item() == pytest.approx(y, rel=1e-14)
    assert sigmoid.backward(np.array([[grad]])).item() == pytest.approx(grad * y * (1 - y), abs=1e-15)
    y = math.tanh(x)
    assert tanh.forward(np.array([[x]])).item() == pytest.approx(y, rel=1e-14)
    assert tanh.backward(np.array([[grad]])).item() == pytest.approx(grad * (1 - y * y), abs=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_numbers_do_not_overflow(dtype: type) -> None:
    """Warnings are errors here."""
    x: Any = np.array([[-INF], [-1000], [-90], [0], [90], [1000], [INF], [NAN]], dtype)
    sigmoid, tanh = Sigmoid((8,)), Tanh((8,))
    y = sigmoid.forward(x).ravel()
    np.testing.assert_allclose(y, [0, 0, 0, 0.5, 1, 1, 1, NAN], rtol=0, atol=1e-37)
    grad_input = sigmoid.backward(np.ones((8, 1), dtype)).ravel()
    np.testing.assert_allclose(grad_input, [0, 0, 0, 0.25, 0, 0, 0, NAN], rtol=0, atol=1e-37)
    np.testing.assert_array_equal(tanh.forward(x).ravel(), [-1, -1, -1, 0, 1, 1, 1, NAN])
    np.testing.assert_array_equal(tanh.backward(np.ones((8, 1), dtype)).ravel(), [0, 0, 0, 1, 0, 0, 0, NAN])
