"""The options of a class as its constructor declares them, and values that none or few accept."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from cnncli.errors import OptionError
from cnncli.nn.options import Option, option_of

# for every kind of option at least one of these is wrong
STRANGE_VALUES: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 2.5, -0.5, 10**9),
    *(float("nan"), float("inf"), np.bool_(True), np.array([1, 2]), np.array([0.5, 0.5])),
    *("", "three", "1", "true", "Same", b"1"),
    *([], [1], [1, 2, 3], [0, 1], [1, -1], [1.0, 2.0], ["same", 1], [[1, 2], 1], {"a": 1}, {1}),
)


def options_of(cls: type) -> dict[str, Option[Any]]:
    """Give the check of every option: keyword-only arguments but for `rng` and `dtype`."""
    options = {}
    for name, parameter in inspect.signature(cls, eval_str=True).parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY and name not in ("rng", "dtype"):
            check = option_of(parameter.annotation)
            assert check is not None, f"{cls.__name__}: {name} has no check"
            options[name] = check
    return options


def refused_values(cls: type) -> list[tuple[str, Any]]:
    """List (option, value) for every strange value that the annotation refuses."""
    refused = []
    for name, check in options_of(cls).items():
        for value in STRANGE_VALUES:
            try:
                check(name, value)
            except OptionError:
                refused.append((name, value))
    return refused
