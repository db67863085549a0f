"""Where an element lands in each order of axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cnncli.explain import ORDERS, explain
from cnncli.explain.orders import axes_from_nchw, axes_to_nhwc, orders_step, place_in, readings_step
from cnncli.explain.walkthrough import NO_BREAK
from tests.explain.cases import case_of, panels


@st.composite
def shapes_and_elements(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shape = draw(st.tuples(*[st.integers(1, 6)] * 4))
    return shape, tuple(draw(st.integers(0, size - 1)) for size in shape)


@pytest.mark.parametrize("order", ORDERS)
@given(drawn=shapes_and_elements())
def test_an_element_is_found_again(order: str, drawn: Any) -> None:
    shape, element = drawn
    x = np.arange(np.prod(shape)).reshape(shape)
    moved = np.ascontiguousarray(x.transpose(axes_from_nchw(order)))
    place = place_in(order, shape, element)
    assert moved[place.indices] == x[element]
    assert moved.ravel()[place.offset] == x[element]


@given(drawn=shapes_and_elements())
def test_the_offset_in_r(drawn: Any) -> None:
    shape, _ = drawn
    N, C, H, W = shape
    x = np.arange(np.prod(shape), dtype=float).reshape(shape)
    n, c, h, w = N // 2, C // 2, H // 2, W - 1
    note = orders_step("x", x, "HWCN").notes[0]
    # R stores the first axis of dim = c(H, W, C, N) together
    in_memory = x.transpose(2, 3, 1, 0).ravel(order="F")
    offset = int(note.rpartition("offset ")[2].rstrip("."))
    assert in_memory[offset] == x[n, c, h, w]
    assert f"x[{h + 1}, {w + 1}, {c + 1}, {n + 1}]" in note.replace(NO_BREAK, " ")


@pytest.mark.parametrize(
    ("order", "axes"),
    [("NCHW", (0, 2, 3, 1)), ("HWCN", (3, 0, 1, 2)), ("CHWN", (3, 1, 2, 0)), ("NHWC", (0, 1, 2, 3))],
)
def test_the_transpose_to_rows_of_windows(order: str, axes: tuple[int, ...]) -> None:
    assert axes_to_nhwc(order) == axes


@pytest.mark.parametrize("order", ORDERS)
def test_the_same_array_in_every_order(order: str) -> None:
    x = np.arange(120.0).reshape(2, 3, 4, 5)
    step = orders_step("x", x, order)
    (panel,) = step.panels
    assert panel.values.tolist() == x.transpose(axes_from_nchw(order)).tolist()
    assert panel.axes == tuple(order)
    rows = {row[0]: row[1:] for row in step.table[1:]}
    assert rows["NCHW"] == ("PyTorch, the book", "(2, 3, 4, 5)", "[1, 1, 2, 4]", "94")
    assert rows["HWCN"] == ("R", "(4, 5, 3, 2)", "[2, 4, 1, 1]", "87")
    assert rows["CHWN"] == ("this tool", "(3, 4, 5, 2)", "[1, 2, 4, 1]", "69")
    assert rows["NHWC"] == ("channels last", "(2, 4, 5, 3)", "[1, 2, 4, 1]", "103")
    assert "which is 94." in step.notes[0]


def test_the_array_does_not_depend_on_the_order_it_is_shown_in() -> None:
    x = np.arange(120.0).reshape(2, 3, 4, 5)
    case = case_of(x)
    object.__setattr__(case, "order", "HWCN")
    shown = panels(explain("im2col", case))
    assert shown["x"].values.tolist() == x.tolist()
    assert shown["x_hwcn"].values[1, 2, 0, 1] == x[1, 0, 1, 2]


def test_four_readings_of_one_shape() -> None:
    step = readings_step((12, 12, 30, 100), None)
    readings = {row[0]: row[1:] for row in step.table[1:]}
    assert readings == {
        "NCHW": ("12", "12", "30x100", "(0, 2, 3, 1)", "0 3000 6000 ... 33000"),
        "HWCN (R)": ("100", "30", "12x12", "(3, 0, 1, 2)", "0 100 200 ... 2900"),
        "CHWN": ("100", "12", "12x30", "(3, 1, 2, 0)", "0 36000 72000 ... 396000"),
        "NHWC": ("12", "100", "12x30", "(0, 1, 2, 3)", "0 1 2 ... 99"),
    }
