"""The help: complete, and cheap."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest

from cnncli.cli.main import COMMANDS
from cnncli.training.gradients import SHARDS_IN_FLIGHT
from tests.cli.program import Cnncli, environment


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], []])
def test_the_help_of_the_program_imports_nothing_heavy(arguments: list[str], tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from cnncli.__main__ import main\n"
        f"sys.argv = ['cnncli', *{arguments}]\n"
        "try:\n"
        "    main()\n"
        "finally:\n"
        "    print(sorted({'numpy', 'yaml', 'tqdm'} & sys.modules.keys()), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr.splitlines()[-1] == "[]"


def loaded(name: str) -> click.Command:
    entry = COMMANDS[name]
    command = getattr(import_module(f"cnncli.cli.{entry.module}"), entry.attribute)
    assert isinstance(command, click.Command)
    return command


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_in_the_help_is_the_first_of_the_command(name: str) -> None:
    command = loaded(name)
    assert command.name == name
    assert (command.help or "").partition("\n\n")[0] == COMMANDS[name].summary


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_help(name: str) -> None:
    for parameter in loaded(name).params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name


def test_help_fits_80_columns(cnncli: Cnncli) -> None:
    for arguments in ([], *([name] for name in COMMANDS)):
        text = cnncli(*arguments, "--help").out
        assert max(map(len, text.splitlines())) <= 80


def test_the_table_of_shapes_does_not_import_the_engine(workspace: Path) -> None:
    script = (
        "import sys\n"
        "from cnncli.cli.main import cli\n"
        f"cli.main(['inspect-shapes', '--config', {str(workspace / 'tiny.yaml')!r}], standalone_mode=False)\n"
        "print('cnncli.training' in sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=workspace, env=environment(), capture_output=True, text=True
    )
    assert "MACs" in done.stdout
    assert done.stderr == "False\n"


def test_the_help_of_threads_names_as_many_as_can_be_busy() -> None:
    assert SHARDS_IN_FLIGHT == 16
    option = next(o for o in loaded("train").params if o.name == "threads")
    assert isinstance(option, click.Option)
    assert option.help is not None
    assert "at most 16" in option.help
