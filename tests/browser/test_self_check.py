"""The page checks itself against the numbers that Python embedded, and loads nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from cnncli.nn import Sides
from cnncli.report.explain_page import TOPICS, write_explain_page
from tests.browser.cases import Case, counting, random_case

pytestmark = pytest.mark.browser

if TYPE_CHECKING:
    from tests.browser.conftest import OpenFile, OpenPage

DATA = re.compile(r'(<script type="application/json" id="page-data">)(.*?)(</script>)', re.DOTALL)


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("seed", range(20, 26))
def test_page_and_python_agree(open_page: OpenPage, topic: str, seed: int) -> None:
    page = open_page(random_case(topic, seed))
    assert not page.is_alarmed
    assert "agree" in page.text("#verdict")


def test_they_agree_on_numbers_that_are_not_whole(open_page: OpenPage) -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((2, 3, 6, 5)).astype(np.float32)
    weight = rng.standard_normal((4, 3, 3, 2)).astype(np.float32)
    page = open_page(Case("conv", x, (3, 2), (2, 1), Sides(1, 0, 0, 1), weight))
    assert not page.is_alarmed


def corrupted(tmp_path: Path, topic: str, change: Any) -> Path:
    """Write a page and change the data embedded in it."""
    path = tmp_path / "corrupted.html"
    write_explain_page(path, topic, counting(1, 1, 3, 3), (2, 2), (1, 1), Sides(0, 0, 0, 0))
    text = path.read_text(encoding="utf-8")
    found = DATA.search(text)
    assert found
    data = json.loads(found[2])
    change(data)
    path.write_text(text.replace(found[2], json.dumps(data)), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("topic", "array"),
    [
        ("im2col", "im2col"),
        ("col2im", "col2im"),
        ("max-pool", "output"),
        ("max-pool", "gradient of the input"),
        ("conv", "output"),
        ("conv", "gradient of the weight"),
        ("conv", "gradient of the input"),
    ],
)
def test_a_number_that_differs_raises_the_alarm(
    open_file: OpenFile, tmp_path: Path, topic: str, array: str
) -> None:
    def change(data: Any) -> None:
        data["expected"][array][2] += 0.5

    page = open_file(corrupted(tmp_path, topic, change))
    assert page.is_alarmed
    assert f"disagree; do not trust the page. {array}: at position 2" in page.text("#alarm")
    assert page.run("return document.querySelector('#alarm').getAttribute('role')") == "alert"
    assert "failed" in page.text("#verdict")


def test_missing_numbers_raise_the_alarm(open_file: OpenFile, tmp_path: Path) -> None:
    page = open_file(corrupted(tmp_path, "im2col", lambda data: data["expected"]["im2col"].pop()))
    assert "16 numbers here, 15 from cnncli" in page.text("#alarm")
    page = open_file(corrupted(tmp_path, "im2col", lambda data: data["expected"].clear()))
    assert "16 numbers here, none from cnncli" in page.text("#alarm")


def test_data_that_cannot_be_read_is_said(open_file: OpenFile, tmp_path: Path) -> None:
    path = corrupted(tmp_path, "im2col", lambda data: None)
    path.write_text(DATA.sub(r"\1{half of it\3", path.read_text(encoding="utf-8")), encoding="utf-8")
    page = open_file(path)
    assert "The numbers embedded in this page cannot be read" in page.text("#alarm")
    assert page.is_alarmed


@pytest.mark.parametrize("topic", TOPICS)
def test_a_changed_script_does_not_run(open_page: OpenPage, topic: str) -> None:
    page = open_page(Case(topic, counting(1, 1, 3, 3), (2, 2)))
    page.run(
        """const script = document.createElement("script");
        script.textContent = "document.title = 'changed'";
        document.body.append(script);"""
    )
    assert page.run("return document.title") != "changed"
    assert [message for message in page.errors() if "Content Security Policy" in message]
