"""Every array of one training step, with its shape and size.

What the layers keep is recorded while one shard really goes forward and backward, because a second
description of the blocks, bands and rewritten layers could become wrong without anybody noticing.
That costs the time and the memory of one shard; docs/adr/0007-recorded-step.md says more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np

from cnncli.config import Config, build_augmentation, build_optimizer
from cnncli.data import Augmentation
from cnncli.errors import UsageError
from cnncli.nn import Network
from cnncli.nn.array_words import (
    PARAMETER_WORDS,
    WORDS,
    ArrayWords,
    PassWords,
    axes_of,
    shape_of,
    spelled_out,
)
from cnncli.nn.inspection import inspect_network
from cnncli.nn.layers import Conv2D
from cnncli.nn.products import n_pieces
from cnncli.nn.recording import ScratchCall
from cnncli.training.gradients import SHARDS_IN_FLIGHT, shard_slices
from cnncli.training.profiling.plan_work import PlanWork, plan_work
from cnncli.training.shard_recording import RecordedLayer, RecordedPass, record_shard
from cnncli.training.step_facts import Kind, LayerArrays, PassArrays, StepArray, StepFacts
from cnncli.training.step_notes import backward_note, forward_note, layer_note

# MNIST's files and most others hold bytes
_FILE_DTYPE = "uint8"
# far more than there are images; the shards of a batch are counted one by one
MAX_BATCH_SIZE = 1_000_000
# a shard with more than that is refused: its arrays are really made
MAX_ACTIVATION_BYTES = 4 * 2**30


def inspect_step(config: Config, network: Network, *, batch_size: int, n_threads: int) -> StepFacts:
    """Send one shard of zeros through the network, and collect the arrays of a whole step.

    Parameters
    ----------
    network : that of the configuration; it is not changed
    batch_size : images of the step
    n_threads : how many shards are computed side by side at most

    Raises
    ------
    UsageError : the batch, or a shard, is too large
    """
    if batch_size > MAX_BATCH_SIZE:
        raise UsageError(f"expected a batch of at most {MAX_BATCH_SIZE:,} images, got {batch_size:,}")
    shards = shard_slices(batch_size, config.training.shard_size)
    N = max(shard.stop - shard.start for shard in shards)
    _refuse_too_many(network, N)
    n_slots = min(len(shards), SHARDS_IN_FLIGHT)
    recorded = record_shard(network, N)
    layers = zip(plan_work(network), recorded.layers, strict=True)
    return StepFacts(
        dtype=str(network.dtype),
        batch_size=batch_size,
        shard_size=N,
        n_shards=len(shards),
        n_threads=n_threads,
        n_in_flight=min(n_threads, n_slots),
        batch=_batch_arrays(config, network, n_slots),
        input=_input_arrays(network, N, build_augmentation(config), recorded.holds_images),
        layers=tuple(_LayerReading(step, passes, network, N).arrays() for step, passes in layers),
        loss=_loss_arrays(network, N),
        update=_update_arrays(config, network),
    )


class _LayerReading:
    """What was recorded of one layer, put into words."""

    def __init__(self, step: PlanWork, recorded: RecordedLayer, network: Network, N: int) -> None:
        self._step = step
        self._recorded = recorded
        self._network = network
        self._words = WORDS.get(type(step.layer), PassWords())
        self._axes = axes_of(step.layer, step.parts, N)
        if isinstance(step.parts[0], Conv2D):
            self._axes["pieces"] = _most_pieces(recorded.forward.calls, self._axes["F"])

    def arrays(self) -> LayerArrays:
        forward = self._pass(self._recorded.forward, self._words.forward)
        return LayerArrays(
            name=self._step.name,
            indices=self._step.indices,
            note=layer_note(self._step, self._network),
            forward=PassArrays(
                tuple(forward), _temporary_bytes(forward, self._words.forward), forward_note(forward)
            ),
            backward=self._backward(forward),
        )

    def _backward(self, forward: Sequence[StepArray]) -> PassArrays | None:
        recorded = self._recorded
        if recorded.parameters is None:
            return None
        arrays = self._pass(recorded.parameters, self._words.parameters)
        temporary = _temporary_bytes(arrays, self._words.parameters)
        arrays += self._parameter_gradients()
        if recorded.inputs is not None:
            inputs = self._pass(recorded.inputs, self._words.inputs)
            temporary = max(temporary, _temporary_bytes(inputs, self._words.inputs))
            arrays += inputs
        kept = () if recorded.forward.is_view else self._words.kept
        return PassArrays(
            tuple(arrays), temporary, backward_note(kept, arrays, has_inputs=recorded.inputs is not None)
        )

    def _pass(self, recorded: RecordedPass, words: Sequence[ArrayWords]) -> list[StepArray]:
        if recorded.is_view:
            return [self._view(recorded is self._recorded.forward)]
        calls = _by_name(recorded.calls)
        arrays = list[StepArray]()
        for entry in words:
            if entry.scratch:
                group = calls.pop(entry.scratch, None)
                if group is not None and not entry.is_read:
                    arrays.append(self._kept(entry, group))
            elif not entry.needs or entry.needs in self._step.layer.parameters:
                arrays.append(self._temporary(entry))
        # a layer that nobody has described yet is shown all the same
        arrays += [self._kept(ArrayWords(name, "", name), group) for name, group in calls.items()]
        return arrays

    def _kept(self, entry: ArrayWords, calls: Sequence[ScratchCall]) -> StepArray:
        shape = max((call.shape for call in calls), key=math.prod)
        words = spelled_out(entry.words, self._axes)
        if entry.rows:
            whole = words.replace("rows", entry.rows)
            words = whole if shape_of(whole, self._axes) == shape else words
        n_bytes = sum(call.new_bytes for call in calls)
        return StepArray(entry.name, words, shape, str(calls[0].dtype), len(calls), n_bytes, "kept")

    def _temporary(self, entry: ArrayWords) -> StepArray:
        words = spelled_out(entry.words, self._axes)
        dtype = self._dtype(entry)
        return _array(entry.name, words, shape_of(words, self._axes), dtype, "temporary", entry.count)

    def _dtype(self, entry: ArrayWords) -> str:
        like = [call.dtype for call in self._recorded.forward.calls if call.name == entry.dtype]
        return str(like[0] if like else np.dtype(entry.dtype or self._network.dtype))

    def _view(self, is_forward: bool) -> StepArray:
        layer = self._step.layer
        shape = (*(layer.output_shape if is_forward else layer.input_shape), self._axes["N"])
        words = spelled_out(
            "(INPUT, N)" if len(shape) == len(layer.input_shape) + 1 else "(NUMBERS, N)", self._axes
        )
        name = "output" if is_forward else "grad_input"
        return StepArray(name, words, shape, str(self._network.dtype), 1, 0, "view")

    def _parameter_gradients(self) -> list[StepArray]:
        layer = self._step.layer
        words = PARAMETER_WORDS.get(type(layer), {})
        return [
            _array(f"{name}.grad", words.get(name, ""), p.value.shape, p.value.dtype, "slot")
            for name, p in layer.parameters.items()
        ]


def _by_name(calls: Iterable[ScratchCall]) -> dict[str, list[ScratchCall]]:
    """Put together what is asked for under one name, or under one name and a number."""
    groups = dict[str, list[ScratchCall]]()
    for call in calls:
        groups.setdefault(call.name.partition(" ")[0], []).append(call)
    return groups


def _most_pieces(calls: Iterable[ScratchCall], F: int) -> int:
    """Count the products that a sum over the windows of a block is cut into, for the worst block."""
    blocks = _by_name(calls).get("block", [])
    return max((n_pieces(call.shape[0] * F, call.shape[1]) for call in blocks), default=1)


def _temporary_bytes(arrays: Iterable[StepArray], words: Iterable[ArrayWords]) -> int:
    """Sum up the temporary arrays of each moment; return the largest sum."""
    moments = {entry.name: entry.moments for entry in words}
    sums = dict[str, int]()
    for array in arrays:
        if array.kind == "temporary":
            for moment in moments[array.name]:
                sums[moment] = sums.get(moment, 0) + array.nbytes
    return max(sums.values(), default=0)


def _array(
    name: str, words: str, shape: tuple[int, ...], dtype: object, kind: Kind, count: int = 1
) -> StepArray:
    kind_of_number = np.dtype(dtype)  # type: ignore[call-overload]
    n_bytes = count * math.prod(shape) * kind_of_number.itemsize
    return StepArray(name, words, shape, str(kind_of_number), count, n_bytes, kind)


def _input_arrays(
    network: Network, N: int, augmentation: Augmentation | None, holds_images: bool
) -> PassArrays:
    """List what `BatchGradients` makes of the images' indices.

    A layer that holds on to its input lets go of that of the shard before when it gets the new one.
    """
    C, H, W = network.input_shape
    before = _array("x before", "(C, H, W, N)", (C, H, W, N), network.dtype, "temporary")
    images = _array("images", "(N, C, H, W)", (N, C, H, W), _FILE_DTYPE, "temporary")
    x = _array("x", "(C, H, W, N)", (C, H, W, N), network.dtype, "shard")
    labels = _array("labels", "(N,)", (N,), np.int64, "shard")
    held = (before,) if holds_images else ()
    note = "a layer still holds the x of the shard before, until it gets the new one" if holds_images else ""
    if augmentation is None or augmentation.is_identity:
        turned = _array("batch last", "(C, H, W, N)", (C, H, W, N), _FILE_DTYPE, "temporary")
        passing = sum(array.nbytes for array in (*held, images, turned))
        return PassArrays((*held, images, x, turned, labels), passing, note)
    turned = _array("batch last", "(C, H, W, N)", (C, H, W, N), np.float32, "temporary")
    changes = _augmentation_arrays(C, H, W, N)
    # the images as they were are gone when x is made
    passing = max(
        sum(array.nbytes for array in (*held, images, *changes)) - x.nbytes,
        sum(array.nbytes for array in (*held, changes[-1], turned)),
    )
    return PassArrays((*held, images, *changes, x, turned, labels), passing, note)


def _augmentation_arrays(C: int, H: int, W: int, N: int) -> tuple[StepArray, ...]:
    """List what `cnncli.data.augment.resample` makes, its result last."""
    pixels = "(N, H, W)", (N, H, W)
    return (
        _array("rows, columns", *pixels, np.float32, "temporary", 2),
        _array("padded", "(N, H+3, W+3)", (N, H + 3, W + 3), np.float32, "temporary"),
        _array("places", *pixels, np.intp, "temporary"),
        _array("values", *pixels, np.float32, "temporary", 3),
        _array("changed", "(N, C, H, W)", (N, C, H, W), np.float32, "temporary"),
    )


def _loss_arrays(network: Network, N: int) -> PassArrays:
    (K,) = network.output_shape
    shifted = _array("shifted", "(K, N)", (K, N), network.dtype, "temporary")
    # the probabilities, until they become the gradient in place
    grad = _array("grad_logits", "(K, N)", (K, N), network.dtype, "shard")
    return PassArrays((shifted, grad), shifted.nbytes)


def _batch_arrays(config: Config, network: Network, n_slots: int) -> PassArrays:
    """List the parameters, and what has their size, each in one row."""
    parameters = [parameter.value for parameter in network.parameters.values()]
    size, dtype = sum(value.size for value in parameters), network.dtype
    words = "(parameters,)"
    arrays = [
        _array("parameters", words, (size,), dtype, "batch"),
        _array("gradient", words, (size,), dtype, "batch"),
        _array("slots", words, (size,), dtype, "batch", n_slots),
    ]
    if network.buffers:
        n_averages = sum(buffer.size for buffer in network.buffers.values())
        arrays.append(_array("running averages", "(averages,)", (n_averages,), dtype, "batch"))
    state = build_optimizer(config, network.parameters).state
    by_moment = sorted(state.items(), key=lambda entry: entry[0].rpartition("/")[2])
    for moment, entries in groupby(by_moment, key=lambda entry: entry[0].rpartition("/")[2]):
        n_numbers = sum(array.size for _, array in entries)
        arrays.append(_array(moment, words, (n_numbers,), dtype, "batch"))
    return PassArrays(tuple(arrays))


def _update_arrays(config: Config, network: Network) -> PassArrays:
    """List what the optimizer's step needs; it goes through the parameters in pieces too small to count."""
    if config.training.clip_norm is None:
        return PassArrays(())
    largest = max(parameter.value.size for parameter in network.parameters.values())
    squares = _array("squares", "(largest parameter,)", (largest,), np.float64, "temporary")
    return PassArrays((squares,), squares.nbytes)


def _refuse_too_many(network: Network, N: int) -> None:
    """Raise `UsageError` before a shard is run that would use up the machine."""
    n_bytes = inspect_network(network, N).total_activation_bytes
    if n_bytes > MAX_ACTIVATION_BYTES:
        raise UsageError(
            f"a shard of {N:,} images gives {n_bytes / 2**30:,.1f} GiB of activations, too many to list its "
            "arrays; lower training.shard_size or the batch size"
        )
