"""What options accept and refuse, and how they say so."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest

from cnncli.errors import CnncliError, OptionError
from cnncli.nn import options
from cnncli.nn.options import Option, one_of, option_of, optional, written

NAN, INF = math.nan, math.inf
NOT_NUMBERS = (None, True, False, "1", "", [1], {"a": 1}, np.array([1, 2]), 1j)


@pytest.mark.parametrize(
    ("option", "accepted", "refused"),
    [
        (options.positive_int, {1: 1, 10**12: 10**12, np.int64(3): 3}, (0, -1, 1.0, 1.5, *NOT_NUMBERS)),
        (options.non_negative_int, {0: 0, 7: 7}, (-1, 0.0, *NOT_NUMBERS)),
        (
            options.positive_float,
            {1: 1.0, 1e-300: 1e-300, np.float32(0.5): 0.5},
            (0, -1, NAN, INF, *NOT_NUMBERS),
        ),
        (options.non_negative_float, {0: 0.0, 3: 3.0}, (-1e-9, NAN, INF, 10**400, *NOT_NUMBERS)),
        (options.fraction, {0: 0.0, 1: 1.0, 0.5: 0.5}, (-0.1, 1.1, NAN, *NOT_NUMBERS)),
        (options.fraction_below_one, {0: 0.0, 0.999: 0.999}, (1, 1.0, -0.1, NAN, *NOT_NUMBERS)),
        (options.boolean, {True: True, False: False}, (0.5, 2, "yes", "true", None, [True], np.True_)),
        (options.text, {"mnist": "mnist"}, ("", None, 1, True, ["mnist"], b"mnist")),
        (options.positive_pair, {3: (3, 3), (1, 2): (1, 2)}, (0, (0, 1), (1,), (1, 2, 3), 1.5, "same")),
        (
            options.padding_sides,
            {0: (0, 0), (0, 2): (0, 2), "same": "same"},
            (-1, (0, -1), "Same", "valid", ("same", "same"), np.array([1, 2])),
        ),
        (
            options.beta_pair,
            {(0.9, 0.999): (0.9, 0.999), (0, 0): (0.0, 0.0)},
            (0.9, (0.9,), (0.9, 1), ("0", 0)),
        ),
        (one_of("he", "glorot"), {"he": "he"}, ("He", "", None, 1, ["he"])),
        (optional(options.positive_int), {None: None, 2: 2}, (0, "null", True)),
    ],
    ids=lambda value: getattr(value, "expected", ""),
)
def test_accepts_and_refuses(option: Option[Any], accepted: dict[Any, Any], refused: tuple[Any, ...]) -> None:
    for value, expected in accepted.items():
        result = option("width", value)
        assert result == expected
        assert type(result) is type(expected)
    for value in refused:
        with pytest.raises(OptionError) as caught:
            option("width", value)
        assert caught.value.option == "width"
        assert caught.value.expected == option.expected
        assert caught.value.got == written(value)
        assert str(caught.value) == f"width: expected {option.expected}, got {written(value)}"


def test_pairs_may_be_lists() -> None:
    assert options.positive_pair("stride", [2, 1]) == (2, 1)
    assert options.beta_pair("betas", [0.7, 0.9]) == (0.7, 0.9)


def test_faults_are_errors_of_the_package() -> None:
    with pytest.raises(CnncliError):
        options.positive_int("epochs", 0)
    with pytest.raises(ValueError, match=r"^epochs: expected an integer of at least 1, got 0$"):
        options.positive_int("epochs", 0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (3, "3"),
        ("three", "'three'"),
        ([1, None, "a"], "[1, null, 'a']"),
        ((1, 2), "[1, 2]"),
        (list(range(9)), "[0, 1, 2, 3, 4, 5, ...]"),
        ({"a": 1}, "a mapping"),
    ],
)
def test_values_are_written_as_in_yaml(value: object, text: str) -> None:
    assert written(value) == text


def test_long_values_are_shortened() -> None:
    text = written("x" * 1000)
    assert len(text) == 80
    assert text.endswith("...")
    assert len(written(10**400)) == 80


def test_annotations_carry_their_check() -> None:
    def constructor(
        *, width: options.PositiveInt, stride: options.OptionalPair = None, bias: bool = True
    ) -> None: ...

    width, stride, bias = (
        option_of(parameter.annotation)
        for parameter in inspect.signature(constructor, eval_str=True).parameters.values()
    )
    assert width is options.positive_int
    assert stride is not None
    assert stride.expected == options.positive_pair.expected + ", or null"
    assert bias is options.boolean


@pytest.mark.parametrize(
    ("annotation", "good", "bad"), [(int, -3, 1.5), (float, -2.5, NAN), (str, "a", 1), (bool, False, 0)]
)
def test_plain_types_have_a_check(annotation: type, good: Any, bad: Any) -> None:
    option = option_of(annotation)
    assert option is not None
    assert option("value", good) == good
    with pytest.raises(OptionError):
        option("value", bad)


def test_other_types_have_none() -> None:
    assert option_of(np.ndarray) is None
    assert option_of(list[int]) is None


def test_a_limit_is_named_where_it_is_exceeded() -> None:
    up_to_9 = options.count_up_to(9)
    assert (up_to_9("epochs", 1), up_to_9("epochs", 9)) == (1, 9)
    for value, expected in ((0, "an integer of at least 1"), (10, "an integer from 1 to 9")):
        with pytest.raises(OptionError, match=f"^epochs: expected {expected}, got {value}$"):
            up_to_9("epochs", value)
