"""Optimizers, in order of increasing complexity. The formulas are PyTorch's."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cnncli.errors import CheckpointError, OptionError
from cnncli.nn.arrays import FloatArray
from cnncli.nn.layers.base import Parameter
from cnncli.nn.options import Betas, FractionBelowOne, NonNegativeFloat, PositiveFloat, checked

# A step makes a dozen passes over the value, the gradient and the moments: in pieces that stay in the
# cache together it is several times as fast as over whole arrays.
PIECE_SIZE = 16384


def parameter_pieces(parameters: Mapping[str, Parameter]) -> list[tuple[str, slice]]:
    """Cut all parameters into pieces of at most PIECE_SIZE numbers of their flat form."""
    return [
        (name, slice(start, start + PIECE_SIZE))
        for name, parameter in parameters.items()
        for start in range(0, parameter.value.size, PIECE_SIZE)
    ]


class Optimizer(ABC):
    """Changes parameters by their gradients.

    Attributes
    ----------
    learning_rate : may be set between steps
    step_count : steps taken
    state : arrays that the next step depends on, ``{"0/weight/momentum": ...}``; with `step_count`
        all that has to be saved
    """

    moments: tuple[str, ...] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            setattr(cls, "__init__", checked(vars(cls)["__init__"]))  # noqa: B010

    def __init__(self, parameters: Mapping[str, Parameter], learning_rate: float) -> None:
        self.parameters = dict(parameters)
        self.learning_rate = learning_rate
        self.step_count = 0
        self.state: dict[str, FloatArray] = {
            f"{name}/{moment}": np.zeros_like(parameter.value)
            for name, parameter in self.parameters.items()
            for moment in self.moments
        }
        self._pieces = parameter_pieces(self.parameters)

    def step(self) -> None:
        """Change every parameter in place by its gradient."""
        self.step_count += 1
        for index in range(self.n_pieces):
            self.update_piece(index)

    @property
    def n_pieces(self) -> int:
        """Number of pieces that a step consists of."""
        return len(self._pieces)

    def update_piece(self, index: int) -> None:
        """Do one piece of step number `step_count`; pieces may be done in any order, side by side."""
        name, part = self._pieces[index]
        parameter = self.parameters[name]
        arrays = [parameter.value, parameter.grad, *(self.state[f"{name}/{m}"] for m in self.moments)]
        self.update(*(array.reshape(-1)[part] for array in arrays))

    def share_state(self, share: Callable[[FloatArray], FloatArray]) -> None:
        """Move the state to other memory: ``share`` returns the copy that takes an array's place."""
        self.state = {name: share(array) for name, array in self.state.items()}

    @abstractmethod
    def update(self, value: FloatArray, grad: FloatArray, *moments: FloatArray) -> None:
        """Change a part of a parameter and its moments in place, as part of step number `step_count`."""

    def load_state(self, state: Mapping[str, FloatArray], step_count: int) -> None:
        """Continue from a saved state; nothing is changed where it does not fit."""
        if state.keys() != self.state.keys() or any(
            not _takes_the_place_of(state[key], own) for key, own in self.state.items()
        ):
            raise CheckpointError(
                "the optimizer's state belongs to another network or optimizer, or is not finite"
            )
        for key, own in self.state.items():
            own[...] = state[key]
        self.step_count = step_count


def _takes_the_place_of(array: FloatArray, own: FloatArray) -> bool:
    return array.shape == own.shape and array.dtype == own.dtype and bool(np.isfinite(array).all())


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum and Nesterov's variant (Sutskever et al. 2013).

    Parameters
    ----------
    parameters : what to change, as ``Network.parameters``
    learning_rate : step length
    momentum : share of the last velocity that is kept
    nesterov : look ahead along the velocity; needs momentum above 0
    weight_decay : this times the parameter is added to the gradient
    """

    moments = ("momentum",)

    def __init__(
        self,
        parameters: Mapping[str, Parameter],
        *,
        learning_rate: PositiveFloat = 0.01,
        momentum: FractionBelowOne = 0.0,
        nesterov: bool = False,
        weight_decay: NonNegativeFloat = 0.0,
    ) -> None:
        self.momentum = momentum
        self.nesterov = nesterov
        self.weight_decay = weight_decay
        if self.nesterov and not self.momentum:
            raise OptionError("nesterov", "false where momentum is 0", "true")
        super().__init__(parameters, learning_rate)

    def update(self, value: FloatArray, grad: FloatArray, *moments: FloatArray) -> None:
        (velocity,) = moments
        if self.weight_decay:
            grad = grad + self.weight_decay * value
        if self.momentum:
            velocity *= self.momentum
            velocity += grad
            grad = grad + self.momentum * velocity if self.nesterov else velocity
        value -= self.learning_rate * grad


class Adam(Optimizer):
    """Adam (Kingma and Ba 2015, algorithm 1), with weight decay as part of the gradient.

    Parameters
    ----------
    parameters : what to change, as ``Network.parameters``
    learning_rate : step length
    betas : decay of the running means of the gradient and of its square
    epsilon : added to the root of the second moment
    weight_decay : this times the parameter is added to the gradient
    """

    moments = ("first_moment", "second_moment")

    def __init__(
        self,
        parameters: Mapping[str, Parameter],
        *,
        learning_rate: PositiveFloat = 1e-3,
        betas: Betas = (0.9, 0.999),
        epsilon: PositiveFloat = 1e-8,
        weight_decay: NonNegativeFloat = 0.0,
    ) -> None:
        self.betas = betas
        self.epsilon = epsilon
        self.weight_decay = weight_decay
        super().__init__(parameters, learning_rate)

    def update(self, value: FloatArray, grad: FloatArray, *moments: FloatArray) -> None:
        if self.weight_decay:
            grad = grad + self.weight_decay * value
        self._move(value, grad, *moments)

    def _move(self, value: FloatArray, grad: FloatArray, *moments: FloatArray) -> None:
        """Take Adam's step, with both moments corrected for their start at zero.

        The moments are kept without their factors 1 - beta, and the corrections are applied to the
        learning rate and to epsilon: three passes over the arrays fewer, the same step.
        """
        first, second = moments
        beta1, beta2 = self.betas
        first *= beta1
        first += grad
        second *= beta2
        second += np.square(grad)
        # the true moments are (1 - beta1) * first / correction1 and (1 - beta2) * second / correction2
        correction1, correction2 = 1 - beta1**self.step_count, 1 - beta2**self.step_count
        scale = math.sqrt((1 - beta2) / correction2)
        change = np.sqrt(second)
        change += self.epsilon / scale
        np.divide(first, change, out=change)
        change *= self.learning_rate * (1 - beta1) / (correction1 * scale)
        value -= change


class AdamW(Adam):
    """Adam with weight decay apart from the gradient (Loshchilov and Hutter 2019, algorithm 2).

    Parameters
    ----------
    parameters, learning_rate, betas, epsilon : as for `Adam`
    weight_decay : each step first shrinks the parameter by learning_rate times this
    """

    def __init__(
        self,
        parameters: Mapping[str, Parameter],
        *,
        learning_rate: PositiveFloat = 1e-3,
        betas: Betas = (0.9, 0.999),
        epsilon: PositiveFloat = 1e-8,
        weight_decay: NonNegativeFloat = 0.01,
    ) -> None:
        super().__init__(
            parameters,
            learning_rate=learning_rate,
            betas=betas,
            epsilon=epsilon,
            weight_decay=weight_decay,
        )

    def update(self, value: FloatArray, grad: FloatArray, *moments: FloatArray) -> None:
        value *= 1 - self.learning_rate * self.weight_decay
        self._move(value, grad, *moments)


OPTIMIZERS: dict[str, type[Optimizer]] = {"sgd": SGD, "adam": Adam, "adamw": AdamW}


def clip_gradient_norm(parameters: Mapping[str, Parameter], max_norm: float) -> float:
    """Scale all gradients together so that their global norm is at most `max_norm`.

    Returns the norm before clipping, summed in float64 (Pascanu et al. 2013, algorithm 1). As in
    PyTorch, the factor is ``max_norm / (norm + 1e-6)`` where that is below 1.
    """
    grads = [parameter.grad for parameter in parameters.values()]
    norm = math.sqrt(sum(float(np.sum(np.square(grad, dtype=np.float64))) for grad in grads))
    factor = max_norm / (norm + 1e-6)
    if factor < 1:
        for grad in grads:
            grad *= grad.dtype.type(factor)
    return norm
