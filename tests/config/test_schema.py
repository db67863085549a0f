"""Signatures as the schema, and the places that a configuration remembers."""

from __future__ import annotations

from typing import Any

import pytest

from cnncli.config import (
    REQUIRED,
    AugmentConfig,
    DataConfig,
    EarlyStopping,
    LossConfig,
    TrainingConfig,
    fields_of,
)
from cnncli.config.suggestions import ADVICE, OTHER_NAMES
from cnncli.nn import LAYERS, OPTIMIZERS, SCHEDULES, Conv2D, Dense, ReLU
from tests.config.texts import read

EVERY_CLASS: list[type[Any]] = [
    *LAYERS.values(),
    *OPTIMIZERS.values(),
    *SCHEDULES.values(),
    DataConfig,
    AugmentConfig,
    LossConfig,
    TrainingConfig,
    EarlyStopping,
]


def test_options_come_from_the_signature() -> None:
    fields = fields_of(Conv2D)
    assert [*fields] == ["out_channels", "kernel_size", "stride", "padding", "bias", "initializer"]
    assert fields["out_channels"].default is REQUIRED
    assert fields["stride"].default == (1, 1)
    assert fields_of(Dense)["initializer"].default == "he"
    assert not fields_of(ReLU)
    assert fields_of(TrainingConfig)["early_stopping"].section is EarlyStopping


@pytest.mark.parametrize("cls", EVERY_CLASS)
def test_every_default_passes_its_own_check(cls: type[Any]) -> None:
    for field in fields_of(cls).values():
        if field.check is not None and not field.is_required:
            assert field.check(field.name, field.default) == field.default


@pytest.mark.parametrize("cls", EVERY_CLASS)
def test_option_that_takes_a_pair_of_integers_takes_one_for_both(cls: type[Any]) -> None:
    # a configuration is written with the one
    for field in fields_of(cls).values():
        if isinstance(field.default, tuple) and isinstance(field.default[0], int):
            assert field.check is not None
            assert field.check(field.name, 7) == (7, 7)


def test_annotation_without_a_check_is_refused() -> None:
    class Layer:
        def __init__(self, *, size: complex = 0) -> None: ...

    with pytest.raises(TypeError, match=r"^Layer: the annotation of size carries no check$"):
        fields_of(Layer)


def test_other_names_stand_for_names_that_exist() -> None:
    known = {"network", *LAYERS, *OPTIMIZERS, *SCHEDULES} | {
        name for cls in EVERY_CLASS for name in fields_of(cls)
    }
    assert set(OTHER_NAMES.values()) <= known
    assert not (set(OTHER_NAMES) | set(ADVICE)) & known


@pytest.mark.parametrize(
    ("key_path", "place"),
    [
        ("training.epochs", "c.yaml:6"),
        ("training.batch_size", "c.yaml:5"),
        ("network[1].dense.out_features", "c.yaml:4"),
        ("network[1].dense.bias", "c.yaml:3"),
        ("network[0]", "c.yaml:2"),
        ("network[7].relu", "c.yaml:1"),
        ("optimizer.adam.learning_rate", "c.yaml"),
        ("seed", "--set seed=3"),
    ],
)
def test_place_of_a_key_path(key_path: str, place: str) -> None:
    text = "network:\n  - flatten\n  - dense:\n      out_features: 10\ntraining:\n  epochs: 3\n"
    config = read(text, ["seed=3"])
    assert str(config.place_of(key_path)) == place
    assert str(config.error(key_path, "expected more")) == f"{place}: {key_path}: expected more"
