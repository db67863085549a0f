"""One array in the orders of axes that different programs use, and where an element lands in each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from cnncli.explain.numbers import shortened
from cnncli.explain.walkthrough import Array, Panel, Step, counted, nowrap

ORDERS: Mapping[str, str] = {
    "NCHW": "PyTorch, the book",
    "HWCN": "R",
    "CHWN": "this tool",
    "NHWC": "channels last",
}


class Place(NamedTuple):
    """Where one element stands: its index, and how many elements lie before it in memory."""

    indices: tuple[int, ...]
    offset: int


def axes_from_nchw(order: str) -> tuple[int, ...]:
    """Give the transpose that turns (N, C, H, W) into an order: ``HWCN`` gives (2, 3, 1, 0)."""
    return tuple("NCHW".index(axis) for axis in order)


def axes_to_nhwc(order: str) -> tuple[int, ...]:
    """Give the transpose that turns an order into (N, H, W, C), the rows of pooling."""
    return tuple(order.index(axis) for axis in "NHWC")


def place_in(order: str, shape: tuple[int, ...], element: tuple[int, ...]) -> Place:
    """Find element (n, c, h, w) of an array (N, C, H, W) that is kept row by row in another order."""
    axes = axes_from_nchw(order)
    index = tuple(element[axis] for axis in axes)
    offset = 0
    for axis, i in zip(axes, index, strict=True):
        offset = offset * shape[axis] + i
    return Place(index, offset)


def orders_step(name: str, x: Array, order: str) -> Step:
    """Show images (N, C, H, W) in another order of axes, and one element in all of them."""
    shape = x.shape
    N, C, H, W = shape
    element = (N // 2, C // 2, H // 2, W - 1)
    axes = axes_from_nchw(order)
    moved = f"{name}_{order.lower()}"
    rows = [("order", "used by", "shape", "index", "offset")]
    for each, user in ORDERS.items():
        place = place_in(each, shape, element)
        sizes = tuple(shape[axis] for axis in axes_from_nchw(each))
        rows.append((each, user, str(sizes), str(list(place.indices)), str(place.offset)))
    n, c, h, w = element
    in_r = f"{name}[{h + 1}, {w + 1}, {c + 1}, {n + 1}]"
    return Step(
        title=f"The same numbers in the order {', '.join(order)} ({ORDERS[order]})",
        why="A transpose renames the axes and moves no meaning: element (n, c, h, w) is the same number "
        "in every order. Only its index differs, and its offset: how many numbers lie before it in memory.",
        code=(f"{moved} = np.ascontiguousarray({name}.transpose{axes})",),
        panels=(Panel(moved, np.ascontiguousarray(x.transpose(axes)), tuple(order), form="rows"),),
        table=tuple(rows),
        notes=(
            f"The table follows element (n, c, h, w) = {element}, which is {x[element]:g}. R itself counts "
            f"from 1 and keeps the first axis together, so there it is {nowrap(in_r)}, at offset "
            f"{_offset_in_r(shape, element)}.",
        ),
    )


def readings_step(given: tuple[int, ...], order: str | None) -> Step:
    """Read the four numbers of a shape in all orders, and go on from one of them.

    Parameters
    ----------
    given : the numbers as the reader gave them
    order : the order that the reader's array is in, which was given as (N, C, H, W); None reads the
        numbers as they stand in R's order
    """
    shape = given if order is None else tuple(given[axis] for axis in axes_from_nchw(order))
    order = order or "HWCN"
    size = dict(zip(order, shape, strict=True))
    array, axes = _counting(shape), axes_to_nhwc(order)
    moved, name = array.transpose(axes), order.lower()
    return Step(
        title="The same four numbers, read in another order of axes",
        why="A shape does not say which axis is which. The rows of pooling run over images, then pixels, "
        "then channels, (N, OH, OW, C), and the transpose that makes them depends on where each axis "
        "stands. With the wrong one nothing fails: the gradients just go to other pixels.",
        table=(
            ("read as", "images", "channels", "size", "transpose", "first row"),
            *(_reading(given, each) for each in ORDERS),
        ),
        code=(
            f"grad = np.arange({array.size}.0).reshape{shape}",
            f"rows_{name} = grad.transpose{axes}",
            f"flat_{name} = rows_{name}.flatten()",
        ),
        panels=(
            Panel(f"rows_{name}", moved, ("N", "OH", "OW", "C"), form="rows"),
            Panel(f"flat_{name}", moved.ravel(), ("N*OH*OW*C",)),
        ),
        notes=(
            f"Here {shape} is read as {', '.join(order)}: {counted(size['N'], 'image')} with "
            f"{counted(size['C'], 'channel')} of {size['H']}x{size['W']}. In N,C,OH,OW, as this command "
            f"takes it, that is --upstream-shape {','.join(str(size[axis]) for axis in 'NCHW')}.",
        ),
    )


def _reading(shape: tuple[int, ...], order: str) -> tuple[str, ...]:
    size, axes = dict(zip(order, shape, strict=True)), axes_to_nhwc(order)
    first_row = _counting(shape).transpose(axes)[0, 0, 0]
    return (
        f"{order} (R)" if order == "HWCN" else order,
        str(size["N"]),
        str(size["C"]),
        f"{size['H']}x{size['W']}",
        str(axes),
        shortened(first_row),
    )


def _counting(shape: tuple[int, ...]) -> Array:
    return np.arange(math.prod(shape), dtype=np.float64).reshape(shape)


def _offset_in_r(shape: tuple[int, ...], element: tuple[int, ...]) -> int:
    """Count column by column through an array of R's, dim = c(H, W, C, N)."""
    _, C, H, W = shape
    n, c, h, w = element
    return h + H * (w + W * (c + C * n))
