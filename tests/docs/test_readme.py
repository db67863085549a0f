"""What the README says is so: its links, its examples, its transcripts, the figures of its tables."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from cnncli.cli.main import COMMANDS, cli
from cnncli.config import build_network, load_config, parse_config
from cnncli.nn.inspection import inspect_network
from docs.remake_readme import COMMANDS as TRANSCRIPTS
from docs.remake_readme import WIDTH, transcript

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "data/README.md"])


def stated_transcript(name: str) -> str:
    found = re.search(rf"<!-- transcript: {name} -->\n(.*?)<!-- end -->", README, flags=re.DOTALL)
    assert found is not None
    return found[1]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=[page.relative_to(ROOT).as_posix() for page in PAGES])
def test_links_lead_to_files(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_mentioned(command: str) -> None:
    assert f"cnncli {command}" in README


def test_the_two_commands_are_one_line_each() -> None:
    for name in ("train", "test"):
        text = re.search(rf"<!-- {name} -->\n```bash\n(.*?)```\n<!-- end -->", README, flags=re.DOTALL)
        assert text is not None
        assert text[1].count("\n") == 1


def test_the_example_configuration_is_one(tmp_path: Path) -> None:
    (text,) = blocks("yaml")
    config = parse_config(text, "README.md", ROOT / "configs")
    network = build_network(config, (1, 28, 28), 10, np.random.default_rng(0))
    assert network.output_shape == (10,)


def test_the_python_example_gives_what_it_says() -> None:
    (text,) = blocks("python")
    names: dict[str, object] = {}
    exec(text.replace("import os\n", "").replace('os.environ["OPENBLAS_NUM_THREADS"] = "1"', ""), names)
    x, cols, y = names["x"], names["cols"], names["y"]
    assert isinstance(x, np.ndarray)
    assert isinstance(cols, np.ndarray)
    assert isinstance(y, np.ndarray)
    assert cols.shape == (4, 4)
    assert y.shape == (2, 2, 2, 1)
    stated = re.findall(r"-?\d+\.", text[text.index("# array(") : text.index("layer =")])
    back = eval("col2im(cols, x.shape, kernel_size=2)[0, :, :, 0]", names)
    assert back.ravel().tolist() == [float(number) for number in stated]


@pytest.mark.parametrize("name", ["inspect-shapes", "errors"])
def test_transcripts_are_current(name: str, tmp_path: Path) -> None:
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    assert stated_transcript(name) == transcript(name, tmp_path)


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_transcripts_are_as_wide_as_said(name: str) -> None:
    assert f"terminal of {WIDTH} columns" in README
    # messages are never wrapped: whoever searches for one finds it
    lines = [line for line in stated_transcript(name).splitlines() if not line.startswith("error: ")]
    assert max(map(len, lines)) <= WIDTH


def test_the_table_of_configurations_is_right() -> None:
    rows = re.findall(r"\| `(\w+\.yaml)` \|[^|]*\| ([\d,]+) \|", README)
    assert len(rows) == 5
    for name, parameters in rows:
        config = load_config(ROOT / "configs" / name)
        network = build_network(config, (1, 28, 28), 10, np.random.default_rng(0))
        assert f"{inspect_network(network).total_parameters:,}" == parameters


def test_every_option_of_every_command_has_a_help_text() -> None:
    for name in COMMANDS:
        command = cli.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        for parameter in command.params:
            if parameter.param_type_name == "option":
                assert getattr(parameter, "help", None), f"{name} {parameter.name}"


def test_help_of_every_command_works() -> None:
    for name in COMMANDS:
        assert CliRunner().invoke(cli, [name, "--help"]).exit_code == 0
