"""The signature is the schema: names, checks and defaults of options, from constructors."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from types import MappingProxyType
from typing import Any, get_args

from cnncli.nn.options import Option, option_of

# keyword arguments of layers that the program hands over, not the configuration
HANDED_OVER = ("rng", "dtype")


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED = _Required()


@dataclass(frozen=True)
class Field:
    """One option of a layer, an optimizer, a schedule or a section.

    Attributes
    ----------
    check : what the value may be; None where the option is a section of its own
    section : the dataclass of that section, or None
    default : in the type that `check` gives, or `REQUIRED`
    """

    name: str
    check: Option[Any] | None
    section: type[Any] | None
    default: Any

    @property
    def is_required(self) -> bool:
        return self.default is REQUIRED


def fields_of(cls: type[Any]) -> Mapping[str, Field]:
    """Return the options of a class: its keyword-only arguments, without `rng` and `dtype`.

    Raises
    ------
    TypeError : an annotation carries no check, so the class cannot stand in a configuration
    """
    fields = {}
    for parameter in inspect.signature(cls, eval_str=True).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.name not in HANDED_OVER:
            fields[parameter.name] = _field(cls, parameter)
    return MappingProxyType(fields)


def takes(cls: type[Any], name: str) -> bool:
    """Tell whether a constructor has an argument of this name."""
    return name in inspect.signature(cls).parameters


def _field(cls: type[Any], parameter: inspect.Parameter) -> Field:
    check, section = option_of(parameter.annotation), _section_of(parameter.annotation)
    if check is None and section is None:
        raise TypeError(f"{cls.__name__}: the annotation of {parameter.name} carries no check")
    default = REQUIRED if parameter.default is parameter.empty else parameter.default
    if check is not None and default is not REQUIRED:
        default = check(parameter.name, default)
    return Field(parameter.name, check, section, default)


def _section_of(annotation: Any) -> type[Any] | None:
    for kind in (annotation, *get_args(annotation)):
        if isinstance(kind, type) and is_dataclass(kind):
            return kind
    return None
