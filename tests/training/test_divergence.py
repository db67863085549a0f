"""A number that is not finite stops a run at once, and the message names the layer where it began."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cnncli.config import Config
from cnncli.data import Normalization, Split
from cnncli.errors import DivergenceError
from cnncli.training import StepReport, Trainer, TrainingData, Workers, evaluate
from cnncli.training.divergence import all_finite
from tests.cli.program import Cnncli
from tests.training.runs import make_config, make_data, make_split

CONFIG = make_config("optimizer.sgd.learning_rate=0.001", epochs=2, schedule="constant")


def message_of(
    config: Config,
    change: Callable[[Trainer], None] = lambda trainer: None,
    *,
    data: TrainingData | None = None,
    n_threads: int = 1,
    after_step: int = 0,
) -> str:
    """Train with weights that are changed after a step, and return why it stops."""
    with Workers(n_threads) as workers:
        trainer = Trainer(config, data or make_data(), workers)

        def step(report: StepReport) -> None:
            if trainer.step == after_step:
                change(trainer)

        if after_step == 0:
            change(trainer)
        with pytest.raises(DivergenceError) as caught:
            list(trainer.epochs(step))
    return str(caught.value)


def set_parameter(name: str, value: float) -> Callable[[Trainer], None]:
    def change(trainer: Trainer) -> None:
        trainer.network.parameters[name].value[...] = value

    return change


@pytest.mark.parametrize("name", ["0/weight", "3/weight", "7/weight", "9/weight"])
def test_an_overflow_in_forward_names_its_layer(name: str) -> None:
    """The layers before it are finite, those behind it are not, and are not named."""

    def change(trainer: Trainer) -> None:
        for key, parameter in trainer.network.parameters.items():
            if key.endswith("weight"):
                parameter.value[...] = np.abs(parameter.value)
        trainer.network.parameters[name].value[...] = 3e38

    message = message_of(CONFIG, change, after_step=2)
    kind = {"0": "conv2d", "3": "conv2d", "7": "dense", "9": "dense"}[name[0]]
    lines = message.split("\n  ")
    assert re.fullmatch(r"epoch 1, step 3 of 4: the loss is (nan|inf)", lines[0])
    assert lines[1].startswith(f"layer network[{name[0]}].{kind} is the first whose output is not finite; ")
    assert lines[1].endswith(", its weight 3e+38")
    assert lines[2] == ("lower optimizer.sgd.learning_rate (it was 0.001), or set training.clip_norm")


def overflow_in_backward(trainer: Trainer) -> None:
    """Let the last layer hand back 1e28, where the inputs of the layer before it are 1e12."""
    parameters = trainer.network.parameters
    parameters["9/weight"].value[...] = np.where(np.indices((4, 8)).sum(axis=0) % 2, 1e30, -1e30)
    parameters["7/weight"].value[...] = 0
    parameters["7/bias"].value[...] = 1e-30
    parameters["3/bias"].value[...] = 1e12


def test_a_gradient_that_overflows_under_a_finite_loss_stops_before_the_weights_are_spoiled() -> None:
    before: dict[str, bytes] = {}

    def change(trainer: Trainer) -> None:
        overflow_in_backward(trainer)
        before.update({name: p.value.tobytes() for name, p in trainer.network.parameters.items()})

    with Workers(1) as workers:
        trainer = Trainer(CONFIG, make_data(), workers)
        change(trainer)
        with pytest.raises(DivergenceError) as caught:
            list(trainer.epochs())
    first, origin, advice = str(caught.value).split("\n  ")
    assert first == "epoch 1, step 1 of 4: the gradient is not finite"
    assert re.fullmatch(
        r"going back from the loss, the gradient of the weight of layer network\[7\].dense "
        r"is the first that is not finite; that of its output reaches [\d.]+e\+2\d",
        origin,
    )
    assert advice.startswith("no step has been taken yet, so look at the images of mnist")
    assert {name: p.value.tobytes() for name, p in trainer.network.parameters.items()} == before


def test_an_absurd_learning_rate_is_named_with_the_layer() -> None:
    message = message_of(make_config("optimizer.sgd.learning_rate=1e30"))
    assert message.startswith("epoch 1, step 2 of 4: the loss is nan\n  layer network[")
    assert "lower optimizer.sgd.learning_rate (it was 1e+30), or set training.clip_norm" in message


def test_weights_that_a_step_makes_infinite_are_named_with_that_step() -> None:
    message = message_of(make_config("optimizer.sgd.learning_rate=1e40", "training.clip_norm=5"))
    assert message == (
        "epoch 1, step 1 of 4: the weight of layer network[9].dense has become infinite\n"
        "  lower optimizer.sgd.learning_rate (it was 1e+40), or lower training.clip_norm (it is 5)"
    )


def test_infinite_weights_behind_a_relu_are_found_though_the_loss_is_finite() -> None:
    """relu(-inf) is 0: the loss would never tell."""
    message = message_of(CONFIG, set_parameter("7/bias", -np.inf), after_step=1)
    assert message.startswith(
        "epoch 1, step 2 of 4: the bias of layer network[7].dense has become infinite\n"
    )


def test_a_moment_that_overflows_is_never_saved() -> None:
    """The square of 1e20 is beyond float32: Adam would stand still from then on, and not be resumed."""

    def change(trainer: Trainer) -> None:
        trainer._optimizer.state["3/weight/second_moment"][...] = np.inf

    message = message_of(make_config(epochs=1), change)
    assert message.partition("\n")[0] == (
        "epoch 1, step 4 of 4: the second_moment of the weight of layer network[3].conv2d has become infinite"
    )


def test_the_message_is_the_same_for_every_number_of_threads() -> None:
    config = make_config("optimizer.sgd.learning_rate=1e25", epochs=3)
    messages = {message_of(config, n_threads=n_threads) for n_threads in (1, 2, 3)}
    assert len(messages) == 1


def test_a_validation_loss_that_is_not_finite_names_the_layer() -> None:
    """Images far beyond those trained on; the training loss knows nothing of them."""
    data = make_data()
    wild = make_split(40, seed=2)
    validation = Split(wild.images.astype(np.float32) * np.float32(1e36), wild.labels)
    data = TrainingData(data.train, validation, data.normalization, data.image_shape, 4)
    message = message_of(CONFIG, set_parameter("0/weight", 50), data=data)
    assert message.startswith("epoch 1, step 4 of 4: the validation loss is ")
    assert "layer network[0].conv2d is the first whose output is not finite" in message


def test_an_evaluation_of_a_network_that_has_diverged_is_an_error() -> None:
    split = make_split(40, seed=3)
    with Workers(2) as workers:
        trainer = Trainer(CONFIG, make_data(), workers)
        set_parameter("9/weight", 3e38)(trainer)
        with pytest.raises(DivergenceError, match=r"layer network\[9\].dense is the first"):
            evaluate(trainer.network, split, Normalization.from_images(split.images), workers)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_images_that_are_not_finite_are_refused_before_training(
    workspace: Path, cnncli: Cnncli, value: float
) -> None:
    with np.load("tiny.npz") as file:
        arrays = {name: file[name].astype(np.float32) if name[0] == "x" else file[name] for name in file}
    arrays["x_train"][7, 3, 3] = value
    np.savez("tiny.npz", **arrays)
    result = cnncli("train", "--config", "tiny.yaml")
    assert (result.code, result.out) == (1, "")
    assert "image 7 holds NaN or infinity" in result.err
    assert not Path("runs").exists()


def test_a_run_that_diverges_keeps_its_last_epoch_and_names_it(workspace: Path, cnncli: Cnncli) -> None:
    settings = ("schedule.step.factor=1e39", "optimizer.sgd.learning_rate=0.01", "training.epochs=3")
    options = [option for setting in settings for option in ("--set", setting)]
    result = cnncli("train", "--config", "tiny.yaml", *options)
    assert (result.code, result.out) == (1, "")
    assert re.search(r"\nerror: epoch 2, step \d+ of 15: ", result.err)
    assert "layer network[" in result.err
    assert result.err.endswith("\n  epoch 1 of 3 is kept in runs/tiny/last.npz\n")
    again = cnncli("train", "--resume", "runs/tiny")
    assert again.err.splitlines()[-3:] == result.err.splitlines()[-3:]


@pytest.mark.parametrize(
    ("values", "is_finite"),
    [([1.0, 2.0], True), ([3e38, -3e38], True), ([1.0, np.nan], False), ([-np.inf, 0.0], False), ([], True)],
)
def test_finite_numbers_are_told_from_others(values: list[float], is_finite: bool) -> None:
    with np.errstate(all="ignore"):
        assert all_finite(np.array(values, np.float32)) is is_finite
