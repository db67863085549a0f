"""The arrays of a training step: against the memory that a real step asks for."""

from __future__ import annotations

import gc
import math
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cnncli.config import AugmentConfig, Config, build_augmentation, build_network, load_config
from cnncli.data import Augmentation, Normalization, Split
from cnncli.errors import UsageError
from cnncli.nn import LAYERS, Network
from cnncli.nn.array_words import WORDS, axes_of, shape_of
from cnncli.nn.buffers import short_buffers
from cnncli.nn.layers.pooled_conv import PooledConv2D
from cnncli.nn.scratch import Scratch
from cnncli.training import Workers, shared_memory
from cnncli.training.gradients import SHARDS_IN_FLIGHT, BatchGradients, shard_slices
from cnncli.training.profiling.plan_work import plan_work
from cnncli.training.step_arrays import inspect_step
from cnncli.training.step_facts import PassArrays, StepArray, StepFacts
from cnncli.training.trainer import Trainer, TrainingData
from tests.cli.program import CONFIGS
from tests.nn.networks import (
    BATCH_NORM,
    FLATTEN,
    POOL,
    RELU,
    STACK_SHAPE,
    LayerSpec,
    conv,
    dense,
    dropout,
    make_network,
    stacks,
)

FIVE = ("quickstart", "simple_convnet", "lenet", "keras_mnist", "pytorch_mnist")
# only larger arrays are counted: Python's objects, and arrays with one number for each image, come on top
UNCOUNTED_BYTES = 64 * 1024
UNCOUNTED_SHARE = 0.002


def five(name: str, **training: Any) -> tuple[Config, Network]:
    config = load_config(CONFIGS / f"{name}.yaml")
    config = replace(config, training=replace(config.training, **training))
    return config, build_network(config, (1, 28, 28), 10, np.random.default_rng(0))


def any_config(shard_size: int, clip_norm: float | None = None) -> Config:
    return five("lenet", shard_size=shard_size, clip_norm=clip_norm)[0]


def random_split(shape: tuple[int, ...], n: int) -> Split:
    rng = np.random.default_rng(1)
    return Split(rng.integers(0, 256, (n, *shape), dtype=np.uint8), rng.integers(0, 3, n))


def compute_gradients(
    network: Network, N: int, augmentation: Augmentation | None = None
) -> Callable[[], None]:
    """Make the function that computes the gradients of one shard as training does."""
    split = random_split(network.input_shape, N)
    gradients = BatchGradients(
        network,
        Workers(1),
        split,
        Normalization.from_images(split.images),
        shard_size=N,
        label_smoothing=0.0,
        seed=0,
        augmentation=augmentation,
    )

    def run() -> None:
        gradients.compute(np.arange(N), 0)

    return run


class ScratchCall(NamedTuple):
    owner: int
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@contextmanager
def watching_scratch() -> Iterator[list[ScratchCall]]:
    """Note every array that any layer asks any scratch memory for."""
    calls, original, alive = list[ScratchCall](), Scratch.array, list[Scratch]()

    def array(self: Scratch, name: str, shape: tuple[int, ...], dtype: Any) -> Any:
        calls.append(ScratchCall(id(self), name, shape, np.dtype(dtype)))
        alive.append(self)  # so that no other gets its id
        return original(self, name, shape, dtype)

    with mock.patch.object(Scratch, "array", array):
        yield calls


def asked_for(facts: StepFacts) -> list[PassArrays]:
    """Give the passes in the order in which they are made."""
    backward = [layer.backward for layer in facts.backward if layer.backward is not None]
    return [*(layer.forward for layer in facts.layers), *backward]


def assert_lists_what_runs(network: Network, facts: StepFacts) -> None:
    """Compare the listing with every call of `Scratch.array` in a real step."""
    run = compute_gradients(network, facts.shard_size)
    with watching_scratch() as calls:
        run()
    memory: dict[tuple[int, str], int] = {}
    for owner, name, shape, dtype in calls:
        n_bytes = math.prod(shape) * dtype.itemsize
        memory[owner, name] = max(memory.get((owner, name), 0), n_bytes)
    assert facts.shard_kept_bytes == sum(memory.values())
    listed = [array for passed in asked_for(facts) for array in passed.arrays if array.kind == "kept"]
    names = {"cols": "block"}
    rows = [(names.get(a.name, a.name), a.shape, a.dtype, a.count) for a in listed]
    assert rows == [summary(group) for group in calls_in_a_row(calls) if not is_read_again(group, calls)]


def calls_in_a_row(calls: list[ScratchCall]) -> list[list[ScratchCall]]:
    """Put together what one scratch memory is asked for again and again, under one name and a number."""
    return [
        list(group) for _, group in groupby(calls, key=lambda call: (call.owner, call.name.partition(" ")[0]))
    ]


def summary(group: list[ScratchCall]) -> tuple[str, tuple[int, ...], str, int]:
    largest = max((call.shape for call in group), key=math.prod)
    return group[0].name.partition(" ")[0], largest, str(group[0].dtype), len(group)


def is_read_again(group: list[ScratchCall], calls: list[ScratchCall]) -> bool:
    """Tell whether these are the outcomes that backward only reads: those after the first of a layer."""
    return group[0].name == "outcomes" and group[0] is not next(
        call for call in calls if (call.owner, call.name) == (group[0].owner, "outcomes")
    )


def assert_words_are_true(network: Network, facts: StepFacts) -> None:
    """Evaluate the words of every array, and compare with its numbers."""
    for step, layer in zip(plan_work(network), facts.layers, strict=True):
        axes = axes_of(step.layer, step.parts, facts.shard_size)
        for passed in (layer.forward, layer.backward or PassArrays(())):
            for array in passed.arrays:
                assert array.shape_words, array
                assert shape_of(array.shape_words, axes | open_axes(array, axes)) == array.shape, array


def open_axes(array: StepArray, axes: dict[str, int]) -> dict[str, int]:
    """Take the axes that are no property of the layer from the numbers."""
    if array.name == "pieces":
        return {"pieces": array.shape[0]}
    if "rows" in array.shape_words:
        width = axes["YW"] if "YW" in array.shape_words else axes["OW"]
        rows, rest = divmod(array.shape[1], width * axes["N"])
        assert rest == 0
        assert 0 < rows < (axes["YH"] if "YW" in array.shape_words else axes["OH"])
        return {"rows": rows}
    return {}


@pytest.mark.parametrize("name", FIVE)
@pytest.mark.parametrize("batch_size", [1, 100])
def test_the_five_networks_ask_for_what_is_listed(name: str, batch_size: int) -> None:
    config, network = five(name)
    facts = inspect_step(config, network, batch_size=batch_size, n_threads=2)
    assert_lists_what_runs(network, facts)
    assert_words_are_true(network, facts)


@settings(max_examples=40, deadline=None)
@given(stacks(every_kind=True), st.integers(1, 5))
def test_random_networks_ask_for_what_is_listed(specs: list[LayerSpec], N: int) -> None:
    network = make_network(specs, STACK_SHAPE, dtype=np.float32)
    facts = inspect_step(any_config(shard_size=N), network, batch_size=N, n_threads=1)
    assert_lists_what_runs(network, facts)
    assert_words_are_true(network, facts)


LARGE = [
    pytest.param([conv(8, 5), RELU, FLATTEN, dense(3)], id="columns in blocks"),
    pytest.param([conv(8, 5), POOL, conv(16, 5), POOL, FLATTEN, dense(3)], id="pooled"),
    pytest.param(
        [conv(8, 3), ("max_pool2d", {"kernel_size": 3, "stride": 2}), FLATTEN, dense(40), dense(3)],
        id="overlapping pool",
    ),
    pytest.param([conv(16, 3), RELU, conv(16, 5), dropout(0.3), FLATTEN, dense(3)], id="dropout of 32 bits"),
    pytest.param(
        [conv(8, 3), BATCH_NORM, RELU, conv(8, 3), POOL, BATCH_NORM, ("tanh", {}), FLATTEN, dense(3)],
        id="batch norm",
    ),
    pytest.param(
        [
            ("average_pool2d", {"kernel_size": 2}),
            conv(8, 3),
            ("average_pool2d", {"kernel_size": 3, "stride": 1}),
            ("sigmoid", {}),
            ("global_average_pool2d", {}),
            ("batch_norm1d", {}),
            dense(3),
        ],
        id="average pools",
    ),
    pytest.param([FLATTEN, dense(900), RELU, dropout(0.5), dense(3)], id="dense"),
]


def measured_steady_peak(run: Callable[[], None]) -> int:
    """Measure the worst moment of a later run: scratch memory is all there from the start."""
    gc.collect()
    tracemalloc.start()
    try:
        run()
        tracemalloc.reset_peak()
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("specs", LARGE)
def test_the_peak_of_a_shard_is_what_a_step_takes(specs: list[LayerSpec]) -> None:
    network = make_network(specs, (2, 30, 34), dtype=np.float32)
    N = 40
    facts = inspect_step(any_config(shard_size=N), network, batch_size=N, n_threads=1)
    measured = measured_steady_peak(compute_gradients(network, N))
    assert facts.shard_peak_bytes == pytest.approx(measured, abs=UNCOUNTED_BYTES, rel=UNCOUNTED_SHARE)


@pytest.mark.parametrize("shape", [(1, 50, 44), (5, 30, 34)])
def test_the_peak_of_a_shard_whose_images_are_changed(shape: tuple[int, ...]) -> None:
    config = any_config(shard_size=40)
    config = replace(config, data=replace(config.data, augment=AugmentConfig(shift=2, rotate=10)))
    network = make_network([FLATTEN, dense(3)], shape, dtype=np.float32)
    facts = inspect_step(config, network, batch_size=40, n_threads=1)
    measured = measured_steady_peak(compute_gradients(network, 40, build_augmentation(config)))
    assert facts.shard_peak_bytes == pytest.approx(measured, abs=UNCOUNTED_BYTES, rel=UNCOUNTED_SHARE)


def measured_passes(network: Network, N: int) -> list[tuple[int, int | None]]:
    """Measure for each layer of the plan what forward, and backward, need for a moment."""
    replica, rng = network.replica(), np.random.default_rng(0)
    plan, first = replica.plan, replica.first_trained
    forward, backward = [0] * len(plan), dict[int, int]()
    for _ in range(2):  # the first time all memory is new
        x = rng.standard_normal((*network.input_shape, N), dtype=np.float32)
        for index, (layer, _) in enumerate(plan):
            forward[index], x = needed_for_a_moment(partial(layer.forward, x, training=True, rng=rng))
        grad = np.ones_like(x)
        for index in range(len(plan) - 1, first, -1):
            backward[index], grad = needed_for_a_moment(partial(plan[index].layer.backward, grad))
        backward[first], _ = needed_for_a_moment(partial(plan[first].layer.parameter_gradients, grad))
    return [(bytes_needed, backward.get(index)) for index, bytes_needed in enumerate(forward)]


def needed_for_a_moment(run: Callable[[], Any]) -> tuple[int, Any]:
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    result = run()
    return tracemalloc.get_traced_memory()[1] - before, result


@pytest.mark.parametrize("specs", LARGE)
def test_every_pass_needs_for_a_moment_what_is_listed(specs: list[LayerSpec]) -> None:
    network = make_network(specs, (2, 30, 34), dtype=np.float32)
    facts = inspect_step(any_config(shard_size=40), network, batch_size=40, n_threads=1)
    with np.errstate(all="ignore"), short_buffers():
        tracemalloc.start()
        try:
            measured = measured_passes(network, 40)
        finally:
            tracemalloc.stop()
    for layer, (forward, backward) in zip(facts.layers, measured, strict=True):
        assert layer.forward.temporary_bytes == pytest.approx(forward, abs=20_000), layer.name
        assert (layer.backward is None) == (backward is None)
        if layer.backward is not None:
            assert layer.backward.temporary_bytes == pytest.approx(backward, abs=20_000), layer.name


@pytest.mark.parametrize("name", FIVE)
def test_the_peak_of_a_shard_of_the_five_networks(name: str) -> None:
    config, network = five(name)
    N = config.training.shard_size
    facts = inspect_step(config, network, batch_size=N, n_threads=1)
    measured = measured_steady_peak(compute_gradients(network, N))
    assert facts.shard_peak_bytes == pytest.approx(measured, abs=UNCOUNTED_BYTES, rel=UNCOUNTED_SHARE)


@pytest.mark.parametrize("name", FIVE)
def test_what_the_batch_needs_once_is_what_a_trainer_shares(name: str) -> None:
    shared = list[int]()
    config, network = five(name, batch_size=100, epochs=1)
    facts = inspect_step(config, network, batch_size=100, n_threads=1)
    split = random_split((1, 28, 28), 100)
    data = TrainingData(split, None, Normalization.from_images(split.images), (1, 28, 28), 10)
    with watching_shared(shared):
        Trainer(config, data, Workers(1))
    n_parameters = sum(p.value.size for p in network.parameters.values())
    never_used = (SHARDS_IN_FLIGHT - facts.n_shards) * 4 * n_parameters
    assert facts.batch_bytes == sum(shared) - never_used


@contextmanager
def watching_shared(sizes: list[int]) -> Iterator[None]:
    original = shared_memory.shared_array

    def shared_array(shape: tuple[int, ...], dtype: Any) -> Any:
        array = original(shape, dtype)
        if array.dtype == np.float32:  # the others hold one number for each shard or piece
            sizes.append(array.nbytes)
        return array

    with (
        mock.patch("cnncli.training.shared_memory.shared_array", shared_array),
        mock.patch("cnncli.training.gradients.shared_array", shared_array),
    ):
        yield


@given(st.integers(1, 3000), st.integers(1, 300), st.integers(1, 40))
@settings(max_examples=20, deadline=None)
def test_shards_are_those_of_training(batch_size: int, shard_size: int, n_threads: int) -> None:
    network = make_network([FLATTEN, dense(3)], (1, 2, 2), dtype=np.float32)
    facts = inspect_step(any_config(shard_size), network, batch_size=batch_size, n_threads=n_threads)
    shards = shard_slices(batch_size, shard_size)
    assert facts.n_shards == len(shards)
    assert facts.shard_size == max(shard.stop - shard.start for shard in shards)
    assert facts.n_in_flight == min(n_threads, len(shards), SHARDS_IN_FLIGHT)


def test_the_peak_of_a_step_adds_up() -> None:
    network = make_network([FLATTEN, dense(500), dense(3)], (1, 20, 20), dtype=np.float32)
    one = inspect_step(any_config(10), network, batch_size=60, n_threads=1)
    three = inspect_step(any_config(10), network, batch_size=60, n_threads=3)
    assert one.peak_bytes == one.batch_bytes + one.shard_peak_bytes
    assert three.peak_bytes == one.batch_bytes + 3 * one.shard_peak_bytes
    # the squares of the largest parameter in float64 are more than what ten images need
    clipped = inspect_step(any_config(10, clip_norm=1.0), network, batch_size=60, n_threads=1)
    assert clipped.peak_bytes == one.batch_bytes + one.shard_kept_bytes + 500 * 400 * 8


def test_a_network_with_a_pool_by_itself_is_listed_by_hand() -> None:
    network = make_network([conv(3, 2), POOL, RELU, FLATTEN, dense(4)], (2, 5, 7), dtype=np.float32)
    facts = inspect_step(any_config(6), network, batch_size=12, n_threads=1)
    together = facts.layers[0]
    assert (together.name, together.indices) == ("conv2d + max_pool2d", (0, 1))
    # 5x7 -> 4x6 -> 2x3; N = 6
    assert [
        (a.name, a.shape_words, a.shape, a.dtype, a.count, a.nbytes) for a in together.forward.arrays
    ] == [
        ("cells", "(PH*PW, F, OH*OW*N)", (4, 3, 36), "float32", 1, 4 * 3 * 36 * 4),
        ("cols", "(C*KH*KW, OH*OW*N)", (8, 36), "float32", 4, 4 * 8 * 36 * 4),
        ("outcomes", "(PH*PW-1, F, OH*OW*N)", (3, 3, 36), "bool", 1, 3 * 3 * 36),
    ]
    assert "4 convolutions, one for each cell of the 2x2 window" in together.note
    assert together.backward is not None
    assert [a.name for a in together.backward.arrays if a.kind == "kept"] == ["grad_cells"]
    assert "kept from forward: outcomes, cols" in together.backward.note
    assert "no gradient of the input" in together.backward.note


def test_what_is_too_much_to_keep_is_laid_out_again() -> None:
    network = make_network([conv(4, 5), FLATTEN, dense(3)], (3, 30, 30), dtype=np.float32)
    facts = inspect_step(any_config(100), network, batch_size=100, n_threads=1)
    layer = facts.layers[0]
    assert layer.backward is not None
    cols, again = layer.forward.arrays[1], layer.backward.arrays[0]
    assert (cols.name, again.name) == ("cols", "cols")
    assert cols.count == again.count > 1
    assert cols.nbytes == math.prod(cols.shape) * 4
    assert again.nbytes == 0
    assert "laid out again" in layer.backward.note
    assert "written over" in layer.forward.note


def test_relu_before_a_pool_is_told_to_be_moved() -> None:
    network = make_network([conv(4, 3), RELU, POOL, RELU, FLATTEN, dense(3)], (1, 8, 8))
    facts = inspect_step(any_config(4), network, batch_size=4, n_threads=1)
    assert [layer.indices for layer in facts.layers] == [(0, 2), (1,), (3,), (4,), (5,)]
    assert [bool(layer.note) for layer in facts.layers] == [True, True, False, True, False]
    assert "behind the pool" in facts.layers[1].note


def test_layers_below_the_first_with_parameters_have_no_backward() -> None:
    network = make_network([RELU, POOL, FLATTEN, dense(3)], (1, 8, 8))
    facts = inspect_step(any_config(4), network, batch_size=4, n_threads=1)
    assert [layer.backward is None for layer in facts.layers] == [True, True, True, False]


def test_dropout_that_drops_nothing_is_a_view() -> None:
    network = make_network([FLATTEN, dense(5), dropout(0.0), dense(3)], (1, 4, 4))
    facts = inspect_step(any_config(4), network, batch_size=4, n_threads=1)
    assert [array.kind for array in facts.layers[2].forward.arrays] == ["view"]


def test_a_shard_that_would_use_up_the_machine_is_refused() -> None:
    network = make_network([conv(8, 3), FLATTEN, dense(3)], (1, 28, 28))
    with pytest.raises(UsageError, match=r"a shard of 1,000,000 images gives .* GiB .*training\.shard_size"):
        inspect_step(any_config(10**6), network, batch_size=10**6, n_threads=1)


def test_the_network_is_not_changed() -> None:
    network = make_network([conv(2, 3), POOL, FLATTEN, dense(3)], (1, 8, 8))
    before = {name: (p.value.copy(), p.grad.copy()) for name, p in network.parameters.items()}
    inspect_step(any_config(4), network, batch_size=9, n_threads=1)
    for name, parameter in network.parameters.items():
        np.testing.assert_array_equal(parameter.value, before[name][0])
        np.testing.assert_array_equal(parameter.grad, before[name][1])


def test_every_layer_has_words() -> None:
    assert WORDS.keys() == {*LAYERS.values(), PooledConv2D}
