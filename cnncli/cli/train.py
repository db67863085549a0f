"""``cnncli train``: a configuration in, a trained and evaluated network out."""

from __future__ import annotations

from pathlib import Path

import click

from cnncli.cli.evaluation_report import verdict
from cnncli.cli.inspect_shapes import facts_as_json, write_facts
from cnncli.cli.options import (
    json_option,
    path_option,
    set_option,
    threads_option,
)
from cnncli.cli.plan import Plan, plan_new_run
from cnncli.cli.remains import telling_what_remains
from cnncli.cli.resume import plan_resumed_run
from cnncli.cli.run_summary import write_outcome, write_summary
from cnncli.cli.streams import Stream, notices, results, write_json
from cnncli.cli.training_run import Outcome, carry_out
from cnncli.cli.workers import start_workers, thread_count
from cnncli.nn.inspection import inspect_network
from cnncli.training import RunLock


@click.command()
@path_option("--config", "config_path", metavar="FILE", summary="Configuration to train.")
@set_option()
@path_option(
    "--run-dir",
    "run_path",
    metavar="DIR",
    summary="Directory to keep the run in. By default the next free one of runs/NAME, runs/NAME-2, ...",
)
@click.option("--overwrite", is_flag=True, help="Replace the run that is in the directory already.")
@path_option(
    "--resume",
    "resume_path",
    metavar="RUN_DIR",
    summary="Go on with the run in a directory; --set training.epochs=N may add epochs.",
)
@threads_option()
@click.option("--dry-run", is_flag=True, help="Show what would be done, and write nothing.")
@click.option("--quiet", is_flag=True, help="Write the result alone.")
@json_option()
@click.pass_context
def train(
    ctx: click.Context,
    config_path: Path | None,
    overrides: tuple[str, ...],
    run_path: Path | None,
    overwrite: bool,
    resume_path: Path | None,
    threads: int | None,
    dry_run: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Train a network, then evaluate it on the test set.

    The run directory holds config.yaml, metrics.jsonl, last.npz (to go on from) and best.npz (the
    epoch with the highest validation accuracy, or the last one). The test set is looked at once, at
    the end. An interrupted run keeps its last finished epoch; --resume goes on as if nothing had
    happened.

    \b
    cnncli train --config configs/quickstart.yaml
    cnncli train --config my.yaml --set training.epochs=3 --run-dir runs/short
    cnncli train --resume runs/short
    """
    if config_path is None and resume_path is None:
        raise click.UsageError(
            "give --config FILE to start a run, or --resume RUN_DIR to go on with one", ctx
        )
    if resume_path is not None and (run_path is not None or overwrite):
        raise click.UsageError("--run-dir and --overwrite are for new runs, not for --resume", ctx)
    with RunLock() as lock:
        if resume_path is not None:
            if not dry_run and resume_path.is_dir():
                lock.take(resume_path)
            plan = plan_resumed_run(resume_path, config_path, overrides)
        else:
            assert config_path is not None
            plan = plan_new_run(config_path, overrides, run_path, overwrite)
        if dry_run:
            _show(plan, threads, as_json=as_json)
            return
        stream = Stream(None) if quiet else notices()
        with start_workers(threads, plan.config) as workers:
            outcome = carry_out(plan, workers, stream, lock)
    with telling_what_remains(outcome.trainer, outcome.run):
        _write_result(plan, outcome, stream, as_json=as_json)


def _write_result(plan: Plan, outcome: Outcome, stream: Stream, *, as_json: bool) -> None:
    if not plan.is_finished:
        stream.write()
    if as_json:
        write_json(outcome.to_dict())
    else:
        results().write(results().bold(verdict("test", outcome.test)))
    stream.write()
    write_outcome(outcome.trainer, outcome.run, stream)


def _show(plan: Plan, threads: int | None, *, as_json: bool) -> None:
    """Show what a run would do, from the configuration and the description of its data alone."""
    description = plan.describe_data()
    network = plan.build_network(description)
    facts = inspect_network(network)
    if as_json:
        write_json(
            {"run_dir": str(plan.run.path), "config": plan.config.to_dict(), "network": facts_as_json(facts)}
        )
        return
    stream = results()
    n_threads = thread_count(threads, plan.config)
    write_summary(plan, description, network, n_threads, plan.run.path, stream)
    write_facts(facts, stream)
    stream.write()
    stream.write("dry run: nothing was trained or written")
