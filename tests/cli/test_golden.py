"""What the program says, word for word; see remake_golden.py."""

from __future__ import annotations

import pytest

from tests.cli.golden_cases import CASES, GOLDEN


@pytest.mark.parametrize("name", CASES)
def test_golden_text(name: str) -> None:
    assert CASES[name]() == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


def test_every_golden_text_has_a_case() -> None:
    assert sorted(path.stem for path in GOLDEN.iterdir()) == sorted(CASES)
