"""Checked values: the whole message of every kind of fault, and all of them at once."""

from __future__ import annotations

import pytest

from cnncli.config import Choice, EarlyStopping
from tests.config.texts import LAYERS, NETWORK, OPTIMIZERS, TOP_LEVEL, TRAINING, faults, read

AN_INTEGER = "expected an integer of at least 1"
A_NETWORK = "expected a list of layers, such as [flatten, dense: {out_features: 10}]"
A_DATASET = "expected one of mnist, fashion-mnist, or the path of a directory of IDX files or of an .npz file"
CONV_KEYS = "out_channels, kernel_size, stride, padding, bias, initializer"
ADAM_KEYS = "learning_rate, betas, epsilon, weight_decay"


def test_defaults() -> None:
    config = read(NETWORK)
    assert config.to_dict() == {
        "seed": 0,
        "data": {"dataset": "mnist", "directory": None, "validation_size": 5000},
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
)  # B32
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # B32: numbers
        pytest.param(
            "optimizer: {adam: {learning_rate: nan}}",
            "c.yaml:2: optimizer.adam.learning_rate: expected a number above 0, got nan",
            id="B32-nan",
        ),
        pytest.param(
            "optimizer: {adam: {learning_rate: .inf}}",
            "c.yaml:2: optimizer.adam.learning_rate: expected a number above 0, got .inf",
            id="B32-inf",
        ),
        pytest.param(
            "optimizer: {adam: {learning_rate: 1e400}}",
            "c.yaml:2: optimizer.adam.learning_rate: expected a number above 0, got 1e400; "
            "the number is too large",
            id="B32-huge",
        ),
        *[
            pytest.param(
                f"training: {{epochs: {written}}}",
                f"c.yaml:2: training.epochs: {AN_INTEGER}, got {written}; "
                "write a plain decimal number, such as 10 or 0.001",
                id=f"B32-{written}",
            )
            for written in ("010", "0x1F", "1_000", "1:30")
        ],
        pytest.param(
            f"training: {{epochs: {'9' * 5000}}}",
            f"c.yaml:2: training.epochs: {AN_INTEGER}, got {'9' * 77}...; the number is too large",
            id="B32-5000-digits",
        ),
        pytest.param(
            "training: {epochs: 1.0}",
            f"c.yaml:2: training.epochs: {AN_INTEGER}, got 1.0",
            id="B32-whole-float",
        ),
        pytest.param(
            "training: {epochs: '3'}",
            f"c.yaml:2: training.epochs: {AN_INTEGER}, got '3'; write it without quotes",
            id="B32-quoted",
        ),
        # B33: yes, no, on, off, true
        *[
            pytest.param(
                f"training: {{epochs: {written}}}",
                f"c.yaml:2: training.epochs: {AN_INTEGER}, got {written}",
                id=f"B33-{written}",
            )
            for written in ("yes", "no", "on", "off", "true", "True")
        ],
        pytest.param(
            "optimizer: {sgd: {nesterov: yes, momentum: 0.9}}",
            "c.yaml:2: optimizer.sgd.nesterov: expected true or false, got yes",
            id="B33-boolean",
        ),
        pytest.param("on: 3", f"c.yaml:2: on: unknown key on, expected one of {TOP_LEVEL}", id="B33-key"),
        # B34: None
        pytest.param(
            "seed: None",
            "c.yaml:2: seed: expected an integer of at least 0, or null, got None; write null",
            id="B34-seed",
        ),
        pytest.param(
            "training: {threads: none}",
            "c.yaml:2: training.threads: expected an integer of at least 1, or null, got none; write null",
            id="B34-threads",
        ),
        pytest.param(
            "training: {epochs: None}",
            f"c.yaml:2: training.epochs: {AN_INTEGER}, got None",
            id="B34-not-here",
        ),
        pytest.param(
            "training: {epochs: }", f"c.yaml:2: training.epochs: {AN_INTEGER}, got null", id="B34-empty"
        ),
        # B36: misspelt and misplaced keys
        pytest.param(
            "trainning: {epochs: 3}",
            f"c.yaml:2: trainning: unknown key trainning, expected one of {TOP_LEVEL}; "
            "did you mean training?",
            id="B36-trainning",
        ),
        pytest.param(
            "optimizer: {adam: {learning-rate: 0.1}}",
            "c.yaml:2: optimizer.adam.learning-rate: unknown key learning-rate, "
            f"expected one of {ADAM_KEYS}; did you mean learning_rate?",
            id="B36-dash",
        ),
        pytest.param(
            "learning-rate: 0.1",
            f"c.yaml:2: learning-rate: unknown key learning-rate, expected one of {TOP_LEVEL}; "
            "did you mean learning_rate? It belongs to optimizer.adam",
            id="B36-dash-at-top",
        ),
        pytest.param(
            "learning_rate: 0.1",
            f"c.yaml:2: learning_rate: unknown key learning_rate, expected one of {TOP_LEVEL}; "
            "it belongs to optimizer.adam",
            id="B36-at-top",
        ),
        pytest.param(
            "optimizer: sgd\nlearning_rate: 0.1",
            f"c.yaml:3: learning_rate: unknown key learning_rate, expected one of {TOP_LEVEL}; "
            "it belongs to optimizer.sgd",
            id="B36-the-chosen-optimizer",
        ),
        pytest.param(
            "training: {lr: 0.1}",
            f"c.yaml:2: training.lr: unknown key lr, expected one of {TRAINING}; "
            "did you mean learning_rate? It belongs to optimizer.adam",
            id="B36-lr",
        ),
        pytest.param(
            "dataset: mnist",
            f"c.yaml:2: dataset: unknown key dataset, expected one of {TOP_LEVEL}; it belongs to data",
            id="B36-dataset",
        ),
        pytest.param(
            "training: {seed: 1}",
            f"c.yaml:2: training.seed: unknown key seed, expected one of {TRAINING}; "
            "it belongs to the top level",
            id="B36-seed",
        ),
        pytest.param(
            "training: {patience: 1}",
            f"c.yaml:2: training.patience: unknown key patience, expected one of {TRAINING}; "
            "it belongs to training.early_stopping",
            id="B36-patience",
        ),
        pytest.param(
            "optimizer: {adam: {momentum: 0.9}}",
            f"c.yaml:2: optimizer.adam.momentum: unknown key momentum, expected one of {ADAM_KEYS}; "
            "it belongs to optimizer.sgd",
            id="B36-momentum",
        ),
        pytest.param(
            "final: 0.1",
            f"c.yaml:2: final: unknown key final, expected one of {TOP_LEVEL}; "
            "it belongs to schedule.cosine or schedule.one_cycle",
            id="B36-two-homes",
        ),
        pytest.param(
            "zzz: 1", f"c.yaml:2: zzz: unknown key zzz, expected one of {TOP_LEVEL}", id="B36-nothing-near"
        ),
        pytest.param(
            "data: {augment: {shift: 2}}",
            "c.yaml:2: data.augment: unknown key augment, "
            "expected one of dataset, directory, validation_size",
            id="B36-not-yet",
        ),
        # sections and choices
        ("training: 5", "c.yaml:2: training: expected a mapping with keys such as epochs, got 5"),
        ("training: [5]", "c.yaml:2: training: expected a mapping with keys such as epochs, got [5]"),
        (
            "optimizer: []",
            "c.yaml:2: optimizer: expected one optimizer, such as adam: {learning_rate: 0.001}, got []",
        ),
        ("schedule: 3", "c.yaml:2: schedule: expected one schedule, such as cosine: {warmup: 0.1}, got 3"),
        (
            "optimizer: adm",
            f"c.yaml:2: optimizer: unknown optimizer adm, expected one of {OPTIMIZERS}; did you mean adam?",
        ),
        (
            "optimizer: {Adam: {}}",
            f"c.yaml:2: optimizer.Adam: unknown optimizer Adam, expected one of {OPTIMIZERS}; "
            "did you mean adam?",
        ),
        (
            "schedule: {onecycle: {}}",
            "c.yaml:2: schedule.onecycle: unknown schedule onecycle, "
            "expected one of constant, step, cosine, one_cycle; did you mean one_cycle?",
        ),
        (
            "optimizer: {adam: , sgd: }",
            "c.yaml:2: optimizer: expected one optimizer with its options under it, "
            "such as adam: {learning_rate: 0.001}, got the keys adam, sgd",
        ),
        (
            "optimizer: {name: adam, lr: 0.1}",
            "c.yaml:2: optimizer: expected one optimizer with its options under it, "
            "such as adam: {learning_rate: 0.001}, got the keys name, lr",
        ),
        (
            "optimizer:\n  adam:\n  learning_rate: 0.1",
            "c.yaml:4: optimizer.learning_rate: unknown key learning_rate beside adam; "
            "it belongs to optimizer.adam; indent it further than adam",
        ),
        # values that do not go together
        (
            "optimizer: {sgd: {nesterov: true}}",
            "c.yaml:2: optimizer.sgd.nesterov: expected false where momentum is 0, got true",
        ),
        (
            "data: {validation_size: 0}\ntraining: {early_stopping: {}}",
            "c.yaml:3: training.early_stopping: "
            "expected data.validation_size of at least 1 to choose the best epoch by, got 0",
        ),
        (
            "training: {early_stopping: true}",
            "c.yaml:2: training.early_stopping: expected a mapping with keys such as patience, got true",
        ),
        (
            "training: {early_stopping: {patience: 0}}",
            f"c.yaml:2: training.early_stopping.patience: {AN_INTEGER}, got 0",
        ),
        # data
        (
            "data: {dataset: fashion}",
            f"c.yaml:2: data.dataset: {A_DATASET}, got fashion; did you mean fashion-mnist?",
        ),
        (
            "data: {dataset: MNIST}",
            f"c.yaml:2: data.dataset: {A_DATASET}, got MNIST; did you mean mnist?",
        ),
        ("data: {dataset: 3}", "c.yaml:2: data.dataset: expected a text, got 3"),
        (
            'data: {directory: "a\\0b"}',
            "c.yaml:2: data.directory: expected a path without control characters, got a\\x00b",
        ),
        (
            "data: {directory: ~no-such-user/x}",
            "c.yaml:2: data.directory: expected a path that can be resolved, "
            "got ~no-such-user/x: Could not determine home directory.",
        ),
    ],
)
def test_fault(text: str, message: str) -> None:
    assert faults(f"{NETWORK}{text}\n") == [message]


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        pytest.param(
            "max_pool2d: {kernel_size: 0}",
            "network[0].max_pool2d.kernel_size: expected an integer of at least 1, "
            "or a pair [height, width] of them, got 0",
            id="B36-zero",
        ),
        pytest.param(
            "conv2d: {out_channels: 3, kernal_size: 3}",
            f"network[0].conv2d.kernal_size: unknown key kernal_size, expected one of {CONV_KEYS}; "
            "did you mean kernel_size?",
            id="B36-kernal_size",
        ),
        pytest.param(
            "conv2d: {filters: 3, kernel_size: 3}",
            f"network[0].conv2d.filters: unknown key filters, expected one of {CONV_KEYS}; "
            "did you mean out_channels?",
            id="B36-filters",
        ),
        pytest.param(
            "dropout: {stride: 2}",
            "network[0].dropout.stride: unknown key stride, expected one of drop_probability; "
            "it belongs to a conv2d layer or a max_pool2d layer",
            id="B36-stride",
        ),
        ("relu: {a: 1}", "network[0].relu.a: unknown key a, relu takes no options"),
        ("dense", "network[0].dense.out_features: expected an integer of at least 1, but the key is missing"),
        ("dense: 10", "network[0].dense: expected a mapping with keys such as out_features, got 10"),
        ("reluu", f"network[0]: unknown layer reluu, expected one of {LAYERS}; did you mean relu?"),
        (
            "MaxPool2D: {kernel_size: 2}",
            f"network[0].MaxPool2D: unknown layer MaxPool2D, expected one of {LAYERS}; "
            "did you mean max_pool2d?",
        ),
        (
            "linear: {}",
            f"network[0].linear: unknown layer linear, expected one of {LAYERS}; did you mean dense?",
        ),
        ("null", "network[0]: expected one layer, such as relu or dense: {out_features: 10}, got null"),
        (
            "{}",
            "network[0]: expected one layer, such as relu or dense: {out_features: 10}, got an empty mapping",
        ),
        (
            "{type: dense, out_features: 10}",
            "network[0]: expected one layer with its options under it, "
            "such as relu or dense: {out_features: 10}, got the keys type, out_features",
        ),
        (
            "conv2d: {out_channels: 2, kernel_size: [3, 3, 3]}",
            "network[0].conv2d.kernel_size: expected an integer of at least 1, "
            "or a pair [height, width] of them, got [3, 3, 3]",
        ),
        (
            "conv2d: {out_channels: 2, kernel_size: 3, padding: Same}",
            "network[0].conv2d.padding: expected an integer of at least 0, a pair [height, width] of them, "
            'or "same", got Same',
        ),
    ],
)
def test_fault_of_a_layer(layer: str, message: str) -> None:
    text = f"network:\n  - {layer}\n  - flatten\n  - dense: {{out_features: 10}}\n"
    assert faults(text) == [f"c.yaml:2: {message}"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "a configuration must be a mapping of keys to values, got nothing", id="B34-empty"),
        pytest.param("- a\n", "a configuration must be a mapping of keys to values, got [a]", id="B34-list"),
        ("3\n", "a configuration must be a mapping of keys to values, got 3"),
        (
            "seed: 1\n",
            f"network: {A_NETWORK}, but the key is missing",
        ),
        (
            "network:\n",
            f"network: {A_NETWORK}, got null",
        ),
        (
            "network: []\n",
            f"network: {A_NETWORK}, got an empty list",
        ),
        (
            "network: {flatten: , relu: }\n",
            f"network: {A_NETWORK}, got a mapping with flatten, relu",
        ),
        (
            "netwrok: [flatten]\n",
            f"netwrok: unknown key netwrok, expected one of {TOP_LEVEL}; did you mean network?",
        ),
        (
            "layers: [flatten]\n",
            f"layers: unknown key layers, expected one of {TOP_LEVEL}; did you mean network?",
        ),
    ],
)
def test_fault_of_the_whole(text: str, message: str) -> None:
    assert faults(text) == [f"c.yaml:1: {message}"]


def test_all_faults_at_once_in_the_order_of_the_file() -> None:
    text = """
training: {epochs: 0, batchsize: 32}
data:
  validation_size: -5
optimizer:
  adam: {learning_rate: 0, betas: [0.9, 1]}
network:
  - conv2d:
    out_channels: 8
    kernel_size: 3
  - dense: {}
seed: 1.5
seed: 2
"""
    assert faults(text) == [
        f"c.yaml:2: training.epochs: {AN_INTEGER}, got 0",
        f"c.yaml:2: training.batchsize: unknown key batchsize, expected one of {TRAINING}; "
        "did you mean batch_size?",
        "c.yaml:4: data.validation_size: expected an integer of at least 0, got -5",
        "c.yaml:6: optimizer.adam.learning_rate: expected a number above 0, got 0",
        "c.yaml:6: optimizer.adam.betas: expected a pair of numbers of at least 0 and below 1, got [0.9, 1]",
        "c.yaml:9: network[0].out_channels: unknown key out_channels beside conv2d; "
        "it belongs to network[0].conv2d; indent it further than conv2d",
        "c.yaml:10: network[0].kernel_size: unknown key kernel_size beside conv2d; "
        "it belongs to network[0].conv2d; indent it further than conv2d",
        "c.yaml:11: network[1].dense.out_features: expected an integer of at least 1, but the key is missing",
        "c.yaml:12: seed: expected an integer of at least 0, or null, got 1.5",
        "c.yaml:13: seed: the key is written twice, first on line 12; keep one of the two",
    ]


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


def test_large_seed_is_kept() -> None:
    assert read(f"{NETWORK}seed: {2**64}\n").seed == 2**64


def test_early_stopping() -> None:
    assert read(NETWORK + "training: {early_stopping: {}}\n").training.early_stopping == EarlyStopping(
        patience=3
    )
    assert read(
        NETWORK + "training: {early_stopping: {patience: 7}}\n"
    ).training.early_stopping == EarlyStopping(patience=7)
    assert read(NETWORK + "training: {early_stopping: null}\n").training.early_stopping is None


def initializers(text: str) -> list[str]:
    return [layer.options["initializer"] for layer in read(text).network if "initializer" in layer.options]


def test_last_layer_with_weights_starts_small() -> None:  # B30
    conv, hidden = "conv2d: {out_channels: 2, kernel_size: 3}", "dense: {out_features: 20}"
    last = "dense: {out_features: 10}"
    assert initializers(f"network: [{conv}, flatten, {hidden}, {last}, dropout]\n") == ["he", "he", "small"]
    assert initializers(f"network: [{conv}, flatten]\n") == ["small"]


def test_given_initializer_stays() -> None:
    assert initializers("network: [flatten, dense: {out_features: 10, initializer: he}]\n") == ["he"]
    assert initializers("network: [flatten, dense: {out_features: 10, initializer: glorot}]\n") == ["glorot"]
