"""What a reader of a textbook would not expect of a training step, in one line each."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cnncli.nn import BatchNorm, Flatten, MaxPool2D, Network, ReLU
from cnncli.nn.layers.pooled_conv import PooledConv2D
from cnncli.training.profiling.plan_work import PlanWork
from cnncli.training.step_facts import StepArray


def layer_note(step: PlanWork, network: Network) -> str:
    """Say how a layer of the plan differs from what the configuration names."""
    pool = step.parts[-1]
    if isinstance(step.layer, PooledConv2D) and isinstance(pool, MaxPool2D):
        PH, PW = pool.windows.kernel_size
        return (
            f"computed together: {_counted(PH * PW, 'convolution')}, one for each cell of the {PH}x{PW} "
            "window, and the maximum over them; cells[0] becomes the output"
        )
    if isinstance(step.layer, ReLU) and _stands_behind_pool(step, network):
        return "moved behind the pool, where there are fewer numbers; the result is the same"
    if isinstance(step.layer, BatchNorm):
        return "mean and variance are those of the shard, not of the whole batch"
    if isinstance(step.layer, Flatten):
        return "the same memory, seen in another shape"
    return ""


def forward_note(arrays: Sequence[StepArray]) -> str:
    """Say in how many blocks a convolution is computed, and what becomes of them."""
    cols = next((array for array in arrays if array.name == "cols"), None)
    if cols is None or cols.count == 1:
        return ""
    # a block that is kept has memory of its own
    is_kept = cols.nbytes > math.prod(cols.shape) * np.dtype(cols.dtype).itemsize
    fate = "all kept for backward" if is_kept else "each written over the one before"
    return f"cols in {cols.count} blocks that fit the cache, {fate}"


def backward_note(kept: Sequence[str], arrays: Sequence[StepArray], *, has_inputs: bool) -> str:
    """Say what backward takes from forward, and what it need not compute."""
    again = [array.name for array in arrays if array.kind == "kept" and array.name in kept]
    left = [name for name in kept if name not in again]
    parts = []
    if left:
        parts.append(f"kept from forward: {', '.join(left)}")
    if again:
        parts.append(f"{', '.join(again)} laid out again, which is cheaper than to keep so much")
    if any(array.name == "grad_cols" and array.count > 1 for array in arrays):
        parts.append("grad_cols takes one row of the kernel at a time")
    if not has_inputs:
        parts.append("no gradient of the input: nothing before it is trained")
    return "; ".join(parts)


def _stands_behind_pool(step: PlanWork, network: Network) -> bool:
    (index,) = step.indices
    return index + 1 < len(network.layers) and network.layers[index].output_shape != step.layer.output_shape


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
