"""The gradient of a batch does not depend on shards (but for rounding) nor on threads (at all)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from cnncli.config import build_network
from cnncli.data import shard_slices
from cnncli.nn import Network, softmax_cross_entropy
from cnncli.training import Workers
from cnncli.training.gradients import SHARDS_IN_FLIGHT, BatchGradients
from tests.training.runs import make_config, make_data


@pytest.mark.parametrize(
    ("n", "shard_size", "sizes"),
    [
        (100, 32, [25, 25, 25, 25]),
        (100, 50, [50, 50]),
        (64, 50, [32, 32]),
        (50, 50, [50]),
        (128, 50, [64, 64]),
        (149, 50, [74, 75]),
        (150, 50, [37, 38, 37, 38]),
        (256, 50, [42, 43, 43] * 2),
        (10, 4, [5, 5]),
        (3, 8, [3]),
        (3, 1, [1, 1, 1]),
        (5, 1, [1] * 5),
        (1, 1, [1]),
    ],
)
def test_shards_differ_by_one_at_most(n: int, shard_size: int, sizes: list[int]) -> None:
    slices = shard_slices(n, shard_size)
    assert [part.stop - part.start for part in slices] == sizes
    assert slices[0].start == 0
    assert slices[-1].stop == n
    assert all(a.stop == b.start for a, b in pairwise(slices))


def make_gradients(
    network: Network, workers: Workers, *, shard_size: int, label_smoothing: float = 0.0, seed: int = 5
) -> BatchGradients:
    data = make_data()
    return BatchGradients(
        network,
        workers,
        data.train,
        data.normalization,
        shard_size=shard_size,
        label_smoothing=label_smoothing,
        seed=seed,
    )


def network_without_dropout(dtype: type = np.float64) -> Network:
    config = make_config("network[6].dropout.drop_probability=0")
    return build_network(config, (1, 8, 7), 4, np.random.default_rng(3), dtype)


@pytest.mark.parametrize("shard_size", [1, 7, 50, 100])
def test_shards_add_up_to_the_gradient_of_the_whole_batch(shard_size: int) -> None:
    data, network, reference = make_data(), network_without_dropout(), network_without_dropout()
    indices = np.random.default_rng(0).permutation(100)
    images = data.normalization.apply(data.train.images[indices], np.float64)
    loss, grad_logits = softmax_cross_entropy(
        reference.forward(images), data.train.labels[indices], label_smoothing=0.1
    )
    reference.backward(grad_logits)

    with Workers(2) as workers:
        gradients = make_gradients(network, workers, shard_size=shard_size, label_smoothing=0.1)
        result = gradients.compute(indices, step=0)

    assert 100 / shard_size > SHARDS_IN_FLIGHT or shard_size > 1  # one case needs more than one block
    assert result.loss == pytest.approx(loss, rel=1e-12)
    for name, parameter in network.parameters.items():
        expected = reference.parameters[name].grad
        np.testing.assert_allclose(parameter.grad, expected, rtol=1e-9, atol=1e-12, err_msg=name)


def test_gradients_are_the_same_bits_for_every_number_of_threads() -> None:
    indices = np.arange(100)
    seen = set()
    for n_threads in (1, 2, 3, 4):
        config = make_config()
        network = build_network(config, (1, 8, 7), 4, np.random.default_rng(3))
        with Workers(n_threads) as workers:
            gradients = make_gradients(network, workers, shard_size=4)
            for step in range(3):
                gradients.compute(indices, step)
        seen.add(b"".join(p.grad.tobytes() for p in network.parameters.values()))
    assert len(seen) == 1


def test_dropout_draws_anew_for_every_step_and_shard() -> None:
    same_image = np.zeros(20, dtype=np.int64)
    network = build_network(make_config(), (1, 8, 7), 4, np.random.default_rng(3))
    with Workers(1) as workers:
        gradients = make_gradients(network, workers, shard_size=20)
        losses = [gradients.compute(same_image, step).loss for step in (0, 1, 0)]
        other_seed = make_gradients(network, workers, shard_size=20, seed=6).compute(same_image, 0).loss
    assert losses[0] == losses[2]
    assert losses[0] != losses[1]
    assert losses[0] != other_seed
