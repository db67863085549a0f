"""Fully connected layer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cnncli.errors import ShapeError
from cnncli.nn import Dense


@given(
    D=st.integers(1, 7),
    K=st.integers(1, 6),
    N=st.integers(1, 5),
    bias=st.booleans(),
    seed=st.integers(0, 999),
)
def test_matches_plain_loops(D: int, K: int, N: int, bias: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, weight, grad = rng.standard_normal((D, N)), rng.standard_normal((K, D)), rng.standard_normal((K, N))
    biases = rng.standard_normal(K) if bias else np.zeros(K)
    layer = Dense((D,), out_features=K, bias=bias, dtype=np.float64)
    layer.parameters["weight"].value[...] = weight
    if bias:
        layer.parameters["bias"].value[...] = biases
    y = layer.forward(x)
    grad_input = layer.backward(grad)
    for n in range(N):
        for k in range(K):
            assert y[k, n] == pytest.approx(
                sum(weight[k, d] * x[d, n] for d in range(D)) + biases[k], abs=1e-13
            )
        for d in range(D):
            assert grad_input[d, n] == pytest.approx(
                sum(weight[k, d] * grad[k, n] for k in range(K)), abs=1e-13
            )
    for k in range(K):
        for d in range(D):
            assert layer.parameters["weight"].grad[k, d] == pytest.approx(
                sum(grad[k, n] * x[d, n] for n in range(N)), abs=1e-13
            )
        if bias:
            assert layer.parameters["bias"].grad[k] == pytest.approx(sum(grad[k]), abs=1e-13)


@pytest.mark.parametrize(("D", "K", "N"), [(9216, 128, 20), (3, 5, 3000), (1, 1, 1), (2000, 3, 7)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_batches(D: int, K: int, N: int, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    x, grad, bias = rng.standard_normal((D, N)), rng.standard_normal((K, N)), rng.standard_normal(K)
    layer = Dense((D,), out_features=K, rng=rng, dtype=dtype)
    layer.parameters["bias"].value[...] = bias
    weight = layer.parameters["weight"].value.astype(np.float64)
    y = layer.forward(x.astype(dtype))
    grad_input = layer.backward(grad.astype(dtype))
    relative = 1e-13 if dtype is np.float64 else 1e-4
    for actual, right in (
        (y, np.einsum("kd,dn->kn", weight, x) + bias[:, None]),
        (grad_input, np.einsum("kd,kn->dn", weight, grad)),
        (layer.parameters["weight"].grad, np.einsum("kn,dn->kd", grad, x)),
        (layer.parameters["bias"].grad, grad.sum(axis=1)),
    ):
        np.testing.assert_allclose(actual, right, rtol=0, atol=relative * np.abs(right).max())


@pytest.mark.parametrize("shape", [(1, 28, 28), (4, 4)])
def test_images_need_a_flatten_layer(shape: tuple[int, ...]) -> None:
    with pytest.raises(
        ShapeError, match=r"Dense: expected .* \(D,\), got \(.*\); add a flatten layer before"
    ):
        Dense(shape, out_features=10)
