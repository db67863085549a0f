"""JSON with values in it that do not belong there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

NUMBERS = (
    *(0, 1, -1, 2, 3, 7, 28, 255, 10**6, 10**9, 2**31, 2**63, 2**64, 10**18, 10**400, -(10**30)),
    *(0.0, -0.0, 0.5, 1.5, 1e-9, 1e-300, 1e39, 1e300, float("inf"), float("-inf"), float("nan")),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, "", "1", "relu", "nonsense", "\x1b[31m", "a" * 5000, "\ud800", "é"),
    *([], {}, [1], [[]], {"a": 1}, [None], [[1, 2], [3, 4]], ["a", "b"], {"": {}}),
)


def mutate_json(value: Any, rng: Random) -> None:
    """Exchange, remove or double one value, or copy it elsewhere."""
    places = list(_places(value))
    if not places:
        return
    owner, key = rng.choice(places)
    kind = rng.randrange(10)
    if kind <= 4:
        owner[key] = rng.choice(NUMBERS)
    elif kind <= 6:
        owner[key] = _copy(rng.choice(VALUES))
    elif kind == 7:
        del owner[key]
    elif kind == 8:
        other, other_key = rng.choice(places)
        owner[key] = _copy(other[other_key])
    else:
        _add(owner, key, rng)


def _copy(value: Any) -> Any:
    # deeper than Python could copy
    return json.loads(json.dumps(value))


def _places(value: Any, depth: int = 0) -> Iterator[tuple[Any, Any]]:
    """Yield every list or mapping with every index or key of it."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        if depth < 10:
            yield from _places(value[key], depth + 1)


def _add(owner: Any, key: Any, rng: Random) -> None:
    if isinstance(owner, list):
        owner[key:key] = [_copy(owner[key])] * rng.choice((1, 1, 3, 200))
        return
    deep: Any = 1
    for _ in range(rng.choice((0, 1, 25, 400))):
        deep = [deep]
    owner[rng.choice(("unknown", "learning-rate", "epochs", "\x1b", "a" * 3000, ""))] = deep
