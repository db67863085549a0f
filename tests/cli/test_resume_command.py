"""``cnncli train --resume``: on as if nothing had happened, and with what may change."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

from cnncli.config import load_config
from cnncli.data import atomic_files
from cnncli.training import load_checkpoint
from tests.cli.program import Cnncli, assert_same_arrays, make_tiny_dataset

TRAIN = ("train", "--config", "tiny.yaml")


class KilledError(BaseException):
    """Stands for a process that is gone."""


@pytest.fixture
def whole(workspace: Path, cnncli: Cnncli) -> Path:
    """A run of five epochs without a break."""
    assert cnncli(*TRAIN, "--set", "training.epochs=5", "--run-dir", "whole").code == 0
    return workspace / "whole"


def train_and_die(
    cnncli: Cnncli, monkeypatch: pytest.MonkeyPatch, run: str, n_writes: int, *options: str
) -> None:
    """Start a run that is killed while it writes its file number `n_writes` + 1, from 0."""
    left = [n_writes]
    write = atomic_files.write_atomically

    def write_or_die(path: Path, *rest: object) -> None:
        if left[0] == 0:
            raise KilledError
        left[0] -= 1
        write(path, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(atomic_files, "write_atomically", write_or_die)
        with pytest.raises(KilledError):
            cnncli(*TRAIN, "--set", "training.epochs=5", "--run-dir", run, *options)


# best, last and metrics for epochs 0, 1, ...; best is written where it is better
@pytest.mark.parametrize("n_writes", range(12))
def test_a_run_that_died_anywhere_ends_with_the_same_bits(
    whole: Path, cnncli: Cnncli, monkeypatch: pytest.MonkeyPatch, n_writes: int
) -> None:
    train_and_die(cnncli, monkeypatch, "killed", n_writes)
    result = cnncli("train", "--resume", "killed", "--threads", "1", "--json")
    assert result.code == 0
    killed = whole.parent / "killed"
    assert_same_arrays(whole / "last.npz", killed / "last.npz")
    assert_same_arrays(whole / "best.npz", killed / "best.npz")
    assert result.json["best_epoch"] == load_checkpoint(whole / "best.npz").epoch
    before, after = (load_checkpoint(run / "last.npz").metrics for run in (whole, killed))
    timeless = [
        [{k: v for k, v in line.items() if "second" not in k} for line in lines] for lines in (before, after)
    ]
    assert timeless[0] == timeless[1]
    assert (killed / "metrics.jsonl").read_text().count("\n") == 5


def test_a_finished_run_says_so_and_changes_nothing(whole: Path, cnncli: Cnncli) -> None:
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in whole.iterdir()}
    first = cnncli("train", "--resume", "whole")
    assert first.code == 0
    assert "run         whole, finished before: nothing is trained\n" in first.err
    assert cnncli("train", "--resume", "whole", "--set", "training.threads=1").out == first.out
    assert cnncli("eval", "whole").out.startswith(first.out)
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in whole.iterdir()} == before


def test_a_lost_line_of_the_metrics_comes_back(whole: Path, cnncli: Cnncli) -> None:
    metrics = (whole / "metrics.jsonl").read_text()
    (whole / "metrics.jsonl").write_text(metrics.partition("\n")[0] + "\n")
    assert cnncli("train", "--resume", "whole").code == 0
    assert (whole / "metrics.jsonl").read_text() == metrics


def test_epochs_can_be_added_under_a_constant_rate(whole: Path, cnncli: Cnncli) -> None:
    assert cnncli(*TRAIN, "--set", "training.epochs=2", "--run-dir", "longer").code == 0
    result = cnncli("train", "--resume", "longer", "--set", "training.epochs=5")
    assert result.code == 0
    assert "run         longer, resuming with epoch 3\n" in result.err
    longer = whole.parent / "longer"
    assert_same_arrays(whole / "last.npz", longer / "last.npz")
    assert_same_arrays(whole / "best.npz", longer / "best.npz")
    assert load_config(longer / "config.yaml").training.epochs == 5
    assert load_checkpoint(longer / "last.npz").config.training.epochs == 5


def test_added_epochs_survive_a_second_kill(
    whole: Path, cnncli: Cnncli, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cnncli(*TRAIN, "--set", "training.epochs=2", "--run-dir", "longer").code == 0

    def no_training(*rest: object) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr("cnncli.training.trainer.Trainer._run_epoch", no_training)
        with pytest.raises(KilledError):
            cnncli("train", "--resume", "longer", "--set", "training.epochs=5")
    assert cnncli("train", "--resume", "longer").code == 0
    assert_same_arrays(whole / "last.npz", whole.parent / "longer" / "last.npz")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["training.epochs=4"], "training.epochs: 5 before, 4 now (only a higher number"),
        (["seed=1"], "seed: 0 before, 1 now"),
        (["training.batch_size=8"], "training.batch_size: 16 before, 8 now"),
        (["optimizer.sgd.momentum=0.9"], "optimizer: adam"),
        (["training.epochs=6", "schedule=cosine"], "training.epochs: 5 before, 6 now (cosine fits"),
        (
            ["training.epochs=6", "schedule.constant.warmup=0.1"],
            "schedule.constant.warmup: 0.0 before, 0.1 now",
        ),
        (["data.dataset=mnist"], "data.dataset: "),
    ],
)
def test_every_other_difference_is_named_and_refused(
    whole: Path, cnncli: Cnncli, settings: list[str], message: str
) -> None:
    before = {path: path.read_bytes() for path in whole.iterdir()}
    for source in ([], ["--config", whole / "config.yaml"]):
        options = [option for setting in settings for option in ("--set", setting)]
        result = cnncli("train", "--resume", "whole", *source, *options)
        assert (result.code, result.out) == (2, "")
        assert f"  {message}" in result.err
    assert {path: path.read_bytes() for path in whole.iterdir()} == before


@pytest.mark.parametrize("schedule", ["cosine", "one_cycle", "constant.warmup=0.1", "step.warmup=0.5"])
def test_a_schedule_that_depends_on_the_end_cannot_be_extended(
    workspace: Path, cnncli: Cnncli, schedule: str
) -> None:
    setting = f"schedule.{schedule}" if "=" in schedule else f"schedule={schedule}"
    assert cnncli(*TRAIN, "--set", setting).code == 0
    result = cnncli("train", "--resume", "runs/tiny", "--set", "training.epochs=3")
    assert result.code == 2
    assert "training.epochs: 2 before, 3 now" in result.err


def test_a_step_schedule_goes_on_where_it_was(workspace: Path, cnncli: Cnncli) -> None:
    options = ("--set", "schedule.step.every=2", "--set", "schedule.step.factor=0.1")
    cnncli(*TRAIN, *options, "--set", "training.epochs=3", "--run-dir", "run")
    result = cnncli("train", "--resume", "run", "--set", "training.epochs=4", "--json")
    rates = [line["learning_rate"] for line in result.json["epochs"]]
    assert rates == pytest.approx([0.003, 0.003, 0.0003, 0.0003])


def test_a_dry_run_of_a_resumed_run(whole: Path, cnncli: Cnncli, monkeypatch: pytest.MonkeyPatch) -> None:
    train_and_die(cnncli, monkeypatch, "killed", 8)
    before = {path: path.read_bytes() for path in Path("killed").iterdir()}
    epoch = load_checkpoint(Path("killed/last.npz")).epoch
    result = cnncli("train", "--resume", "killed", "--dry-run")
    assert f"run         killed, resuming with epoch {epoch + 1}\n" in result.out
    assert {path: path.read_bytes() for path in Path("killed").iterdir()} == before


def test_changed_images_are_refused(whole: Path, cnncli: Cnncli) -> None:
    make_tiny_dataset(whole.parent / "tiny.npz", seed=1)
    result = cnncli("train", "--resume", "whole", "--set", "training.epochs=6")
    assert (result.code, result.out) == (1, "")
    assert "are not those that the run was trained on" in result.err


def test_a_damaged_checkpoint_is_not_replaced_by_a_new_start(whole: Path, cnncli: Cnncli) -> None:
    (whole / "last.npz").write_bytes((whole / "last.npz").read_bytes()[:1000])
    result = cnncli("train", "--resume", "whole")
    assert result.code == 1
    assert f"not a cnncli checkpoint: {Path('whole') / 'last.npz'}" in result.err


def forget_that_the_last_epoch_is_best(run: Path) -> None:
    """Let the first epoch be the best one in what last.npz knows."""
    last = load_checkpoint(run / "last.npz")
    first = {**last.metrics[0], "validation_accuracy": 1.0, "validation_loss": 0.0}
    dataclasses.replace(last, metrics=(first, *last.metrics[1:])).save(run / "last.npz")


def contents(run: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in run.iterdir()}


@pytest.mark.parametrize("fate", ["lost", "damaged", "of another run"])
def test_a_best_checkpoint_that_cannot_be_used_is_found_before_training(
    whole: Path, cnncli: Cnncli, fate: str
) -> None:
    best = whole / "best.npz"
    forget_that_the_last_epoch_is_best(whole)
    if fate == "lost":
        best.unlink()
    elif fate == "damaged":
        best.write_bytes(best.read_bytes()[:500])
    else:
        assert cnncli(*TRAIN, "--set", "training.epochs=1", "--run-dir", "other").code == 0
        shutil.copy(whole.parent / "other" / "best.npz", best)
    before = contents(whole)
    for options in ((), ("--set", "training.epochs=6")):
        result = cnncli("train", "--resume", "whole", *options)
        assert (result.code, result.out) == (1, "")
        assert str(Path("whole") / "best.npz") in result.err
    assert contents(whole) == before


@pytest.mark.parametrize("fate", ["lost", "damaged", "of another run"])
def test_the_best_checkpoint_is_written_again_where_the_last_epoch_is_best(
    whole: Path, cnncli: Cnncli, fate: str
) -> None:
    best, original = whole / "best.npz", (whole / "best.npz").read_bytes()
    if fate == "lost":
        best.unlink()
    elif fate == "damaged":
        best.write_bytes(original[:500])
    else:
        assert cnncli(*TRAIN, "--set", "training.epochs=1", "--run-dir", "other").code == 0
        shutil.copy(whole.parent / "other" / "best.npz", best)
    assert cnncli("train", "--resume", "whole").code == 0
    assert best.read_bytes() == original


def test_a_lost_last_checkpoint_is_no_new_start(whole: Path, cnncli: Cnncli) -> None:
    (whole / "last.npz").unlink()
    before = contents(whole)
    result = cnncli("train", "--resume", "whole")
    assert (result.code, result.out) == (1, "")
    assert "last.npz is missing" in result.err
    assert contents(whole) == before
    (whole / "metrics.jsonl").unlink()  # best.npz still tells that epochs were finished
    assert cnncli("train", "--resume", "whole").code == 1


def test_an_edited_configuration_counts_as_what_is_wanted(whole: Path, cnncli: Cnncli) -> None:
    config = whole / "config.yaml"
    text = config.read_text()
    config.write_text(text.replace("seed: 0", "seed: 7"))
    result = cnncli("train", "--resume", "whole")
    assert (result.code, result.out) == (2, "")
    assert "seed: 0 before, 7 now" in result.err
    config.write_text(text.replace("epochs: 5", "epochs: 6"))
    assert cnncli("train", "--resume", "whole").code == 0
    assert load_checkpoint(whole / "last.npz").epoch == 6
    assert load_checkpoint(whole / "last.npz").config == load_config(config)


def test_what_a_killed_program_left_half_written_is_removed(whole: Path, cnncli: Cnncli) -> None:
    left = [whole / ".last.npz.99999.tmp", whole / ".metrics.jsonl.7.tmp"]
    mine = whole / ".notes.txt.1.tmp"
    for path in (*left, mine):
        path.write_bytes(b"half")
    assert cnncli("train", "--resume", "whole", "--set", "training.epochs=6").code == 0
    assert not any(path.exists() for path in left)
    left[0].write_bytes(b"half")
    assert cnncli(*TRAIN, "--run-dir", "whole", "--overwrite").code == 0
    assert not left[0].exists()
    assert mine.exists()


def test_images_that_have_moved_can_be_named(whole: Path, cnncli: Cnncli) -> None:
    Path("elsewhere").mkdir()
    shutil.move("tiny.npz", "elsewhere/tiny.npz")
    lost = cnncli("train", "--resume", "whole", "--set", "training.epochs=6")
    assert (lost.code, lost.out) == (1, "")
    assert "tiny.npz: the data set of the run is no longer there; say where it is with --set" in lost.err
    moved = ("--set", "data.dataset=elsewhere/tiny.npz")
    assert cnncli("train", "--resume", "whole", "--set", "training.epochs=6", *moved).code == 0
    last = load_checkpoint(whole / "last.npz")
    assert last.epoch == 6
    assert last.config.data.dataset == str(Path("elsewhere/tiny.npz").resolve())
    make_tiny_dataset(Path("other.npz"), seed=9)
    other = cnncli(
        "train", "--resume", "whole", "--set", "training.epochs=7", "--set", "data.dataset=other.npz"
    )
    assert (other.code, other.out) == (1, "")
    assert "not those that the run was trained on" in other.err


def test_eval_names_the_images_that_it_read(whole: Path, cnncli: Cnncli) -> None:
    Path("elsewhere").mkdir()
    shutil.move("tiny.npz", "elsewhere/tiny.npz")
    place = Path("elsewhere", "tiny.npz")
    for named in ("elsewhere", str(place)):
        result = cnncli("eval", "whole", "--data-dir", named)
        assert result.code == 0
        assert result.err.splitlines()[0].endswith(f"test images of {place}")
