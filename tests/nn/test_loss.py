"""Softmax cross-entropy: values, gradients, extremes, and labels that are wrong."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cnncli.errors import LabelError, OptionError, ShapeError
from cnncli.nn import softmax, softmax_cross_entropy
from tests.nn import references


@st.composite
def problems(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, float]:
    """Draw logits (K, N), labels (N,) and a label smoothing."""
    K, N = draw(st.integers(1, 8)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    smoothing = draw(st.sampled_from([0.0, 0.1, 0.7]))
    return rng.normal(0, 3, (K, N)), rng.integers(0, K, N), smoothing


@given(problem=problems())
def test_matches_the_reference(problem: tuple[np.ndarray, np.ndarray, float]) -> None:
    logits, labels, smoothing = problem
    loss, _ = softmax_cross_entropy(logits, labels, label_smoothing=smoothing)
    expected = references.cross_entropy(logits.T.tolist(), labels.tolist(), smoothing)
    assert loss == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(problem=problems())
def test_gradient_matches_differences(problem: tuple[np.ndarray, np.ndarray, float]) -> None:
    logits, labels, smoothing = problem
    _, grad = softmax_cross_entropy(logits, labels, label_smoothing=smoothing)
    step = 1e-6
    for place in np.ndindex(logits.shape):
        shifted = logits.copy()
        shifted[place] += step
        above, _ = softmax_cross_entropy(shifted, labels, label_smoothing=smoothing)
        shifted[place] -= 2 * step
        below, _ = softmax_cross_entropy(shifted, labels, label_smoothing=smoothing)
        assert grad[place] == pytest.approx((above - below) / (2 * step), abs=1e-8)


@given(problem=problems(), data=st.data())
def test_shards_add_up_to_the_batch(
    problem: tuple[np.ndarray, np.ndarray, float], data: st.DataObject
) -> None:
    logits, labels, smoothing = problem
    N = len(labels)
    cut = data.draw(st.integers(0, N))
    whole_loss, whole_grad = softmax_cross_entropy(logits, labels, label_smoothing=smoothing)
    parts = [
        softmax_cross_entropy(logits[:, part], labels[part], label_smoothing=smoothing, divisor=N)
        for part in (slice(0, cut), slice(cut, N))
        if part.start < part.stop
    ]
    assert sum(loss for loss, _ in parts) == pytest.approx(whole_loss, rel=1e-12, abs=1e-14)
    np.testing.assert_allclose(np.hstack([grad for _, grad in parts]), whole_grad, rtol=1e-12, atol=1e-16)


@pytest.mark.parametrize(("label", "loss", "grad"), [(0, 0, [0, 0]), (1, 1000, [1, -1])])
def test_large_logits(label: int, loss: float, grad: list[float]) -> None:
    for dtype in (np.float32, np.float64):
        actual, actual_grad = softmax_cross_entropy(np.array([[1000], [0]], dtype), np.array([label]))
        assert actual == loss
        assert actual_grad.ravel().tolist() == grad


def test_a_certain_prediction_costs_exactly_nothing() -> None:
    loss, grad = softmax_cross_entropy(np.array([[0.0], [-math.inf]]), np.array([0]))
    assert loss == 0.0
    assert grad.ravel().tolist() == [0, 0]


def test_an_excluded_class_costs_infinity() -> None:
    loss, grad = softmax_cross_entropy(np.array([[0.0], [-math.inf]]), np.array([1]))
    assert loss == math.inf
    assert grad.ravel().tolist() == [1, -1]


def test_nan_comes_out_as_nan() -> None:
    loss, _ = softmax_cross_entropy(np.array([[0.0, math.nan], [1.0, 0.0]]), np.array([0, 1]))
    assert math.isnan(loss)


def test_label_smoothing_by_hand() -> None:
    logits = np.log(np.array([[1.0], [2.0], [5.0]]))
    loss, grad = softmax_cross_entropy(logits, np.array([2]), label_smoothing=0.3)
    targets = np.array([0.1, 0.1, 0.8])
    assert loss == pytest.approx(-(targets * np.log([1 / 8, 2 / 8, 5 / 8])).sum(), rel=1e-14)
    np.testing.assert_allclose(grad.ravel(), np.array([1, 2, 5]) / 8 - targets, rtol=0, atol=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_dtype_is_kept_and_logits_are_untouched(dtype: Any, label_smoothing: float) -> None:
    logits = np.random.default_rng(0).standard_normal((10, 4)).astype(dtype)
    before = logits.copy()
    logits.flags.writeable = False
    loss, grad = softmax_cross_entropy(logits, np.arange(4), label_smoothing=label_smoothing)
    assert type(loss) is float
    assert grad.dtype == dtype
    assert grad.shape == logits.shape
    np.testing.assert_array_equal(logits, before)
    assert softmax(logits).dtype == dtype


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.uint64, ">i4"])
def test_labels_of_any_integer_type(dtype: Any) -> None:
    labels = np.array([0, 2, 1], dtype)
    labels.flags.writeable = False
    loss, grad = softmax_cross_entropy(np.zeros((3, 3)), labels)
    assert loss == pytest.approx(math.log(3))
    assert np.argmin(grad, axis=0).tolist() == [0, 2, 1]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        pytest.param([1, 7], r"labels: 7 is out of range for 7 classes \(0 to 6\)", id="case"),
        pytest.param([3, -1], r"labels: -1 is out of range for 7 classes \(0 to 6\)", id="negative"),
        pytest.param([-1, 7], r"labels: -1 is out of range", id="both"),
        pytest.param(
            [[0], [0]],
            r"expected shape \(2,\), one per image, got \(2, 1\); flatten them with .*ravel",
            id="case",
        ),
        pytest.param([[0, 0]], r"expected shape \(2,\), one per image, got \(1, 2\)", id="row"),
        pytest.param([0], r"expected shape \(2,\), one per image, got \(1,\)$", id="too-few"),
        pytest.param(0, r"expected shape \(2,\), one per image, got \(\)$", id="scalar"),
        pytest.param([0.0, 1.0], "expected integers, got float64", id="floats"),
        pytest.param([True, False], "expected integers, got bool", id="booleans"),
        pytest.param(["0", "1"], "expected integers, got <U1", id="text"),
    ],
)
def test_wrong_labels(labels: Any, message: str) -> None:
    with pytest.raises(LabelError, match=message):
        softmax_cross_entropy(np.zeros((7, 2)), np.array(labels))


def test_one_hot_labels_are_refused() -> None:
    with pytest.raises(LabelError, match=r"expected shape \(3,\), one per image, got \(3, 3\)"):
        softmax_cross_entropy(np.zeros((3, 3)), np.eye(3, dtype=int))


@pytest.mark.parametrize(
    ("logits", "got"),
    [
        (np.zeros(3), r"float64 of shape \(3,\)"),
        (np.zeros((3, 1, 1)), r"float64 of shape \(3, 1, 1\)"),
        (np.zeros((3, 0)), r"float64 of shape \(3, 0\)"),
        (np.zeros((3, 1), int), r"int64 of shape \(3, 1\)"),
    ],
)
def test_wrong_logits(logits: np.ndarray, got: str) -> None:
    with pytest.raises(ShapeError, match=r"softmax_cross_entropy: expected logits \(K, N\) .* got " + got):
        softmax_cross_entropy(logits, np.array([0]))


@pytest.mark.parametrize("label_smoothing", [1.0, -0.1, math.nan, "0.1"])
def test_wrong_label_smoothing(label_smoothing: Any) -> None:
    with pytest.raises(OptionError, match="label_smoothing: expected a number of at least 0 and below 1"):
        softmax_cross_entropy(np.zeros((3, 1)), np.array([0]), label_smoothing=label_smoothing)
