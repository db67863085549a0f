"""What to say about a name that does not exist: the nearest one, and the section it belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any, NamedTuple

from cnncli.config.faults import one_line
from cnncli.config.schema import SECTIONS, TOP_LEVEL, fields_of
from cnncli.nn.layers import LAYERS
from cnncli.nn.optimizers import OPTIMIZERS
from cnncli.nn.schedules import SCHEDULES

# what PyTorch, Keras and lecture notes call things, where no spelling is near
OTHER_NAMES = {
    "lr": "learning_rate",
    "eps": "epsilon",
    "p": "drop_probability",
    "rate": "drop_probability",
    "filters": "out_channels",
    "units": "out_features",
    "pool_size": "kernel_size",
    "strides": "stride",
    "linear": "dense",
    "fc": "dense",
    "pool": "max_pool2d",
    "avg_pool2d": "average_pool2d",
    "avgpool2d": "average_pool2d",
    "gap": "global_average_pool2d",
    "adaptive_avg_pool2d": "global_average_pool2d",
    "adaptiveavgpool2d": "global_average_pool2d",
    "bn": "batch_norm2d",
    "layers": "network",
    "model": "network",
    "none": "constant",
}
# what other libraries write in this place and is done in another way here
ADVICE = {
    "softmax": "leave it out: softmax is part of the loss",
    "activation": "write it as a layer of its own, such as relu, after this one",
    "input_shape": "leave it out: it is what the layer before gives",
    "in_channels": "leave it out: it is what the layer before gives",
    "in_features": "leave it out: it is what the layer before gives",
    "num_features": "leave it out: it is what the layer before gives",
    "count_include_pad": "leave it out: padding counts as zeros",
}


class Chosen(NamedTuple):
    """The optimizer and the schedule of a configuration, so that advice can name them."""

    optimizer: str
    schedule: str


def unknown(kind: str, name: str, known: Iterable[str], chosen: Chosen | None = None, owner: str = "") -> str:
    """Describe an unknown name: what was expected, and what was most likely meant.

    Parameters
    ----------
    kind : "key", "layer", "optimizer" or "schedule"
    known : the names that are valid in this place
    chosen : given for keys, which may belong elsewhere
    owner : what has no options at all, where `known` is empty
    """
    known = list(known)
    shown = one_line(name, 40)
    expected = f"expected one of {', '.join(known)}" if known else f"{owner} takes no options"
    message = f"unknown {kind} {shown}, {expected}"
    hint = _hint(name, known, chosen)
    return f"{message}; {hint}" if hint else message


def nearest(name: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """Return the one of `known` that a misspelt name most likely means; `likeness` is from 0 to 1."""
    known = list(known)
    plain = _plain(name)
    if plain in known:
        return plain
    if OTHER_NAMES.get(plain) in known:
        return OTHER_NAMES[plain]
    return next(iter(get_close_matches(plain, known, n=1, cutoff=likeness)), None)


def _hint(name: str, known: Sequence[str], chosen: Chosen | None) -> str | None:
    if _plain(name) in ADVICE:
        return ADVICE[_plain(name)]
    same_place = f"did you mean {nearest(name, known)}?" if nearest(name, known) else None
    if chosen is None or _plain(name) in known or OTHER_NAMES.get(_plain(name)) in known:
        return same_place
    homes = _homes(chosen)
    if _plain(name) == name and name in homes:
        # a right name in the wrong place says more than a similar one in this place
        return f"it belongs to {homes[name]}"
    if _plain(name) not in homes and same_place:
        return same_place
    # there are many names elsewhere: a weak likeness to one of them is chance
    meant = nearest(name, homes, likeness=0.8)
    return f"did you mean {meant}? It belongs to {homes[meant]}" if meant else None


def _plain(name: str) -> str:
    # no name is longer; comparing a very long one would take minutes
    return name[:60].strip().lower().replace("-", "_")


@cache
def _homes(chosen: Chosen) -> Mapping[str, str]:
    """Map every key of the schema to the sections that have it."""
    sections: dict[str, list[str]] = {}
    for section, key in _keys(chosen):
        sections.setdefault(key, []).append(section)
    return {key: " or ".join(names) for key, names in sections.items()}


def _keys(chosen: Chosen) -> Iterator[tuple[str, str]]:
    for key in TOP_LEVEL:
        yield "the top level", key
    for section, cls in SECTIONS.items():
        yield from _section_keys(section, cls)
    yield from _choice_keys("optimizer", OPTIMIZERS, chosen.optimizer)
    yield from _choice_keys("schedule", SCHEDULES, chosen.schedule)
    for name, layer in LAYERS.items():
        yield "network", name
        for key in fields_of(layer):
            yield f"{_article(name)} {name} layer", key


def _article(noun: str) -> str:
    return "an" if noun[0] in "aeiou" else "a"


def _section_keys(section: str, cls: type[Any]) -> Iterator[tuple[str, str]]:
    for key, field in fields_of(cls).items():
        yield section, key
        if field.section is not None:
            yield from _section_keys(f"{section}.{key}", field.section)


def _choice_keys(kind: str, registry: Mapping[str, type[Any]], chosen: str) -> Iterator[tuple[str, str]]:
    own = fields_of(registry[chosen])
    for name, cls in registry.items():
        yield kind, name
        for key in fields_of(cls):
            # `weight_decay` belongs to the optimizer that was chosen, not to the other two as well
            if name == chosen or key not in own:
                yield f"{kind}.{name}", key
