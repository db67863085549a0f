"""PyTorch trains the same network: same parameters, same outputs, same steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.engine import built
from benchmarks.networks import BATCH_SIZES
from benchmarks.training_data import benchmark_config
from cnncli.config import build_optimizer
from cnncli.nn import Network, batch_last, softmax_cross_entropy

torch: Any = pytest.importorskip("torch", reason="comparing with PyTorch needs torch")
in_torch: Any = pytest.importorskip("benchmarks.in_torch")


def copy_parameters(network: Network, model: Any) -> None:
    with torch.no_grad():
        for name, theirs in model.named_parameters():
            theirs.copy_(torch.from_numpy(network.parameters[name.replace(".", "/")].value))


@pytest.mark.parametrize("network", BATCH_SIZES)
def test_the_parameters_have_our_names_and_shapes(network: str) -> None:
    config = benchmark_config(network)
    ours = {name: parameter.value.shape for name, parameter in built(config).parameters.items()}
    model = in_torch.build_model(config)
    theirs = {name.replace(".", "/"): tuple(value.shape) for name, value in model.named_parameters()}
    assert theirs == ours


@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("network", BATCH_SIZES)
def test_the_outputs_are_ours(network: str, layout: str) -> None:
    config = benchmark_config(network)
    ours, training = built(config), in_torch.Training(config, layout)
    copy_parameters(ours, training.model)
    images = np.random.default_rng(0).standard_normal((4, 1, 28, 28)).astype(np.float32)
    with torch.no_grad():
        logits = training.model.eval()(torch.from_numpy(images)).numpy()
    np.testing.assert_allclose(logits.T, ours.forward(batch_last(images)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("network", ["quickstart", "lenet"])
def test_the_steps_are_ours(network: str) -> None:
    config = benchmark_config(network)
    ours, training = built(config), in_torch.Training(config, "channels_last")
    copy_parameters(ours, training.model)
    optimizer = build_optimizer(config, ours.parameters)
    rng = np.random.default_rng(0)
    for _ in range(3):
        images = rng.standard_normal((8, 1, 28, 28)).astype(np.float32)
        labels = rng.integers(0, 10, 8)
        loss, grad_logits = softmax_cross_entropy(
            ours.forward(batch_last(images)), labels, label_smoothing=config.loss.label_smoothing
        )
        ours.backward(grad_logits, to_input=False)
        optimizer.step()
        theirs = training.step(torch.from_numpy(images), torch.from_numpy(labels)).item()
        assert theirs == pytest.approx(loss, rel=1e-3)
    bias = training.model[-1].bias.detach().numpy()
    np.testing.assert_allclose(bias, list(ours.parameters.values())[-1].value, rtol=0.02, atol=1e-5)


@pytest.mark.parametrize("network", BATCH_SIZES)
def test_the_optimizer_has_the_options_of_the_configuration(network: str) -> None:
    config = benchmark_config(network)
    optimizer = in_torch.build_torch_optimizer(config, in_torch.build_model(config))
    assert type(optimizer).__name__.lower() == config.optimizer.name
    (group,) = optimizer.param_groups
    options = config.optimizer.options
    assert (group["lr"], group["betas"], group["eps"], group["weight_decay"]) == (
        options["learning_rate"],
        options["betas"],
        options["epsilon"],
        options["weight_decay"],
    )
