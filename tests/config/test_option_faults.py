"""The whole message of every fault in a section, an optimizer or a schedule."""

from __future__ import annotations

import pytest

from tests.config.texts import NETWORK, OPTIMIZERS, TOP_LEVEL, TRAINING, faults

AN_INTEGER = "expected an integer of at least 1"
A_DATASET = "expected one of mnist, fashion-mnist, or the path of a directory of IDX files or of an .npz file"
ADAM_KEYS = "learning_rate, betas, epsilon, weight_decay"


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
            "it belongs to optimizer.sgd or a batch_norm2d layer or a batch_norm1d layer",
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
            "data: {augment: {flip: true}}",
            "c.yaml:2: data.augment.flip: unknown key flip, expected one of shift, rotate, scale, shear",
            id="B36-augment",
        ),
        ("data: {augment: 2}", "c.yaml:2: data.augment: expected a mapping with keys such as shift, got 2"),
        (
            "data: {augment: {rotate: 200}}",
            "c.yaml:2: data.augment.rotate: expected a number from 0 to 180, got 200",
        ),
        (
            "data: {augment: {scale: 1}}",
            "c.yaml:2: data.augment.scale: expected a number of at least 0 and below 1, got 1",
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
            "schedule: none",
            "c.yaml:2: schedule: unknown schedule none, "
            "expected one of constant, step, cosine, one_cycle; did you mean constant?",
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
