"""What to add to the message about a refused value: the likely reason."""

from __future__ import annotations

import re
from typing import Any

from cnncli.config.document import FLOAT, Node, resolve
from cnncli.errors import OptionError
from cnncli.nn.options import Option

_NUMBER_LIKE = re.compile(r"[-+]?\.?[0-9]")
_PLAIN_NUMBER = re.compile(rf"{FLOAT.pattern}|[-+]?[1-9][0-9]*")
_NULL_WORDS = ("none", "nil", "nothing")


def value_hint(node: Node, check: Option[Any]) -> str:
    """Return what would mend a refused value, with a semicolon before it, or no text at all."""
    if not isinstance(node.value, str):
        return ""
    if node.value.lower() in _NULL_WORDS and _accepts(check, None):
        return "; write null"
    is_quoted = node.written != node.value
    if is_quoted and _accepts(check, resolve(node.value)):
        return "; write it without quotes"
    if is_quoted or not _NUMBER_LIKE.match(node.value):
        return ""
    if _PLAIN_NUMBER.fullmatch(node.value):
        return "; the number is too large"
    return "; write a plain decimal number, such as 10 or 0.001"


def _accepts(check: Option[Any], value: object) -> bool:
    try:
        check("", value)
    except OptionError:
        return False
    return True
