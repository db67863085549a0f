"""A self-contained page on which one topic is played step by step, with the reader's own numbers."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from cnncli.data.atomic_files import write_text_atomically
from cnncli.nn import Conv2D, MaxPool2D, Sides, batch_last, col2im, im2col
from cnncli.nn.arrays import FloatArray
from cnncli.nn.options import PaddingLike, one_of
from cnncli.report.explain_case import ExplainCase, checked_case, counting, part_that_fits, what_is_left_out


@dataclass(frozen=True)
class Topic:
    """The title of a page, and the two sentences that answer its question."""

    title: str
    introduction: str


TOPICS: Mapping[str, Topic] = {
    "im2col": Topic(
        "im2col: every window becomes a column",
        "im2col copies every window of the images into a column of one matrix, so that a convolution "
        "becomes a single matrix product. A pixel that lies in several windows is copied several "
        "times: memory is spent to gain speed.",
    ),
    "col2im": Topic(
        "col2im: every cell is added back onto its pixel",
        "col2im adds every cell of the matrix onto the pixel that im2col copied it from. It is not the "
        "inverse of im2col but its transpose: a pixel that lies in k windows comes back k times as "
        "large, and backward needs just that, because a pixel that was used k times collects k gradients.",
    ),
    "conv": Topic(
        "Convolution: the weight times the columns",
        "A convolution lays every window out as a column and multiplies all columns by the weight, "
        "which has one row for each filter. Backward is two more products: the gradient of the "
        "output times the columns is that of the weight, and the weight times the gradient of the "
        "output, added up by col2im, is that of the input.",
    ),
    "max-pool": Topic(
        "Max-pool: the winner takes the gradient",
        "Max-pool keeps the largest number of every window and remembers where it stood. Backward "
        "hands the gradient of each output to that one pixel: where windows overlap gradients add "
        "up, and among equal numbers the first in row-major order takes it all.",
    ),
}


def write_explain_page(
    path: Path,
    topic: str,
    x: NDArray[Any],
    kernel_size: tuple[int, int],
    stride: tuple[int, int],
    padding: Sides,
    weight: NDArray[Any] | None = None,
    upstream: NDArray[Any] | None = None,
) -> None:
    """Write the page of a topic: one HTML file that loads nothing.

    Of arrays too large for a page it holds the first images, channels and filters and the top left
    of the images, and says so. What the script of the page computes is compared on opening with
    what this package computed.

    Parameters
    ----------
    path : the file to write; replaced at once or not at all
    topic : ``im2col``, ``col2im``, ``conv`` or ``max-pool``
    x : ndarray of shape (N, C, H, W)
    kernel_size, stride : (height, width)
    padding : the four sides
    weight : ndarray of shape (F, C, KH, KW), for ``conv``; None counts from 1, with two filters
    upstream : ndarray of shape (N, F, OH, OW) for ``conv``, (N, C, OH, OW) for ``max-pool``; None
        counts from 1

    Raises
    ------
    ShapeError : the arrays do not fit each other
    OptionError : the topic is unknown, the kernel does not fit, or is too large for a page
    OSError : the file cannot be written
    """
    one_of(*TOPICS)("topic", topic)
    case = checked_case(topic, x, (kernel_size, stride, padding), weight, upstream)
    part = part_that_fits(case)
    page = _page(part, what_is_left_out(case, part))
    try:
        write_text_atomically(path, page)
    except OSError as error:
        error.filename = str(path)  # not the temporary file beside it
        raise


def _page(case: ExplainCase, note: str) -> str:
    assets = files("cnncli.report").joinpath("assets")
    style, script = (assets.joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
    topic = TOPICS[case.topic]
    return Template(assets.joinpath("page.html").read_text("utf-8")).substitute(
        policy=_policy(style, script),
        kicker=f"cnncli explain {case.topic}",
        title=html.escape(topic.title),
        introduction=html.escape(topic.introduction),
        style=style,
        script=script,
        data=_json({"page": "explain", "note": note, **_data(case)}),
    )


def _policy(style: str, script: str) -> str:
    """Allow this style and this script, by their hashes, and nothing else."""
    return (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest())
    return f"'sha256-{digest.decode('ascii')}'"


def _json(data: Mapping[str, object]) -> str:
    # "<" could end the script element that holds the text
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _data(case: ExplainCase) -> dict[str, object]:
    N, C, H, W = case.x.shape
    (KH, KW), (SH, SW), (top, bottom, left, right) = case.windows.geometry
    sizes = {"N": N, "C": C, "H": H, "W": W, "KH": KH, "KW": KW, "SH": SH, "SW": SW}
    sizes |= {"top": top, "bottom": bottom, "left": left, "right": right}
    arrays = {"x": _array(case.x, start=0)}
    if case.weight is not None:
        sizes["F"] = len(case.weight)
        arrays["weight"] = _array(case.weight)
    if case.upstream is not None:
        arrays["upstream"] = _array(case.upstream)
    with np.errstate(all="ignore"):  # the reader's numbers may be infinite
        expected = {name: _numbers(values) for name, values in _expected(case).items()}
    return {"topic": case.topic, "sizes": sizes, "arrays": arrays, "expected": expected}


def _array(values: FloatArray, start: int = 1) -> dict[str, object] | None:
    """None stands for counted numbers, which the page makes itself, and for larger sizes too."""
    if np.array_equal(values, counting(values.shape, start)):
        return None
    return {"shape": values.shape, "values": _numbers(values)}


def _numbers(values: FloatArray) -> list[int | float | str]:
    """Flatten for JSON, which has no NaN and no infinities, with whole numbers written shortly."""
    return [
        (int(v) if v.is_integer() and abs(v) < 2**53 else v) if math.isfinite(v) else _not_finite(v)
        for v in values.ravel().tolist()
    ]


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _expected(case: ExplainCase) -> dict[str, FloatArray]:
    """Compute what the page computes with the code that trains; arrays are batch last and flat."""
    x, geometry = batch_last(case.x), case.windows.geometry
    C, H, W, N = x.shape
    cols = im2col(x, *geometry)
    expected: dict[str, FloatArray] = {"im2col": cols, "col2im": col2im(cols, (C, H, W, N), *geometry)}
    if case.upstream is None:
        return expected
    grad_output = batch_last(case.upstream)
    layer = _convolution(case) if case.weight is not None else _pooling(case)
    expected["output"] = layer.forward(x).copy()
    expected["gradient of the input"] = layer.backward(grad_output).copy()
    if case.weight is not None:
        expected["gradient of the weight"] = layer.parameters["weight"].grad
    return expected


def _convolution(case: ExplainCase) -> Conv2D:
    assert case.weight is not None
    kernel_size, stride, sides = case.windows.geometry
    layer = Conv2D(
        case.x.shape[1:],
        out_channels=len(case.weight),
        kernel_size=kernel_size,
        stride=stride,
        padding=cast(PaddingLike, sides),  # a layer takes the four sides too
        bias=False,
        dtype=np.float64,
    )
    layer.parameters["weight"].value[...] = case.weight
    return layer


def _pooling(case: ExplainCase) -> MaxPool2D:
    kernel_size, stride, sides = case.windows.geometry
    return MaxPool2D(
        case.x.shape[1:], kernel_size=kernel_size, stride=stride, padding=cast(PaddingLike, sides)
    )
