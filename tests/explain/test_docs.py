"""The listings of the pages under docs/ are what the program says now; see docs/remake_listings.py."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
COURSE = ["1-convolution.md", "2-im2col-and-col2im.md", "3-pooling.md", "4-the-whole-step.md"]
SEEDS = ["a-blog-derivation.md", "a-question-about-col2im.md", "a-wiki-session.md"]


def load_listings() -> Any:
    specification = importlib.util.spec_from_file_location("remake_listings", DOCS / "remake_listings.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


listings = load_listings()


@pytest.mark.parametrize("page", listings.PAGES, ids=lambda page: page.name)
def test_the_listings_are_current(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert listings.remade(text) == text, "remake them with: python docs/remake_listings.py"


def test_there_are_four_pages_to_learn_from_and_three_to_answer() -> None:
    assert [page.name for page in listings.PAGES] == [*COURSE, *SEEDS]


@pytest.mark.parametrize("name", COURSE)
def test_a_page_of_the_course_asks_and_answers(name: str) -> None:
    text = (DOCS / "learn" / name).read_text(encoding="utf-8")
    questions, answers = text.partition("## Questions")[2].split("<details><summary>Answers</summary>")
    numbers = [re.findall(r"^(\d+)\. ", part, re.MULTILINE) for part in (questions, answers)]
    assert numbers[0] == numbers[1] and len(numbers[0]) >= 4


@pytest.mark.parametrize("page", listings.PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_every_command_in_a_question_works(cnncli: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").symlink_to(DOCS.parent / "data")
    (tmp_path / "configs").symlink_to(DOCS.parent / "configs")
    commands = {
        command
        for page in COURSE
        for command in re.findall(
            r"`cnncli ((?:explain|inspect-shapes) [^`]+)`", (DOCS / "learn" / page).read_text()
        )
        if "sobel.npy" not in command
    }
    assert len(commands) > 15
    for command in commands:
        assert cnncli(*command.split()).code == 0, command


def test_a_listing_that_is_not_current_is_seen() -> None:
    page = "```console\n$ cnncli explain col2im\nsomething else\n```\n"
    assert "x * coverage" in listings.remade(page)
    page = "<!-- steps 5 -->\n```console\n$ cnncli explain col2im\n```\n"
    lines = listings.remade(page).splitlines()
    assert lines[3:6] == ["[...]", "", "5. The coverage: in how many windows each pixel lies"]
    assert not any("6. So" in line for line in lines)


def test_a_session_is_run_anew() -> None:
    page = "```pycon\n>>> x = 3\n>>> for i in range(x):\n...     print(i)\n7\n>>> 1 / 0\n```\n"
    assert listings.remade(page) == (
        "```pycon\n>>> x = 3\n>>> for i in range(x):\n...     print(i)\n0\n1\n2\n>>> 1 / 0\n"
        "Traceback (most recent call last):\n  ...\nZeroDivisionError: ...\n```\n"
    )


def test_a_step_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match="there is no step 99"):
        listings.remade("<!-- steps 99 -->\n```console\n$ cnncli explain col2im\n```\n")
