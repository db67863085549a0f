"""Every fault of a configuration, with its whole message: the cases and their messages are in faults.txt.

A case is the text of ``c.yaml``, after lines of ``--set KEY=VALUE`` where it has any; its messages follow
below ``->``. Remake them with ``python -m tests.config.test_faults``, and read the difference.
"""

from __future__ import annotations

from pathlib import Path

from cnncli.config import build_network, parse_config
from cnncli.errors import ConfigError

CASES = Path(__file__).parent / "faults.txt"
END = "\n====\n"


def messages(case: str) -> str:
    """Read the configuration of a case as ``c.yaml`` in an empty directory, and build it for MNIST."""
    lines = case.split("\n")
    overrides = [line.removeprefix("--set ") for line in lines if line.startswith("--set ")]
    text = "\n".join(lines[len(overrides) :])
    try:
        config = parse_config(text, "c.yaml", "/nowhere", overrides)
        build_network(config, (1, 28, 28), 10)
    except ConfigError as error:
        return str(error)
    raise AssertionError(f"there is no fault in\n{case}")


def remade(content: str) -> str:
    cases = [entry.partition("\n->\n")[0] for entry in content.removesuffix(END).split(END)]
    return "".join(f"{case}\n->\n{messages(case)}{END}" for case in cases)


def test_every_fault_has_its_message() -> None:
    content = CASES.read_text(encoding="utf-8")
    assert content.count("\n->\n") > 100
    assert remade(content) == content


if __name__ == "__main__":
    CASES.write_text(remade(CASES.read_text(encoding="utf-8")), encoding="utf-8")
