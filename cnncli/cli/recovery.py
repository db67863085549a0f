"""What is kept of a run that ends early, and the command to resume it."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from cnncli.cli import formats
from cnncli.errors import CheckpointError, CnncliError, DivergenceError, TrainingError
from cnncli.training import Checkpoint, RunDirectory, Trainer, is_finished, load_checkpoint

# what helps against a limit of the operating system
ADVICE = {
    errno.EMFILE: "allow the program more open files (ulimit -n)",
    errno.EAGAIN: "use fewer --threads, or allow the user more processes (ulimit -u)",
}

E = TypeVar("E", bound=CnncliError)


def interruption(trainer: Trainer, run: RunDirectory | None) -> str:
    """Word an interrupt: what is kept, and how to resume. `run` is None before it has begun."""
    if run is None:
        return "interrupted"
    last = _last_checkpoint(run)
    kept, command = _kept(trainer, run, last), _next_command(trainer, run, last)
    return f"interrupted: {kept}\n{_verb(trainer, last)} with: {command}"


def with_recovery(error: E, trainer: Trainer, run: RunDirectory | None) -> E:
    """Add to an error what is kept of the run, and how to resume where that can help."""
    if run is None or not run.config.is_file():
        return error
    last = _last_checkpoint(run)
    lines = [str(error), f"  {_kept(trainer, run, last)}"]
    # the same numbers would come out again
    if not isinstance(error, DivergenceError):
        lines.append(f"  {_verb(trainer, last)} with: {_next_command(trainer, run, last)}")
    return type(error)("\n".join(lines))


@contextmanager
def recovery_of_result(trainer: Trainer, run: RunDirectory) -> Iterator[None]:
    """Tell where a finished run is, if its result cannot be written or its writing is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(interruption(trainer, run)) from None
    except BrokenPipeError:
        raise
    except OSError as error:
        raise with_recovery(system_failure(error), trainer, run) from None


def system_failure(error: OSError) -> TrainingError:
    """Word what the operating system has refused."""
    place = f"{error.filename}: " if error.filename is not None else ""
    advice = f"; {ADVICE[error.errno]}" if error.errno in ADVICE else ""
    return TrainingError(f"{place}{error.strerror or error}{advice}")


def _last_checkpoint(run: RunDirectory) -> Checkpoint | None:
    """Read what the disk holds: the trainer may be ahead of it."""
    try:
        return load_checkpoint(run.last)
    except CheckpointError:
        return None


def _kept(trainer: Trainer, run: RunDirectory, last: Checkpoint | None) -> str:
    training = trainer.config.training
    if last is None:
        return f"no epoch was finished; {run.path} holds the configuration alone"
    if is_finished(last.metrics, training):
        return f"training is done, the best epoch is kept in {run.best}"
    if last.epoch == 0:
        return f"no epoch was finished; {run.last} is the start"
    return f"epoch {last.epoch} of {training.epochs} is kept in {run.last}"


def _verb(trainer: Trainer, last: Checkpoint | None) -> str:
    return "evaluate" if last is not None and is_finished(last.metrics, trainer.config.training) else "resume"


def _next_command(trainer: Trainer, run: RunDirectory, last: Checkpoint | None) -> str:
    if last is not None and is_finished(last.metrics, trainer.config.training):
        return formats.command("eval", run.path)
    return formats.command("train", "--resume", run.path)
