"""The explain page as a file: what it holds, what it refuses, that it loads nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cnncli.errors import OptionError, ShapeError
from cnncli.nn import Sides
from cnncli.report.explain_case import MATRIX_CELLS, MULTIPLY_ADDS
from cnncli.report.explain_page import TOPICS, write_explain_page
from tests.nn import references

NO_PADDING = Sides(0, 0, 0, 0)
NINE = np.arange(9.0).reshape(1, 1, 3, 3)


def page(path: Path, topic: str, x: NDArray[Any] = NINE, *geometry: Any, **arrays: Any) -> str:
    """Write a page and return its text; kernel 2x2, stride 1, no padding unless told."""
    kernel_size, stride, padding = geometry or ((2, 2), (1, 1), NO_PADDING)
    write_explain_page(path, topic, x, kernel_size, stride, padding, **arrays)
    return path.read_text(encoding="utf-8")


def embedded(text: str) -> Any:
    """Return the data that stands in a page."""
    found = re.search(r'<script type="application/json" id="page-data">(.*?)</script>', text, re.DOTALL)
    assert found
    return json.loads(found[1])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "page.html"


@pytest.mark.parametrize("topic", TOPICS)
def test_a_page_loads_nothing(path: Path, topic: str) -> None:
    text = page(path, topic)
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\(|\bsrc=|import\(", text)
    assert re.findall(r'href="([^"]*)"', text) == ["data:,"]
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy
    assert policy[1].startswith("default-src 'none'; ")
    assert "unsafe" not in policy[1]


@pytest.mark.parametrize(("element", "directive"), [("style", "style-src"), ("script", "script-src")])
def test_the_policy_allows_this_style_and_this_script(path: Path, element: str, directive: str) -> None:
    text = page(path, "im2col")
    found = re.search(rf"<{element}>(.*?)</{element}>", text, re.DOTALL)
    assert found
    digest = base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()
    assert f"{directive} 'sha256-{digest}'" in text


@pytest.mark.parametrize("topic", TOPICS)
def test_the_introduction_is_two_sentences_and_readable_without_a_script(path: Path, topic: str) -> None:
    found = re.search(r'<p class="lead">(.*?)</p>', page(path, topic), re.DOTALL)
    assert found
    assert len(re.findall(r"\.(?= |$)", found[1])) == 2


def test_the_numbers_of_python_are_embedded(path: Path) -> None:
    data = embedded(page(path, "col2im"))
    assert data["expected"]["im2col"] == [0, 1, 3, 4, 1, 2, 4, 5, 3, 4, 6, 7, 4, 5, 7, 8]
    assert data["expected"]["col2im"] == [0, 2, 2, 6, 16, 10, 6, 14, 8]
    sizes = {"N": 1, "C": 1, "H": 3, "W": 3, "KH": 2, "KW": 2, "SH": 1, "SW": 1}
    assert data["sizes"] == sizes | {"top": 0, "bottom": 0, "left": 0, "right": 0}
    assert data["arrays"] == {"x": None}, "counted numbers need not be written down"


def test_given_arrays_are_embedded_batch_first_and_results_batch_last(path: Path) -> None:
    rng = np.random.default_rng(0)
    x, weight = rng.standard_normal((2, 3, 4, 5)), rng.standard_normal((2, 3, 3, 2))
    upstream = rng.standard_normal((2, 2, 3, 3))
    sides = (1, 0, 0, 1)
    geometry = ((3, 2), (1, 2), Sides(*sides))
    data = embedded(page(path, "conv", x, *geometry, weight=weight, upstream=upstream))
    for name, array in (("x", x), ("weight", weight), ("upstream", upstream)):
        assert data["arrays"][name] == {"shape": list(array.shape), "values": array.ravel().tolist()}
    y = references.convolve(x, weight, np.zeros(2), (1, 2), sides)
    dx, dw, _ = references.convolve_backward(x, weight, (1, 2), sides, upstream)
    cols = references.im2col(x, (3, 2), (1, 2), sides)
    expected = {
        "im2col": cols,
        "col2im": np.moveaxis(references.col2im(cols, x.shape, (3, 2), (1, 2), sides), 0, -1),
        "output": np.moveaxis(y, 0, -1),
        "gradient of the input": np.moveaxis(dx, 0, -1),
        "gradient of the weight": dw,
    }
    assert data["expected"].keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_allclose(data["expected"][name], array.ravel(), atol=1e-12)


def test_numbers_that_json_does_not_know(path: Path) -> None:
    x = np.array([[[[np.nan, -np.inf], [np.inf, 0.5]]]])
    text = page(path, "max-pool", x)
    assert embedded(text)["arrays"]["x"]["values"] == ["NaN", "-Infinity", "Infinity", 0.5]
    assert embedded(text)["expected"]["output"] == ["NaN"]


def test_infinite_numbers_cause_no_warning(path: Path) -> None:
    x = np.array([[[[np.inf, -np.inf], [0, 1]]]])
    data = embedded(page(path, "conv", x, weight=np.zeros((1, 1, 2, 2)), upstream=np.ones((1, 1, 1, 1))))
    assert data["expected"]["output"] == ["NaN"]


def test_integers_are_taken_as_floats(path: Path) -> None:
    x = np.full((1, 1, 2, 2), 200, dtype=np.uint8)
    data = embedded(page(path, "conv", x, weight=np.ones((1, 1, 2, 2))))
    assert data["expected"]["output"] == [800]


@pytest.mark.parametrize(
    ("topic", "shape", "kernel_size", "kept"),
    [
        ("im2col", (1, 1, 28, 28), (5, 5), (1, 1, 28, 28)),
        ("max-pool", (100, 30, 24, 24), (2, 2), (1, 30, 24, 24)),
        ("conv", (3, 200, 13, 13), (3, 3), (1, 18, 13, 13)),
        ("col2im", (2, 3, 1000, 600), (3, 3), (1, 1, 62, 37)),
        ("im2col", (2, 3, 1000, 600), (120, 120), (1, 1, 120, 120)),
    ],
)
def test_of_large_arrays_the_first_part_is_kept(
    path: Path, topic: str, shape: tuple[int, ...], kernel_size: tuple[int, int], kept: tuple[int, ...]
) -> None:
    x = np.random.default_rng(0).integers(0, 9, shape).astype(np.float32)
    data = embedded(page(path, topic, x, kernel_size, (2, 2) if topic == "max-pool" else (1, 1), NO_PADDING))
    assert data["arrays"]["x"]["shape"] == list(kept)
    part = x[tuple(slice(size) for size in kept)]
    assert data["arrays"]["x"]["values"] == part.ravel().tolist()
    assert len(data["expected"]["im2col"]) <= MATRIX_CELLS
    assert all(
        f" of {size} " in data["note"] for size, kept_ in zip(shape, kept, strict=True) if kept_ < size
    )
    assert bool(data["note"]) == (shape != kept)
    assert ("Sums run over these channels alone." in data["note"]) == (topic == "conv")


def test_many_filters_are_cut_with_their_gradients(path: Path) -> None:
    rng = np.random.default_rng(0)
    weight, upstream = rng.standard_normal((500, 1, 5, 5)), rng.standard_normal((1, 500, 24, 24))
    x = np.zeros((1, 1, 28, 28))
    data = embedded(page(path, "conv", x, (5, 5), (1, 1), NO_PADDING, weight=weight, upstream=upstream))
    F = MULTIPLY_ADDS // (25 * 576)
    assert data["sizes"]["F"] == F
    assert data["arrays"]["upstream"]["values"] == upstream[:, :F].ravel().tolist()
    assert f"{F} of 500 filters" in data["note"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"topic": "pool"}, "topic: expected one of im2col, col2im, conv, max-pool, got 'pool'"),
        ({"kernel_size": (4, 1)}, "kernel_size: expected at most 3x3"),
        ({"stride": (0, 1)}, "stride: expected"),
        ({"padding": Sides(-1, 0, 0, 0)}, "padding: expected"),
        ({"topic": "max-pool", "padding": Sides(2, 0, 0, 0)}, "padding: expected at most half the kernel"),
        (
            {"kernel_size": (900, 900), "padding": Sides(900, 900, 900, 900)},
            "at most 20000 numbers on a page",
        ),
    ],
)
def test_impossible_options_are_refused(path: Path, arguments: dict[str, Any], message: str) -> None:
    given = {"topic": "im2col", "kernel_size": (2, 2), "stride": (1, 1), "padding": NO_PADDING, **arguments}
    with pytest.raises(OptionError, match=re.escape(message)):
        write_explain_page(path, x=NINE, **given)
    assert not path.exists()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": NINE[0]}, "x: expected numbers of shape (N, C, H, W), got float64 of (1, 3, 3)"),
        (
            {"x": np.empty((0, 1, 3, 3))},
            "x: expected numbers of shape (N, C, H, W), got float64 of (0, 1, 3, 3)",
        ),
        ({"x": NINE.astype(complex)}, "x: expected numbers"),
        (
            {"weight": np.ones((2, 2, 2, 2))},
            "weight: expected an array of shape (F, 1, 2, 2), got (2, 2, 2, 2)",
        ),
        (
            {"upstream": np.ones((1, 2, 3, 3))},
            "upstream: expected an array of shape (1, 2, 2, 2), got (1, 2, 3, 3)",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_refused(path: Path, arrays: dict[str, Any], message: str) -> None:
    with pytest.raises(ShapeError, match=re.escape(message)):
        page(path, "conv", **{"x": NINE, **arrays})
    assert not path.exists()


def test_a_page_is_replaced_whole_or_not_at_all(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = page(path, "im2col")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        page(path, "col2im")
    assert caught.value.filename == str(path)
    assert path.read_text(encoding="utf-8") == before
    assert list(path.parent.iterdir()) == [path]


def test_a_missing_directory_is_named(path: Path) -> None:
    inside = path.parent / "missing" / "page.html"
    with pytest.raises(FileNotFoundError) as caught:
        page(inside, "im2col")
    assert caught.value.filename == str(inside)
