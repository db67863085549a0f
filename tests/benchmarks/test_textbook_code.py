"""The textbook implementations are right: they agree with ours, and one that does not is found."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.textbook_code import Array, Implementation, Pooled
from benchmarks.textbook_code.offset_loops import OFFSET_LOOPS, col2im, im2col
from benchmarks.textbook_run import IMPLEMENTATIONS, DisagreementError, check_layers, check_step
from cnncli.nn import Conv2D, MaxPool2D, batch_first, batch_last


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_the_layers_agree_with_ours_on_what_is_timed(name: str) -> None:
    check_layers(IMPLEMENTATIONS[name], 1 if name == "plain_loops" else 3)


@pytest.mark.parametrize("name", ["offset_loops", "fancy_indexing"])
def test_training_steps_agree_with_ours(name: str) -> None:
    rng = np.random.default_rng(0)
    check_step(IMPLEMENTATIONS[name], rng.standard_normal((5, 1, 28, 28)), rng.integers(0, 10, 5))


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_a_convolution_of_several_channels_agrees_with_ours(name: str) -> None:
    rng = np.random.default_rng(0)
    images, weight, bias = rng.random((2, 3, 7, 6)), rng.random((4, 3, 3, 2)), rng.random(4)
    grad_output = rng.standard_normal((2, 4, 5, 5))
    ours = Conv2D((3, 7, 6), out_channels=4, kernel_size=(3, 2), dtype=np.float64)
    ours.parameters["weight"].value[...], ours.parameters["bias"].value[...] = weight, bias

    output, backward = IMPLEMENTATIONS[name].convolve(images, weight, bias)
    np.testing.assert_allclose(output, batch_first(ours.forward(batch_last(images))), rtol=1e-12)
    grad_input, grad_weight, grad_bias = backward(grad_output)
    np.testing.assert_allclose(grad_input, batch_first(ours.backward(batch_last(grad_output))), atol=1e-12)
    np.testing.assert_allclose(grad_weight, ours.parameters["weight"].grad, atol=1e-12)
    np.testing.assert_allclose(grad_bias, ours.parameters["bias"].grad, atol=1e-12)


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_the_first_of_equal_numbers_wins_the_pool(name: str) -> None:
    images = np.array([[[[1.0, 2.0, 0.0, 0.0], [2.0, 2.0, 0.0, 0.0]]]])
    output, backward = IMPLEMENTATIONS[name].max_pool(images, 2)
    assert output.tolist() == [[[[2.0, 0.0]]]]
    assert backward(np.array([[[[3.0, 5.0]]]])).tolist() == [[[[0, 3, 5, 0], [0, 0, 0, 0]]]]


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_a_pool_of_several_channels_agrees_with_ours(name: str) -> None:
    rng = np.random.default_rng(0)
    images, grad_output = rng.random((2, 3, 4, 6)), rng.standard_normal((2, 3, 2, 3))
    ours = MaxPool2D((3, 4, 6), kernel_size=2)
    output, backward = IMPLEMENTATIONS[name].max_pool(images, 2)
    np.testing.assert_array_equal(output, batch_first(ours.forward(batch_last(images))))
    np.testing.assert_array_equal(backward(grad_output), batch_first(ours.backward(batch_last(grad_output))))


def test_rows_of_windows_and_back() -> None:
    image = np.arange(9.0).reshape(1, 1, 3, 3)
    rows = im2col(image, 2, 2, stride=1)
    assert rows.tolist() == [[0, 1, 3, 4], [1, 2, 4, 5], [3, 4, 6, 7], [4, 5, 7, 8]]
    assert col2im(rows, image.shape, 2, 2, stride=1)[0, 0].tolist() == [[0, 2, 2], [6, 16, 10], [6, 14, 8]]


def test_a_wrong_implementation_is_not_timed() -> None:
    def slightly_wrong_pool(images: Array, size: int) -> Pooled:
        output, backward = OFFSET_LOOPS.max_pool(images, size)
        return Pooled(output, lambda grad_output: backward(grad_output) * (1 + 1e-5))

    wrong = Implementation(OFFSET_LOOPS.convolve, slightly_wrong_pool)
    with pytest.raises(DisagreementError, match="grad_input differs"):
        check_layers(wrong, 1)
    rng = np.random.default_rng(0)
    inverted = Implementation(lambda x, w, b: OFFSET_LOOPS.convolve(x, -w, b), OFFSET_LOOPS.max_pool)
    with pytest.raises(DisagreementError, match="loss differs"):
        check_step(inverted, rng.standard_normal((2, 1, 28, 28)), rng.integers(0, 10, 2))
