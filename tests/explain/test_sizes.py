"""Sizes that the reader left open, and sizes that cannot be."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cnncli.errors import OptionError
from cnncli.explain import SizeRequest, resolve_sizes


@pytest.mark.parametrize(
    ("asked", "shape", "upstream_shape"),
    [
        (SizeRequest("im2col"), (1, 1, 3, 4), (1, 2, 2, 3)),
        (SizeRequest("col2im"), (1, 1, 3, 3), (1, 2, 2, 2)),
        (SizeRequest("conv"), (1, 1, 3, 4), (1, 2, 2, 3)),
        (SizeRequest("conv", out_channels=5), (1, 1, 3, 4), (1, 5, 2, 3)),
        (SizeRequest("conv", in_channels=3), (1, 3, 3, 4), (1, 2, 2, 3)),
        (SizeRequest("max-pool"), (1, 1, 4, 4), (1, 1, 2, 2)),
        (SizeRequest("max-pool", kernel_size=(3, 2)), (1, 1, 6, 4), (1, 1, 2, 2)),
        (SizeRequest("max-pool", stride=(1, 1)), (1, 1, 3, 3), (1, 1, 2, 2)),
        (SizeRequest("max-pool", shape=(4, 1, 2, 4)), (4, 1, 2, 4), (4, 1, 1, 2)),
        (SizeRequest("max-pool", upstream_shape=(12, 12, 30, 100)), (12, 12, 60, 200), (12, 12, 30, 100)),
        (SizeRequest("max-pool", upstream_shape=(100, 30, 12, 12)), (100, 30, 24, 24), (100, 30, 12, 12)),
        (SizeRequest("conv", upstream_shape=(2, 7, 4, 5), kernel_size=(3, 3)), (2, 1, 6, 7), (2, 7, 4, 5)),
        (SizeRequest("conv", kernel_size=(3, 3), padding="same"), (1, 1, 4, 5), (1, 2, 4, 5)),
        (SizeRequest("max-pool", upstream_shape=(1, 1, 3, 2), padding="same"), (1, 1, 6, 4), (1, 1, 3, 2)),
    ],
)
def test_what_is_left_open(asked: SizeRequest, shape: Any, upstream_shape: Any) -> None:
    sizes = resolve_sizes(asked)
    assert sizes.shape == shape
    assert sizes.upstream_shape == upstream_shape


@given(
    topic=st.sampled_from(["conv", "max-pool"]),
    output=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    kernel=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    stride=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    same=st.booleans(),
)
def test_an_upstream_gradient_always_fits_the_images_made_for_it(
    topic: str, output: Any, kernel: Any, stride: Any, same: bool
) -> None:
    upstream_shape = (2, 3, *output)
    asked = SizeRequest(topic, None, kernel, stride, "same" if same else (0, 0), upstream_shape)
    assert resolve_sizes(asked).upstream_shape == upstream_shape


@pytest.mark.parametrize(
    ("asked", "option", "message"),
    [
        (SizeRequest("im2col", (1, 1, 3, 3), (4, 4)), "kernel_size", "at most 3x3"),
        (SizeRequest("im2col", None, (100, 100)), "kernel_size", "at most 4,096 cells"),
        (SizeRequest("im2col", (10**9, 1, 9, 9)), "shape", "at most 5,000,000 numbers"),
        (SizeRequest("im2col", (1, 1, 1000, 1000), (3, 3)), "shape", "an im2col matrix of at most 5,000,000"),
        (SizeRequest("im2col", padding=(10**9, 0)), "shape", "at most 5,000,000 numbers"),
        (SizeRequest("conv", out_channels=10**8), "out_channels", "at most 5,000,000 numbers"),
        (SizeRequest("conv", (1, 3, 9, 9), in_channels=2), "weight", "kernels for 3 channels"),
        (
            SizeRequest("conv", (1, 1, 5, 5), upstream_shape=(1, 3, 2, 2)),
            "upstream_shape",
            "1,3,4,4, what comes out for images of shape 1,1,5,5, got 1,3,2,2",
        ),
        (
            SizeRequest("max-pool", upstream_shape=(1, 1, 1, 1), padding=(1, 1)),
            "padding",
            "need no image at all",
        ),
    ],
)
def test_what_cannot_be(asked: SizeRequest, option: str, message: str) -> None:
    with pytest.raises(OptionError, match=message) as caught:
        resolve_sizes(asked)
    assert caught.value.option == option
