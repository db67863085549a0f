"""Configurations: YAML, what it means, and ``--set`` arguments."""

from __future__ import annotations

from pathlib import Path
from random import Random

from cnncli.config import dump_config, load_config, parse_config
from tests.config.test_mutations import BARE, LINES, PATHS
from tests.fuzz.mutation import TOKENS, mutate_bytes, mutate_text
from tests.fuzz.target import Case, require

TAGS = (
    *(
        "!!python/object/apply:os.system [true]",
        "!!python/name:os.system",
        "!!binary aGk=",
        "!!int 3",
        "!!set {a}",
    ),
    *(
        "!local a",
        "!<tag:yaml.org,2002:str> a",
        "&a 1",
        "*a",
        "&a [*a]",
        "<<: *a",
        "<<: {epochs: 3}",
        "? a",
        "? [a]",
    ),
    *(
        "| \n  text\n",
        ">-\n  text\n",
        '"\\x41"',
        '"\\UFFFFFFFF"',
        "%YAML 1.1\n---\n",
        "%TAG ! a\n---\n",
        "---\n",
    ),
    *(
        "...\n",
        "{a: 1, a: 2}",
        "[1, 2, 3]",
        "[[[[1]]]]",
        "{a: {b: {c: 1}}}",
        "epochs: 3",
        "training: {epochs: 3}",
    ),
)
KEYS = (
    *(*PATHS, "", ".", "a..b", "network[-1]", "network[99999999]", "network.99", "network[1", "seed[0]"),
    *("training", "training.early_stopping.patience", "network[0].conv2d.padding", "data.dataset"),
    *("a." * 30 + "b", "a." * 3000 + "b", "network" + "[0]" * 500, "x" * 5000, "\x1b[31m", "é.ü", "seed "),
)
FRAGMENTS = (*TOKENS, *TAGS)
PLAIN = (
    *("0", "1", "2", "3", "5", "28", "1000", "0.5", "1e-3", "1.5", "0.999", "null", "true", "same", "[1, 2]"),
    *(
        "relu",
        "adam",
        "sgd",
        "cosine",
        "{}",
        "[0.5, 0.9]",
        '"1"',
        "he",
        "small",
        "fashion-mnist",
        "./own.npz",
    ),
)


def bomb(levels: int, width: int) -> str:
    """Write a document of aliases: each list holds the one before it several times."""
    lines = ["a0: &a0 [lol]"]
    for level in range(1, levels):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * width)}]")
    return "\n".join(lines)


class ConfigTarget:
    """The five configurations, damaged; one that is read must be written and read to the same again."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "c.yaml"

    def make(self, rng: Random) -> Case:
        text = rng.choice(BARE)
        kind = rng.randrange(20)
        if kind <= 6:
            text = mutate_text(text, rng, FRAGMENTS, most=2)
        elif kind <= 14:
            text = _with_other_value(text, rng)
        elif kind == 15:
            text = "\n".join(rng.choices(LINES, k=rng.randrange(25)))
        elif kind == 16:
            text = rng.choice(EXTREMES)(rng) + rng.choice(("", text))
        content = text.encode(_encoding(rng), "surrogatepass")
        if kind >= 17:
            content = mutate_bytes(content, rng)
        arguments = tuple(_argument(rng) for _ in range(rng.choice((0, 0, 0, 0, 0, 1, 1, 2))))
        return Case(content, arguments)

    def read(self, case: Case) -> None:
        config = load_config(self.path, case.arguments)
        again = parse_config(dump_config(config), "dumped", "/")
        require(again == config, "written and read again it is another configuration")


def _encoding(rng: Random) -> str:
    return rng.choice(("utf-8",) * 60 + ("utf-8-sig", "utf-16", "utf-32", "utf-7"))


def _argument(rng: Random) -> str:
    key, value = rng.choice(KEYS), rng.choice(rng.choice((PLAIN, FRAGMENTS)))
    if rng.random() < 0.2:
        key = mutate_text(key, rng)
    return key + rng.choice(("=", "=", "=", "")) + value


def _with_other_value(text: str, rng: Random) -> str:
    """Exchange what stands behind one of the colons."""
    pieces = text.split(": ")
    plain = [index for index, piece in enumerate(pieces) if index and piece[0] not in "{["]
    index = rng.choice(rng.choice((plain, plain, plain, range(1, len(pieces)))))
    end = min((at for at in map(pieces[index].find, ",}\n") if at >= 0), default=len(pieces[index]))
    values = rng.choice((PLAIN, PLAIN, FRAGMENTS))
    pieces[index] = rng.choice(values) + pieces[index][end:]
    return ": ".join(pieces)


def _many(piece: str, rng: Random) -> str:
    return piece * rng.choice((30, 1000, 5000))


# those that are as long as a configuration may be are in `test_bombs`
EXTREMES = (
    lambda rng: bomb(rng.choice((3, 10, 60)), rng.choice((2, 10, 30))),
    lambda rng: _many(
        rng.choice(("[", "{", "- ", "? ", "!", "&a ", "{a: ", '"', "'", "#", "\t", "%A\n", "|\n")), rng
    ),
    lambda rng: "a: " + _many("x", rng),
    lambda rng: "".join(f"key{number}: 1\n" for number in range(rng.choice((30, 600)))),
    lambda rng: "network:\n" + "".join(f"  - relo{number}\n" for number in range(rng.choice((30, 600)))),
    lambda rng: "network:\n" + "  - relu\n" * rng.choice((30, 1000)),
    lambda rng: "seed: " + "9" * rng.choice((29, 30, 31, 4301, 100_000)) + "\n",
    lambda rng: (
        "seed: 1" + "0" * rng.choice((20, 100_000)) + rng.choice(("e5", ".0", "e-300000", "_0")) + "\n"
    ),
    lambda rng: "\n".join(f"k{number}: &k{number} 1" for number in range(600)) + "\n",
    lambda rng: '"' + _many("\\x41", rng) + '": 1\n',
    lambda rng: "data: {dataset: ./" + "a/" * rng.choice((10, 3000)) + "}\n",
)
