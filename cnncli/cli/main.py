"""The entry point: one command in, one exit code out.

Commands are imported when they are used: ``cnncli --help`` costs no NumPy.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import NamedTuple

import click

from cnncli import __version__
from cnncli.cli.interrupts import ignore_interrupts, interrupts
from cnncli.cli.terminal import discard_streams, flush_streams, make_streams_lenient, notices
from cnncli.errors import CnncliError, ConfigError, UsageError

DONE = 0
FAILED = 1
REFUSED = 2
INTERRUPTED = 130
NO_READER = 141

# what to try where a command runs out of memory
MEMORY_ADVICE = {
    "train": "lower training.batch_size or training.shard_size, or use fewer --threads",
    "profile": "lower training.batch_size or training.shard_size, or use fewer --threads",
    "eval": "use fewer --threads",
    "inspect-shapes": "make the network or its images smaller",
    "gradcheck": "make the network or its images smaller",
    "explain": "ask for fewer or smaller images, a smaller kernel or fewer filters",
}


class LazyCommand(NamedTuple):
    """Where a command is, and its line in the help of the program."""

    module: str
    attribute: str
    summary: str


COMMANDS: Mapping[str, LazyCommand] = {
    "init": LazyCommand("init", "init", "Write a commented starter configuration."),
    "train": LazyCommand("train", "train", "Train a network, then evaluate it on the test set."),
    "eval": LazyCommand("evaluate", "evaluate_checkpoint", "Evaluate a checkpoint on a data set."),
    "predict": LazyCommand("predict", "predict_pictures", "Recognise the digit in a picture."),
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


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="cnncli %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Train convolutional networks on MNIST with NumPy alone, and see every number on the way.

    \b
    First steps:
      cnncli init my.yaml                      write a configuration
      cnncli inspect-shapes --config my.yaml   see the network it describes
      cnncli train --config my.yaml            train it, test it, keep it
      cnncli eval runs/my                      look closer at what it learnt
    """
    if ctx.invoked_subcommand is None:
        notices().write(ctx.get_help())
        ctx.exit(REFUSED)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return the exit code.

    0 done; 1 the work failed; 2 usage or configuration; 130 interrupted by SIGINT or SIGTERM;
    141 the reader of a pipe has gone. Whatever a user can cause is one message on standard error.
    """
    make_streams_lenient()
    try:
        return _run(arguments)
    except BrokenPipeError:
        discard_streams()
        return NO_READER
    except OSError:  # the message itself could not be written
        discard_streams()
        return FAILED


def _run(arguments: Sequence[str]) -> int:
    try:
        with interrupts():
            code = _invoke(arguments)
            flush_streams()
            return code
    except click.ClickException as error:
        return _fail(REFUSED, _usage_message(error))
    except (ConfigError, UsageError) as error:
        return _fail(REFUSED, str(error))
    except CnncliError as error:
        return _fail(FAILED, str(error))
    except KeyboardInterrupt as interrupt:
        ignore_interrupts()
        notices().write(str(interrupt) or "interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except OSError as error:
        return _fail(FAILED, _os_message(error))
    except MemoryError as error:
        return _fail(FAILED, _memory_message(error, arguments))


def _invoke(arguments: Sequence[str]) -> int:
    # not `cli.main`: it turns an interrupt and a broken pipe into exit code 1
    try:
        with cli.make_context("cnncli", list(arguments)) as ctx:
            cli.invoke(ctx)
    except click.exceptions.Exit as finished:
        return finished.exit_code
    return DONE


def _fail(code: int, message: str) -> int:
    stream = notices()
    for line in message.splitlines():
        # a list under a message is indented
        stream.write(line if line.startswith(" ") else f"{stream.red('error:')} {line}")
    return code


def _usage_message(error: click.ClickException) -> str:
    """Word Click's errors as all others: ``--threads: expected an integer of at least 1, got 0``."""
    message = error.format_message()
    if isinstance(error, click.NoSuchOption):
        near = f"; did you mean {error.possibilities[0]}?" if error.possibilities else ""
        message = f"no such option {error.option_name}{near}"
    elif isinstance(error, click.BadParameter) and error.message and error.param is not None:
        message = f"{error.param.opts[0]}: {error.message}"
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    command = ctx.command_path if ctx is not None else "cnncli"
    return f"{message[0].lower()}{message[1:].removesuffix('.')} (see {command} --help)"


def _os_message(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename is not None else reason


def _memory_message(error: MemoryError, arguments: Sequence[str]) -> str:
    detail = f": {error}" if str(error) else ""
    command = next((word for word in arguments if not word.startswith("-")), "")
    advice = f"; {MEMORY_ADVICE[command]}" if command in MEMORY_ADVICE else ""
    return f"out of memory{detail}{advice}"
