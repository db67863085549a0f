"""ReLU."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cnncli.nn import ReLU

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
