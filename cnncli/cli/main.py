"""The entry point: one command in, one exit code out."""

from __future__ import annotations

from collections.abc import Sequence

import click

from cnncli import __version__
from cnncli.cli.commands import LazyGroup
from cnncli.cli.interrupts import ignore_interrupts, interrupts
from cnncli.cli.streams import discard_streams, flush_streams, make_streams_lenient, notices
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
