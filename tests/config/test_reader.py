"""Checked values, their defaults, and all faults of a document at once."""

from __future__ import annotations

import pytest

from cnncli.config import Choice
from tests.config.texts import NETWORK, faults, read

AN_INTEGER = "expected an integer of at least 1"
A_NETWORK = "expected a list of layers, such as [flatten, dense: {out_features: 10}]"


def test_defaults() -> None:
    config = read(NETWORK)
    assert config.to_dict() == {
        "seed": 0,
        "data": {"dataset": "mnist", "directory": None, "validation_size": 5000, "augment": None},
        "network": [
            "flatten",
            {"dense": {"out_features": 10, "bias": True, "initializer": "small"}},
        ],
        "optimizer": {
            "adam": {"learning_rate": 0.001, "betas": [0.9, 0.999], "epsilon": 1e-8, "weight_decay": 0.0}
        },
        "schedule": {"constant": {"warmup": 0.0}},
        "loss": {"label_smoothing": 0.0},
        "training": {
            "epochs": 1,
            "batch_size": 128,
            "shard_size": 50,
            "threads": None,
            "clip_norm": None,
            "early_stopping": None,
        },
    }


def test_null_sections_are_all_defaults() -> None:
    assert read(NETWORK + "data:\noptimizer:\nschedule:\nloss:\ntraining:\n") == read(NETWORK)


@pytest.mark.parametrize(
    ("written", "choice"),
    [
        ("sgd", Choice("sgd", {"learning_rate": 0.01, "momentum": 0, "nesterov": False, "weight_decay": 0})),
        (
            "{sgd: }",
            Choice("sgd", {"learning_rate": 0.01, "momentum": 0, "nesterov": False, "weight_decay": 0}),
        ),
        (
            "{sgd: {learning_rate: 1, momentum: .9}}",
            Choice("sgd", {"learning_rate": 1.0, "momentum": 0.9, "nesterov": False, "weight_decay": 0}),
        ),
    ],
)
def test_forms_of_a_choice(written: str, choice: Choice) -> None:
    assert read(f"{NETWORK}optimizer: {written}\n").optimizer == choice


@pytest.mark.parametrize(
    "written", ["dropout", "dropout:", "dropout: {}", "dropout: {drop_probability: 0.5}"]
)
def test_forms_of_a_layer(written: str) -> None:
    config = read(f"network:\n  - flatten\n  - {written}\n  - dense: {{out_features: 10}}\n")
    assert config.network[1] == Choice("dropout", {"drop_probability": 0.5})


@pytest.mark.parametrize(
    ("written", "value"), [("1e-3", 0.001), ("1e3", 1000.0), ("1.0e3", 1000.0), ("2", 2.0)]
)
def test_numbers_are_floats_where_floats_are_due(written: str, value: float) -> None:
    learning_rate = read(f"{NETWORK}optimizer: {{adam: {{learning_rate: {written}}}}}\n").optimizer.options[
        "learning_rate"
    ]
    assert learning_rate == value
    assert isinstance(learning_rate, float)


def test_pairs() -> None:
    layer = "conv2d: {out_channels: 2, kernel_size: [3, 5], padding: same, stride: 2}"
    options = read(f"network: [{layer}, flatten, dense: {{out_features: 10}}]\n").network[0].options
    assert (options["kernel_size"], options["padding"], options["stride"]) == ((3, 5), "same", (2, 2))


def test_a_flood_of_faults_is_cut() -> None:
    found = faults(NETWORK + "".join(f"key{n}: 1\n" for n in range(300)))
    assert len(found) == 101
    assert found[-1] == "and 200 more faults"


def test_messages_hold_no_control_characters_and_stay_short() -> None:
    (message,) = faults(f'{NETWORK}"\\e[31m{"x" * 5000}": 1\n')
    assert message.isprintable()
    assert len(message) < 300


def test_null_seed_is_drawn_and_recorded() -> None:
    seeds = {read(NETWORK + "seed: null\n").seed for _ in range(5)}
    assert len(seeds) > 1
    assert all(0 <= seed < 2**32 for seed in seeds)


@pytest.mark.parametrize("seed", [0, 2**64, 10**30 - 1])
def test_seed_is_kept(seed: int) -> None:
    assert read(f"{NETWORK}seed: {seed}\n").seed == seed


def initializers(text: str) -> list[str]:
    return [layer.options["initializer"] for layer in read(text).network if "initializer" in layer.options]


def test_last_layer_with_weights_starts_small() -> None:
    conv, hidden = "conv2d: {out_channels: 2, kernel_size: 3}", "dense: {out_features: 20}"
    last = "dense: {out_features: 10}"
    assert initializers(f"network: [{conv}, flatten, {hidden}, {last}, dropout]\n") == ["he", "he", "small"]
    assert initializers(f"network: [{conv}, flatten]\n") == ["small"]


def test_given_initializer_stays() -> None:
    assert initializers("network: [flatten, dense: {out_features: 10, initializer: he}]\n") == ["he"]
    assert initializers("network: [flatten, dense: {out_features: 10, initializer: glorot}]\n") == ["glorot"]
