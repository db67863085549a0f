"""Arrays as text: whole where small, their ends where large, readable by a program as well."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cnncli.explain import Index, Panel
from cnncli.explain.grids import body, picture
from cnncli.explain.numbers import exact, shortened, written_all, written_difference, written_sum
from cnncli.explain.text import side_by_side, table

ROOM = 76


def test_a_small_matrix_is_whole() -> None:
    assert body(Panel("x", np.array([[0.0, 10], [-3, 4]])), ROOM) == [" 0  10", "-3   4"]


def test_a_large_matrix_shows_its_ends() -> None:
    lines = body(Panel("x", np.arange(10000.0).reshape(100, 100)), ROOM)
    assert [line.split() for line in lines] == [
        ["0", "1", "2", "...", "97", "98", "99"],
        ["100", "101", "102", "...", "197", "198", "199"],
        ["200", "201", "202", "...", "297", "298", "299"],
        ["..."] * 7,
        ["9700", "9701", "9702", "...", "9797", "9798", "9799"],
        ["9800", "9801", "9802", "...", "9897", "9898", "9899"],
        ["9900", "9901", "9902", "...", "9997", "9998", "9999"],
    ]
    assert len(set(map(len, lines))) == 1


def test_a_small_matrix_too_wide_for_the_page_is_broken_into_bands() -> None:
    panel = Panel("x", np.arange(1000, 1040.0).reshape(2, 20))
    lines = body(panel, ROOM)
    assert [line.split() for line in lines] == [
        ["columns", "0", "to", "9"],
        [str(n) for n in range(1000, 1010)],
        [str(n) for n in range(1020, 1030)],
        [],
        ["columns", "10", "to", "19"],
        [str(n) for n in range(1010, 1020)],
        [str(n) for n in range(1030, 1040)],
    ]
    assert len(body(panel, 200)) == 2


def test_a_tall_matrix_is_not_broken_into_bands() -> None:
    lines = body(Panel("x", np.full((28, 28), 100.0)), ROOM)
    assert [line.split() for line in lines[:3]] == [["100"] * 3 + ["..."] + ["100"] * 3] * 3
    assert len(lines) == 7
    assert len(body(Panel("x", np.full((28, 28), 100.0)), 120)[0].split()) == 28


def test_one_space_between_columns_where_two_are_too_many() -> None:
    assert body(Panel("x", np.full((1, 5), 10.0)), 14) == ["10 10 10 10 10"]


def test_a_matrix_of_many_columns_shows_its_ends() -> None:
    panel = Panel("x", np.arange(1000, 1080.0).reshape(2, 40))
    assert [line.split() for line in body(panel, ROOM)] == [
        ["1000", "1001", "1002", "...", "1037", "1038", "1039"],
        ["1040", "1041", "1042", "...", "1077", "1078", "1079"],
    ]


def test_labels_beside_and_above() -> None:
    panel = Panel(
        "cols",
        np.arange(4.0).reshape(2, 2),
        rows=Index(("c", "i"), (1, 2)),
        columns=Index(("oh", "n"), (2, 1)),
    )
    assert body(panel, ROOM) == ["     oh,n", "c,i  0,0  1,0", "0,0    0    1", "0,1    2    3"]


def test_planes_stand_side_by_side_under_their_index() -> None:
    lines = body(Panel("x", np.arange(8.0).reshape(1, 2, 2, 2)), ROOM)
    assert lines == ["[0, 0]    [0, 1]", "0  1      4  5", "2  3      6  7"]


def test_of_many_planes_the_first_and_the_last() -> None:
    lines = body(Panel("x", np.arange(36.0).reshape(9, 1, 2, 2)), ROOM)
    assert lines == ["[0, 0]    ... [8, 0]", "0  1      32  33", "2  3      34  35"]


def test_rows_of_an_array_of_rank_four() -> None:
    panel = Panel("t", np.arange(12.0).reshape(1, 2, 2, 3), ("N", "OH", "OW", "C"), form="rows")
    assert body(panel, ROOM)[0] == "n,oh,ow"
    assert body(panel, ROOM)[3] == "0,1,0     6   7   8"


def test_vectors() -> None:
    assert body(Panel("v", np.arange(3.0)), ROOM) == ["0  1  2"]
    assert body(Panel("v", np.arange(2000.0)), ROOM) == ["0  1  2  ...  1997  1998  1999"]
    lines = body(Panel("v", np.arange(50.0)), ROOM)
    assert " ".join(lines).split() == [str(i) for i in range(50)]
    assert max(map(len, lines)) <= ROOM


@given(rows=st.integers(1, 40), columns=st.integers(1, 80), room=st.integers(40, 130))
def test_a_matrix_fits_its_room_and_keeps_its_corners(rows: int, columns: int, room: int) -> None:
    matrix = np.arange(float(rows * columns)).reshape(rows, columns)
    lines = body(Panel("x", matrix), room)
    assert max(map(len, lines)) <= room
    words = " ".join(line for line in lines if not line.startswith("columns")).split()
    shown = [int(word) for word in words if word != "..."]
    assert {0, columns - 1, (rows - 1) * columns, rows * columns - 1} <= set(shown)
    assert len(shown) == len(set(shown))
    # nothing is left out without a mark
    assert "..." in words or len(shown) == matrix.size


def test_a_picture_in_shades() -> None:
    assert picture(np.array([[0.0, 255], [128, 0]])) == ["  @@", "++"]
    assert picture(np.zeros((2, 2))) == ["", ""]


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([0.0, -0.0, 3.0], ["0", "0", "3"]),
        ([0.5, 2.0], ["0.5", "2.0"]),
        ([1 / 3, 0.25], ["0.3333", "0.2500"]),
        ([-0.0, 0.5], ["0.0", "0.5"]),
        ([-1e-9, 0.1234], ["0.0000", "0.1234"]),
        ([1e-6, 2e-6], ["1.000e-06", "2.000e-06"]),
        ([1e7, 0.5], ["1.000e+07", "5.000e-01"]),
        ([-np.inf, 2.0], ["-inf", "2"]),
        ([-np.inf, 0.5], ["-inf", "0.5"]),
        ([432000.0], ["432000"]),
        ([1e20], ["1.000e+20"]),
        ([], []),
    ],
)
def test_numbers(values: list[float], texts: list[str]) -> None:
    assert written_all(np.array(values)) == texts


def test_sums_and_differences() -> None:
    assert written_sum(np.array([1.0, -2, 3])) == "1 + (-2) + 3"
    assert written_sum(np.arange(20.0)) == "0 + 1 + ... + 19"
    assert written_difference(0.0) == "0"
    assert written_difference(4.44e-16) == "4.4e-16"
    assert exact(93311784000.0) == "93311784000"
    assert shortened(np.arange(12.0)) == "0 1 2 ... 11"
    assert shortened(np.arange(3.0)) == "0 1 2"


def test_tables_and_blocks() -> None:
    assert table([("name", "n"), ("a", "1,000"), ("bcdef", "7")]) == [
        "name       n",
        "a      1,000",
        "bcdef      7",
    ]
    assert side_by_side([["a", "bb"], ["c"]]) == ["a     c", "bb"]
