"""Writing configurations out, reading them back, and telling two of them apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cnncli.config import Config, config_from_dict, differences, dump_config, load_config, parse_config
from cnncli.errors import ConfigError
from tests.config.texts import NETWORK, TOP_LEVEL, read

CONFIGS = Path(__file__).resolve().parents[2] / "configs"

DUMPED = """\
seed: 0
data:
  dataset: mnist
  directory: /data/mnist
  validation_size: 5000
  augment: {shift: 2.5, rotate: 12.0, scale: 0.0, shear: 0.0}
network:
- conv2d: {out_channels: 8, kernel_size: [3, 5], stride: 1, padding: same, bias: true, initializer: he}
- relu
- max_pool2d: {kernel_size: 2, stride: null, padding: 0}
- flatten
- dense: {out_features: 10, bias: true, initializer: small}
optimizer:
  adam: {learning_rate: 0.1, betas: [0.5, 0.5], epsilon: 1.0e-08, weight_decay: 0.0}
schedule:
  constant: {warmup: 0.0}
loss: {label_smoothing: 0.0}
training:
  epochs: 1
  batch_size: 128
  shard_size: 50
  threads: null
  clip_norm: null
  early_stopping: {patience: 2}
"""


def test_dump_looks_like_a_config() -> None:
    text = """
data: {directory: /data/mnist, augment: {shift: 2.5, rotate: 12}}
network:
  - conv2d: {out_channels: 8, kernel_size: [3, 5], padding: same}
  - relu
  - max_pool2d: {kernel_size: [2, 2]}
  - flatten
  - dense: {out_features: 10}
optimizer: {adam: {learning_rate: 1e-1, betas: [0.5, 0.5]}}
training: {early_stopping: {patience: 2}}
"""
    assert dump_config(read(text)) == DUMPED
    assert dump_config(read(DUMPED)) == DUMPED


floats = st.floats(min_value=0, max_value=1, exclude_max=True, allow_subnormal=True)
positive_floats = st.floats(min_value=0, exclude_min=True, allow_infinity=False, allow_nan=False)
sizes = st.integers(1, 10**20)
pairs = sizes | st.tuples(sizes, sizes).map(list)
layers = st.one_of(
    st.sampled_from(["relu", "flatten", "dropout"]),
    st.fixed_dictionaries({"drop_probability": floats}).map(lambda options: {"dropout": options}),
    st.fixed_dictionaries(
        {"out_features": sizes},
        optional={"bias": st.booleans(), "initializer": st.sampled_from(["he", "small"])},
    ).map(lambda options: {"dense": options}),
    st.fixed_dictionaries(
        {"out_channels": sizes, "kernel_size": pairs},
        optional={"stride": pairs, "padding": pairs | st.just("same")},
    ).map(lambda options: {"conv2d": options}),
    st.fixed_dictionaries({"kernel_size": pairs}, optional={"stride": pairs | st.none()}).map(
        lambda options: {"max_pool2d": options}
    ),
)
# every character that a path may hold: quotes, colons, hashes, and texts that look like other types
paths = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters="/"), min_size=1),
    st.sampled_from(
        ["null", "1e-3", "010", "yes", "a: b", "a #b", "- x", "'", '"', "{a}", "%", "x" * 200, "é 学"]
    ),
).filter(lambda name: name not in (".", "..") and not name.startswith("~"))
documents = st.fixed_dictionaries(
    {"network": st.lists(layers, min_size=1, max_size=6)},
    optional={
        "seed": st.integers(0, 2**70),
        "data": st.fixed_dictionaries(
            {}, optional={"directory": paths, "validation_size": st.integers(0, 10**6)}
        ),
        "optimizer": st.fixed_dictionaries(
            {
                "adamw": st.fixed_dictionaries(
                    {}, optional={"learning_rate": positive_floats, "weight_decay": floats}
                )
            }
        ),
        "schedule": st.sampled_from(["constant", "step", "cosine", "one_cycle"]),
        "loss": st.fixed_dictionaries({"label_smoothing": floats}),
        "training": st.fixed_dictionaries(
            {},
            optional={
                "epochs": st.integers(1, 1_000_000),
                "threads": sizes | st.none(),
                "clip_norm": positive_floats | st.none(),
            },
        ),
    },
)


@given(documents)
def test_dump_reads_back_equal(document: dict[str, Any]) -> None:
    config = config_from_dict(document, "made")
    text = dump_config(config)
    assert parse_config(text, "dumped", "/another/directory") == config
    assert config_from_dict(json.loads(json.dumps(config.to_dict())), "record") == config
    # other readers of YAML see the same values, apart from words such as yes that a path may be
    assert yaml.safe_load(text)["training"] == config.to_dict()["training"]


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_five_configs_read_back_equal(path: Path, tmp_path: Path) -> None:
    config = load_config(path)
    resolved = tmp_path / "config.yaml"
    resolved.write_text(dump_config(config), encoding="utf-8")
    assert load_config(resolved) == config
    assert not differences(config, load_config(resolved))


def test_paths_are_written_as_they_are() -> None:
    path = "/home/José 学/" + "a long name " * 20 + "end"
    assert f"  directory: {path}\n" in dump_config(read(f"{NETWORK}data: {{directory: {path}}}\n"))


def test_drawn_seed_is_in_the_dump() -> None:
    config = read(NETWORK + "seed: null\n")
    assert read(dump_config(config)).seed == config.seed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": -1}, "last.npz: seed: expected an integer of at least 0, or null, got -1"),
        (
            {"seed": "1"},
            'last.npz: seed: expected an integer of at least 0, or null, got "1"; write it without quotes',
        ),
        ({"extra": 1}, f"last.npz: extra: unknown key extra, expected one of {TOP_LEVEL}"),
        (
            {"network": [{"dense": {"out_features": True}}]},
            "last.npz: network[0].dense.out_features: expected an integer of at least 1, got true",
        ),
        (
            {"optimizer": {"adam": {"learning_rate": float("nan")}}},
            "last.npz: optimizer.adam.learning_rate: expected a number above 0, got NaN",
        ),
        (
            {"seed": 10**30},
            "last.npz: seed: expected an integer of at least 0, or null, "
            "got an integer of more than 30 digits",
        ),
        (
            {"training": {"epochs": -(10**5000)}},
            "last.npz: training.epochs: expected an integer of at least 1, "
            "got an integer of more than 30 digits",
        ),
        ({"data": {"directory": b"/x"}}, "last.npz: data.directory: expected a text, or null, got \"b'/x'\""),
    ],
)
def test_record_with_a_fault(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config_from_dict({**read(NETWORK).to_dict(), **change}, "last.npz")
    assert str(caught.value) == message


@pytest.mark.parametrize(("record", "got"), [(None, "null"), ([], "[]"), ("text", '"text"'), (3, "3")])
def test_record_that_is_no_mapping(record: object, got: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config_from_dict(record, "last.npz")
    assert str(caught.value) == f"last.npz: a configuration must be a mapping of keys to values, got {got}"


def test_record_that_is_nested_without_end() -> None:
    record: list[Any] = []
    record.append(record)
    with pytest.raises(ConfigError, match=r"^last\.npz: nested more than 20 deep$"):
        config_from_dict({"network": record}, "last.npz")


def changes(*overrides: str) -> list[str]:
    return [str(difference) for difference in differences(read(DUMPED), read(DUMPED, overrides))]


@pytest.mark.parametrize(
    ("override", "difference"),
    [
        ("training.epochs=3", "training.epochs: 1 before, 3 now"),
        ("training.clip_norm=1", "training.clip_norm: null before, 1.0 now"),
        ("training.early_stopping=", "training.early_stopping: {patience: 2} before, null now"),
        ("data.directory=/x", "data.directory: /data/mnist before, /x now"),
        ("network[0].conv2d.kernel_size=3", "network[0].conv2d.kernel_size: [3, 5] before, 3 now"),
        ("network[1]=dropout", "network[1]: relu before, dropout: {drop_probability: 0.5} now"),
        (
            "optimizer=sgd",
            "optimizer: adam: {learning_rate: 0.1, betas: [0.5, 0.5], epsilon: 1e-08, weight_decay: 0.0} "
            "before, sgd: {learning_rate: 0.01, momentum: 0.0, nesterov: false, weight_decay: 0.0} now",
        ),
    ],
)
def test_difference(override: str, difference: str) -> None:
    assert changes(override) == [difference]


def test_no_difference_in_how_it_is_written() -> None:
    text = DUMPED.replace("kernel_size: 2,", "kernel_size: [2, 2],").replace("0.1,", "1e-1,")
    assert text != DUMPED
    assert not differences(read(DUMPED), read(text))


def test_differences_are_in_the_order_of_the_file_and_have_values() -> None:
    config = read(DUMPED, ["training.epochs=3", "seed=1"])
    assert [(d.key_path, d.before, d.after) for d in differences(read(DUMPED), config)] == [
        ("seed", 0, 1),
        ("training.epochs", 1, 3),
    ]


def test_networks_of_different_lengths() -> None:
    short = read(NETWORK)
    long: Config = read("network: [flatten, dense: {out_features: 10, initializer: small}, relu]\n")
    (difference,) = differences(short, long)
    assert (difference.key_path, difference.before, difference.after) == ("network[2]", None, "relu")
    (difference,) = differences(long, short)
    assert (difference.key_path, difference.before, difference.after) == ("network[2]", "relu", None)
