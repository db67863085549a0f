"""What may change when a run is taken up again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cnncli.cli.plan import Plan
from cnncli.config import (
    Config,
    Difference,
    build_schedule,
    differences,
    load_config,
)
from cnncli.data import CATALOG
from cnncli.errors import UsageError
from cnncli.training import RunDirectory


def plan_resumed_run(run_path: Path, config_path: Path | None, overrides: Sequence[str]) -> Plan:
    """Plan to go on with the run in a directory, with its own configuration or one that hardly differs.

    Raises
    ------
    CheckpointError : there is no run in the directory, or its checkpoint is damaged
    ConfigError : the configuration has faults
    UsageError : it differs in something that cannot change any more; every difference is named
    """
    run = RunDirectory(run_path)
    checkpoint = run.load_last()
    if checkpoint is not None:
        run.require_best(checkpoint.metrics)
    # without a checkpoint the run died before its first, so nothing but the configuration is there
    recorded = run.load_config() if checkpoint is None else checkpoint.config
    # config.yaml and not the checkpoint: whoever edits it to train longer means it, as with --set
    wanted = load_config(run.config if config_path is None else config_path, overrides)
    _check_differences(run, recorded, wanted)
    return Plan(wanted, run, checkpoint=checkpoint, recorded=recorded)


def _check_differences(run: RunDirectory, recorded: Config, wanted: Config) -> None:
    refused = [
        f"  {difference}{_reason(difference, wanted)}"
        for difference in differences(recorded, wanted)
        if not _may_change(difference, wanted)
    ]
    if refused:
        raise UsageError(
            "\n".join([f"{run.path}: cannot go on with what differs from the run so far:", *refused])
        )


def _may_change(difference: Difference, wanted: Config) -> bool:
    if difference.key_path == "training.threads":
        return True
    if difference.key_path == "data.directory":
        # the files are verified, so they are the same wherever they are
        return wanted.data.dataset in CATALOG
    if difference.key_path == "data.dataset":
        # images of the user's own may have moved; the trainer compares them with the run's
        return not {difference.before, difference.after} & CATALOG.keys()
    if difference.key_path == "training.epochs":
        return bool(difference.after > difference.before) and not _depends_on_end(wanted)
    return False


def _reason(difference: Difference, wanted: Config) -> str:
    if difference.key_path == "seed":
        return " (null draws another; without --config the run keeps its own)"
    if difference.key_path != "training.epochs":
        return ""
    if difference.after < difference.before:
        return " (only a higher number can be trained)"
    name = wanted.schedule.name
    return f" ({name} fits its rates to the number; only constant and step without warmup can be extended)"


def _depends_on_end(config: Config) -> bool:
    return build_schedule(config, total_steps=1, steps_per_epoch=1).depends_on_end
