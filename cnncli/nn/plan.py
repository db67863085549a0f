"""The order in which a network computes its layers: exact rewrites that are faster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cnncli.nn.layers.activation import ReLU
from cnncli.nn.layers.base import Layer
from cnncli.nn.layers.conv import Conv2D
from cnncli.nn.layers.pool import MaxPool2D
from cnncli.nn.layers.pooled_conv import PooledConv2D


class PlanStep(NamedTuple):
    """One layer that is computed, and the places of the layers that it stands for."""

    layer: Layer
    indices: tuple[int, ...]


def execution_plan(layers: Sequence[Layer]) -> tuple[PlanStep, ...]:
    """Rewrite layers for speed; for finite numbers the values and gradients stay the same.

    - A ReLU before a max-pool is moved behind it, where there are fewer numbers. The maximum of
      rectified numbers is the rectified maximum; where it is 0 the gradient is 0 either way.
    - A convolution and the max-pool after it become one `PooledConv2D`.
    """
    return _pool_convolutions(_move_relu_behind_pool(layers))


def _move_relu_behind_pool(layers: Sequence[Layer]) -> list[PlanStep]:
    steps = [PlanStep(layer, (index,)) for index, layer in enumerate(layers)]
    for place in range(len(steps) - 1):
        relu, pool = steps[place], steps[place + 1]
        if isinstance(relu.layer, ReLU) and isinstance(pool.layer, MaxPool2D):
            steps[place : place + 2] = pool, PlanStep(ReLU(pool.layer.output_shape), relu.indices)
    return steps


def _pool_convolutions(steps: Sequence[PlanStep]) -> tuple[PlanStep, ...]:
    plan: list[PlanStep] = []
    for step in steps:
        before, pool = plan[-1].layer if plan else None, step.layer
        if isinstance(before, Conv2D) and isinstance(pool, MaxPool2D) and PooledConv2D.fits(pool):
            plan[-1] = PlanStep(PooledConv2D(before, pool), plan[-1].indices + step.indices)
        else:
            plan.append(step)
    return tuple(plan)
