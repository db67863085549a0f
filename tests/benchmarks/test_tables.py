"""The tables of the commands, from made-up measurements."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import numpy as np
import pytest

from benchmarks import accuracy, textbook, training_step, whole_command
from benchmarks.machine import load_average, machine_line
from benchmarks.results import README, duration, filled, present, table


def cells(text: str) -> list[list[str]]:
    """Return the cells of a Markdown table without its head and rule."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()[2:]]


def test_a_table_is_markdown_that_lines_up() -> None:
    assert table(("name", "n"), [["a", "1"], ["longer", "1,000"]]).splitlines() == [
        "| name   |     n |",
        "| ------ | ----: |",
        "| a      |     1 |",
        "| longer | 1,000 |",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.00961, "9.61 ms"), (0.0432, "43.2 ms"), (0.112, "112 ms"), (7.312, "7.31 s"), (64.36, "64.4 s")],
)
def test_a_time_has_three_digits(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_step_is_compared_with_the_faster_layout() -> None:
    slow = {
        "cnncli": [0.030, 0.020, 0.090],
        "contiguous": [0.040, 0.040, 0.050],
        "channels_last": [0.025, 0.020, 0.030],
        "products": [0.015, 0.015, 0.015],
    }
    fast = {"cnncli": [0.003], "contiguous": [0.010], "channels_last": [0.011], "products": [0.001]}
    assert cells(training_step.step_table({"quickstart": slow, "lenet": fast})) == [
        ["quickstart, 256", "30.0 ms", "40.0 ms", "25.0 ms", "1.20", "15.0 ms", "50 %"],
        ["lenet, 100", "3.00 ms", "10.0 ms", "11.0 ms", "0.30", "1.00 ms", "33 %"],
        ["geometric mean", "", "", "", "0.60", "", ""],
    ]


def test_more_threads_are_estimated_by_amdahls_law() -> None:
    # on two threads 1.6 times as fast: a quarter of the time on one does not get shorter
    assert whole_command.estimated_speed_up(1.6, 2) == pytest.approx(1.6)
    assert whole_command.estimated_speed_up(1.6, 8) == pytest.approx(1 / (1 / 4 + 3 / 4 / 8))
    # no more than sixteen shards are in flight
    assert whole_command.estimated_speed_up(2.1, 32) == 16
    assert cells(whole_command.threads_table({"lenet": {"1": [0.016, 0.5, 0.001], "2": [0.010]}})) == [
        ["lenet, 100", "16.0 ms", "10.0 ms", "1.60", "2.9", "3.4"]
    ]


def test_accuracies_end_with_their_mean() -> None:
    assert cells(accuracy.accuracy_table({3: 0.9908, 4: 0.992, 7: 0.99})) == [
        ["seed 3", "99.08%"],
        ["seed 4", "99.20%"],
        ["seed 7", "99.00%"],
        ["mean", "99.093%"],
        ["standard deviation", "0.101%"],
    ]
    assert cells(accuracy.accuracy_table({0: 1.0})) == [["seed 0", "100.00%"], ["mean", "100.000%"]]


def test_the_readme_shows_how_many_times_as_fast_it_is() -> None:
    steps = {
        "lenet": {"cnncli": [0.004], "contiguous": [0.010], "channels_last": [0.008], "products": [0.001]}
    }
    evaluations = {"lenet": {"cnncli": [0.5], "contiguous": [2.0], "channels_last": [0.25]}}
    assert cells(training_step.short_table(steps, evaluations)) == [
        ["lenet, 100", "4.00 ms", "8.00 ms", "2.00", "0.50"]
    ]


def test_an_evaluation_is_compared_by_images_per_second() -> None:
    times = {"cnncli": [0.5], "contiguous": [2.0], "channels_last": [1.0]}
    assert cells(training_step.evaluation_table({"lenet": times})) == [
        ["lenet", "20,000", "5,000", "10,000", "2.00"]
    ]


def test_the_whole_command_is_compared_with_the_bare_loop() -> None:
    whole = {"cnncli": [6.0, 9.0, 5.0], "contiguous": [11.0], "channels_last": [9.0]}
    assert cells(whole_command.epoch_table(whole, {"contiguous": [8.0], "channels_last": [5.0]})) == [
        ["`cnncli train`", "", "6.00 s", ""],
        ["PyTorch contiguous", "8.00 s", "11.0 s", "0.75"],
        ["PyTorch channels-last", "5.00 s", "9.00 s", "1.20"],
    ]


def test_memory_beyond_the_images_of_a_batch() -> None:
    mib = 2**20
    peaks = {
        "cnncli_256": 100 * mib,
        "cnncli_4096": 120 * mib,
        "contiguous": 500 * mib,
        "channels_last": 400 * mib,
    }
    assert cells(whole_command.memory_table(peaks)) == [
        ["`cnncli train`", "100.0 MiB", ""],
        ["PyTorch contiguous", "500.0 MiB", "0.20"],
        ["PyTorch channels-last", "400.0 MiB", "0.25"],
    ]
    # 3840 images of 784 bytes are 2.9 MiB
    assert cells(whole_command.batch_memory_table(peaks)) == [
        ["100.0 MiB", "120.0 MiB", "20.0 MiB", "2.9 MiB", "17.1 MiB"]
    ]


def test_growth_and_start_up() -> None:
    assert cells(whole_command.growth_table({"lenet": {"128": 50e-6, "256": 55e-6}})) == [
        ["lenet", "50.0", "55.0", "1.10"]
    ]
    assert cells(whole_command.start_table({"pass": [0.02], "numpy": [0.1], "help": [0.05]})) == [
        ["pass", "20.0 ms", "1.00", "0.20"],
        ["numpy", "100 ms", "5.00", "1.00"],
        ["help", "50.0 ms", "2.50", "0.50"],
    ]


def test_networks_with_many_multiply_adds() -> None:
    names = ["simple_convnet", "lenet", "keras_mnist", "pytorch_mnist", "quickstart"]
    assert whole_command.demanding(names) == ["keras_mnist", "pytorch_mnist", "quickstart"]


def test_textbooks_are_compared_with_cnncli() -> None:
    titles = {"cnncli": "ours", "loops": "theirs"}
    assert cells(textbook.comparison(titles, {"cnncli": [0.01], "loops": [0.2, 0.3, 0.25]})) == [
        ["ours", "10.0 ms", "1.0"],
        ["theirs", "250 ms", "25.0"],
    ]


def test_the_machine_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (0.1, 2.0, 3.0))
    line = machine_line(load_average())
    assert f"Python {platform.python_version()}, NumPy {np.__version__} with " in line
    assert line.endswith("load before the start 0.10")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("os.getloadavg", lambda: (1.5, 0.0, 0.0))
    load_average()
    assert "the machine is busy (load 1.50)" in capsys.readouterr().err


def test_results_are_printed_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("<!-- results: x -->\n<!-- end -->\n")
    monkeypatch.setattr("benchmarks.results.README", readme)
    present("x", 0.1, ["title", "| table |"], {"seconds": [1.5]}, as_json=True, write=False)
    document = json.loads(capsys.readouterr().out)
    assert document == {"machine": machine_line(0.1), "seconds": [1.5]}
    assert "table" not in readme.read_text()
    present("x", 0.1, ["title", "| table |"], {"seconds": [1.5]}, as_json=False, write=True)
    text = f"title\n\n| table |\n\n{machine_line(0.1)}."
    assert capsys.readouterr().out == text + "\n"
    assert readme.read_text() == f"<!-- results: x -->\n{text}\n<!-- end -->\n"


def test_results_take_the_place_of_those_before() -> None:
    document = "a\n<!-- results: x -->\nold\n<!-- end -->\nb\n<!-- results: y -->\n<!-- end -->\n"
    once = filled(document, "x", "new")
    assert once == "a\n<!-- results: x -->\nnew\n<!-- end -->\nb\n<!-- results: y -->\n<!-- end -->\n"
    assert filled(once, "x", "new") == once
    with pytest.raises(ValueError, match="results: z"):
        filled(document, "z", "new")


@pytest.mark.parametrize("command", [training_step.COMMAND, whole_command.COMMAND, textbook.COMMAND])
def test_the_readme_has_a_place_for_every_command(command: str) -> None:
    document = README.read_text(encoding="utf-8")
    assert f"python -m benchmarks.{command}" in document
    assert "| figure |" in filled(document, command, "| figure |")
