"""Dropout: what is dropped, how the rest is scaled, and which randomness it uses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cnncli.errors import OptionError
from cnncli.nn import Dropout

# drop probabilities are realised to the nearest 1 / 65536
RESOLUTION = 1 / 65536


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("drop_probability", [0.05, 0.25, 0.5, 0.9, 0.99])
def test_probability_and_scale(drop_probability: float) -> None:
    n = 1_000_000
    y = Dropout((1000,), drop_probability=drop_probability).forward(
        np.ones((1000, n // 1000)), training=True, rng=generator()
    )
    kept = y[y != 0]
    assert len(np.unique(kept)) == 1
    assert kept[0] == pytest.approx(1 / (1 - drop_probability), rel=RESOLUTION / (1 - drop_probability))
    deviation = math.sqrt(drop_probability * (1 - drop_probability) / n)
    assert abs(len(kept) / n - (1 - drop_probability)) < 4 * deviation + RESOLUTION
    assert abs(y.mean() - 1) < 4 * deviation / (1 - drop_probability) + RESOLUTION


@pytest.mark.parametrize("shape", [(31, 17), (64, 64), (1, 9, 9, 50)])
def test_neighbours_are_dropped_independently(shape: tuple[int, ...]) -> None:
    layer = Dropout(shape[:-1], drop_probability=0.5)
    rng, n_draws = generator(), 200
    kept = np.array([layer.forward(np.ones(shape), training=True, rng=rng) > 0 for _ in range(n_draws)])
    deviation = 0.5 / math.sqrt(n_draws)
    assert abs(kept.mean(axis=0) - 0.5).max() < 6 * deviation
    flat = kept.reshape(n_draws, -1)
    for distance in (1, 2, 3, 4, shape[-1]):
        equal = (flat[:, distance:] == flat[:, :-distance]).mean()
        assert abs(equal - 0.5) < 5 * 0.5 / math.sqrt(flat[:, distance:].size)
    # one draw says nothing about the next
    assert abs((flat[1:] == flat[:-1]).mean() - 0.5) < 5 * 0.5 / math.sqrt(flat[1:].size)


def test_backward_drops_the_same_places() -> None:
    layer = Dropout((5, 6), drop_probability=0.4)
    x, grad = generator(1).standard_normal((5, 6, 7)), generator(2).standard_normal((5, 6, 7))
    factor = layer.forward(x, training=True, rng=generator()) / x
    np.testing.assert_allclose(layer.backward(grad), factor * grad, rtol=1e-14)
    assert 0 < np.count_nonzero(factor) < factor.size


@pytest.mark.parametrize("rng", [None, generator()])
def test_evaluation_changes_nothing(rng: np.random.Generator | None) -> None:
    layer = Dropout((5,), drop_probability=0.9)
    x, grad = generator().standard_normal((5, 8)), generator(1).standard_normal((5, 8))
    np.testing.assert_array_equal(layer.forward(x, rng=rng), x)
    np.testing.assert_array_equal(layer.backward(grad), grad)
    parts = [layer.forward(x[:, part]) for part in (slice(0, 3), slice(3, 8))]
    np.testing.assert_array_equal(np.hstack(parts), x)


def test_evaluation_after_training_forgets_the_mask() -> None:
    layer = Dropout((5,), drop_probability=0.9)
    x = np.ones((5, 8))
    layer.forward(x, training=True, rng=generator())
    layer.forward(x)
    np.testing.assert_array_equal(layer.backward(x), x)


@given(
    seed=st.integers(0, 2**32),
    drop_probability=st.floats(0, 0.999),
    shape=st.tuples(st.integers(1, 9), st.integers(1, 9)),
)
def test_same_generator_same_mask_in_both_precisions(
    seed: int, drop_probability: float, shape: tuple[int, int]
) -> None:
    layer = Dropout(shape[:1], drop_probability=drop_probability)
    double = layer.forward(np.ones(shape), training=True, rng=generator(seed)).copy()
    again = layer.forward(np.ones(shape), training=True, rng=generator(seed)).copy()
    single = layer.forward(np.ones(shape, np.float32), training=True, rng=generator(seed))
    np.testing.assert_array_equal(double, again)
    np.testing.assert_array_equal(double.astype(np.float32), single)


def test_training_needs_a_generator() -> None:
    with pytest.raises(
        OptionError, match=r"rng: expected a numpy.random.Generator for Dropout\(.*, got None"
    ):
        Dropout((5,)).forward(np.ones((5, 8)), training=True)
