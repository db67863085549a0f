"""The commands by name, imported when they are used: ``cnncli --help`` costs no NumPy."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from importlib import import_module
from typing import NamedTuple

import click


class LazyCommand(NamedTuple):
    """Where a command is, and its line in the help of the program."""

    module: str
    attribute: str
    summary: str


COMMANDS: Mapping[str, LazyCommand] = {
    "init": LazyCommand("init", "init", "Write a commented starter configuration."),
    "train": LazyCommand("train", "train", "Train a network, then evaluate it on the test set."),
    "eval": LazyCommand("evaluate", "evaluate_checkpoint", "Evaluate a checkpoint on a data set."),
    "predict": LazyCommand("predict", "predict_pictures", "Tell the digits, or other classes, on pictures."),
    "inspect-shapes": LazyCommand(
        "inspect_shapes", "inspect_shapes", "Show shapes, parameters and cost of every layer."
    ),
    "explain": LazyCommand(
        "explain", "explain_topic", "Show every number of im2col, col2im, conv or max-pool."
    ),
    "gradcheck": LazyCommand(
        "gradcheck", "gradcheck", "Check every gradient against differences of forward."
    ),
    "profile": LazyCommand("profile", "profile_network", "Show where the time of a training step goes."),
    "download": LazyCommand("download", "download", "Download a data set and verify it."),
    "list": LazyCommand(
        "listing", "list_options", "List every layer, optimizer and schedule with its options."
    ),
}


class LazyGroup(click.Group):
    """A group whose commands are those of `COMMANDS`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        entry = COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(f"cnncli.cli.{entry.module}"), entry.attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = difflib.get_close_matches(name, COMMANDS, n=1)
            advice = f"did you mean {near[0]}?" if near else f"there are {', '.join(COMMANDS)}"
            raise click.UsageError(f"no such command {name}; {advice}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])
