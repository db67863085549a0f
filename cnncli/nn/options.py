"""What an option may be: the types that stand in the signatures of layers, optimizers, schedules.

A signature is the schema of its YAML entry. ``out_channels: PositiveInt`` says to a type checker
that the option is an ``int``; to the configuration reader, and to `checked`, which wraps every
constructor, that it is checked by ``positive_int``. So a check is declared once, and Python and YAML
refuse the same values with the same words.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from cnncli.errors import OptionError

T = TypeVar("T")


class Sides(NamedTuple):
    """Cells of padding on each side of an image."""

    top: int
    bottom: int
    left: int
    right: int


class _RefusedError(Exception):
    """Raised by a conversion that does not accept the value; `Option` adds the words it does not bring."""

    def __init__(self, expected: str | None = None) -> None:
        super().__init__(expected)
        self.expected = expected


@dataclass(frozen=True)
class Option(Generic[T]):
    """One kind of option: the words for what it accepts, and the conversion to its type."""

    expected: str
    convert: Callable[[object], T]

    def __call__(self, name: str, value: object) -> T:
        """Return `value` in its own type, or raise `OptionError` naming the option."""
        try:
            return self.convert(value)
        except _RefusedError as refused:
            raise OptionError(name, refused.expected or self.expected, written(value)) from None


def written(value: object) -> str:
    """Write a value as it would stand in YAML, shortened to one readable line."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        text = "[" + ", ".join(written(item) for item in value[:6]) + (", ...]" if len(value) > 6 else "]")
    else:
        text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _integer(value: object, at_least: int) -> int:
    # bool is a subclass of int: `epochs: true` must not mean one epoch
    if isinstance(value, bool) or not isinstance(value, Integral) or value < at_least:
        raise _RefusedError
    return int(value)


def _integer_up_to(value: object, at_most: int) -> int:
    number = _integer(value, 1)
    if number > at_most:
        raise _RefusedError(f"an integer from 1 to {at_most}")
    return number


def _number(value: object, accept: Callable[[float], bool]) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise _RefusedError
    try:
        number = float(value)
    except OverflowError:
        raise _RefusedError from None
    if not math.isfinite(number) or not accept(number):
        raise _RefusedError
    return number


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise _RefusedError
    return value


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise _RefusedError
    return value


def _pair(value: object, at_least: int) -> tuple[int, int]:
    if isinstance(value, (list, tuple)):
        if len(value) != 2:
            raise _RefusedError
        return _integer(value[0], at_least), _integer(value[1], at_least)
    side = _integer(value, at_least)
    return side, side


def _padding(value: object) -> tuple[int, int] | Sides | Literal["same"]:
    if isinstance(value, str) and value == "same":
        return "same"
    if isinstance(value, Sides):  # from Python alone
        return Sides(*(_integer(side, at_least=0) for side in value))
    return _pair(value, at_least=0)


def _betas(value: object) -> tuple[float, float]:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise _RefusedError
    return _number(value[0], lambda n: 0 <= n < 1), _number(value[1], lambda n: 0 <= n < 1)


def optional(option: Option[T]) -> Option[T | None]:
    """Accept null as well."""
    return Option(
        f"{option.expected}, or null",
        lambda value: None if value is None else option.convert(value),
    )


def count_up_to(at_most: int) -> Option[int]:
    """Accept integers from 1, with a limit so high that it is named only where it is exceeded."""
    return Option("an integer of at least 1", lambda value: _integer_up_to(value, at_most))


def one_of(*names: str) -> Option[str]:
    """Accept one of a few words."""

    def convert(value: object) -> str:
        if not isinstance(value, str) or value not in names:
            raise _RefusedError
        return value

    return Option("one of " + ", ".join(names), convert)


positive_int: Option[int] = Option("an integer of at least 1", lambda v: _integer(v, 1))
non_negative_int: Option[int] = Option("an integer of at least 0", lambda v: _integer(v, 0))
positive_float: Option[float] = Option("a number above 0", lambda v: _number(v, lambda n: n > 0))
non_negative_float: Option[float] = Option("a number of at least 0", lambda v: _number(v, lambda n: n >= 0))
fraction: Option[float] = Option("a number from 0 to 1", lambda v: _number(v, lambda n: 0 <= n <= 1))
fraction_below_one: Option[float] = Option(
    "a number of at least 0 and below 1", lambda v: _number(v, lambda n: 0 <= n < 1)
)
degrees: Option[float] = Option("a number from 0 to 180", lambda v: _number(v, lambda n: 0 <= n <= 180))
boolean: Option[bool] = Option("true or false", _boolean)
text: Option[str] = Option("a text", _text)
positive_pair: Option[tuple[int, int]] = Option("int >= 1 or [height, width]", lambda v: _pair(v, 1))
padding_sides: Option[tuple[int, int] | Sides | Literal["same"]] = Option(
    'int >= 0, [height, width] or "same"', _padding
)
beta_pair: Option[tuple[float, float]] = Option("a pair of numbers of at least 0 and below 1", _betas)

# What an argument may look like before it is checked. Types and not texts, so that the annotations
# of a constructor can be evaluated in its own module.
PairLike: TypeAlias = int | tuple[int, int]
PaddingLike: TypeAlias = int | tuple[int, int] | Sides | Literal["same"]

PositiveInt = Annotated[int, positive_int]
NonNegativeInt = Annotated[int, non_negative_int]
PositiveFloat = Annotated[float, positive_float]
NonNegativeFloat = Annotated[float, non_negative_float]
Fraction = Annotated[float, fraction]
Degrees = Annotated[float, degrees]
FractionBelowOne = Annotated[float, fraction_below_one]
Pair = Annotated[PairLike, positive_pair]
OptionalPair = Annotated[PairLike | None, optional(positive_pair)]
Padding = Annotated[PaddingLike, padding_sides]
Betas = Annotated[tuple[float, float], beta_pair]

_PLAIN: dict[Any, Option[Any]] = {
    bool: boolean,
    int: Option("an integer", lambda v: _integer(v, -(2**63))),
    float: Option("a number", lambda v: _number(v, lambda n: True)),
    str: text,
}


def option_of(annotation: Any) -> Option[Any] | None:
    """Return the check that an annotation carries, or None where it carries none."""
    for extra in getattr(annotation, "__metadata__", ()):
        if isinstance(extra, Option):
            return extra
    return _PLAIN.get(annotation)


def checked(init: Callable[..., None]) -> Callable[..., None]:
    """Make a constructor check and convert its options: each keyword-only argument by its annotation.

    Raises
    ------
    OptionError : from the constructor that is returned, where a value is not what its option accepts
    """

    @functools.wraps(init)
    def constructor(*arguments: Any, **options: Any) -> None:
        signature, checks = _checks_of(init)
        bound = signature.bind(*arguments, **options)
        bound.apply_defaults()
        for name, check in checks.items():
            bound.arguments[name] = check(name, bound.arguments[name])
        init(*bound.args, **bound.kwargs)

    return constructor


@functools.cache
def _checks_of(init: Callable[..., None]) -> tuple[inspect.Signature, Mapping[str, Option[Any]]]:
    # not before the first call: the module of a class is complete by then
    signature = inspect.signature(init, eval_str=True)
    checks = {
        parameter.name: check
        for parameter in signature.parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY and (check := option_of(parameter.annotation)) is not None
    }
    return signature, checks
