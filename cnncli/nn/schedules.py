"""Learning-rate schedules, counted in optimizer steps from 0."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

from cnncli.nn.options import Fraction, PositiveFloat, PositiveInt, checked, positive_float, positive_int


class Schedule(ABC):
    """Gives the learning rate of every step.

    Attributes
    ----------
    depends_on_end : whether more epochs would change the rates of the steps already taken
    """

    depends_on_end: bool = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            setattr(cls, "__init__", checked(vars(cls)["__init__"]))  # noqa: B010

    def __init__(self, peak: float, total_steps: int, steps_per_epoch: int, warmup: float) -> None:
        self.peak = positive_float("peak", peak)
        self.total_steps = positive_int("total_steps", total_steps)
        self.steps_per_epoch = positive_int("steps_per_epoch", steps_per_epoch)
        self.warmup = warmup
        self.warmup_steps = round(self.warmup * total_steps)

    @abstractmethod
    def learning_rate(self, step: int) -> float:
        """Return the learning rate of a step, 0 <= step < total_steps."""


class _AfterWarmup(Schedule):
    """A linear rise to the peak over the warm-up, then a shape of its own."""

    def learning_rate(self, step: int) -> float:
        if step < self.warmup_steps:
            return self.peak * (step + 1) / self.warmup_steps
        return self.peak * self._factor(step)

    @abstractmethod
    def _factor(self, step: int) -> float:
        """Return the fraction of the peak after the warm-up."""


class Constant(_AfterWarmup):
    """The same rate all the time.

    Parameters
    ----------
    peak : the rate
    total_steps, steps_per_epoch : length of the run
    warmup : fraction of all steps over which the rate rises linearly
    """

    def __init__(
        self, peak: float, total_steps: int, steps_per_epoch: int, *, warmup: Fraction = 0.0
    ) -> None:
        super().__init__(peak, total_steps, steps_per_epoch, warmup)
        self.depends_on_end = self.warmup > 0

    def _factor(self, step: int) -> float:
        return 1.0


class Step(_AfterWarmup):
    """Multiply the rate by a factor every few epochs.

    Parameters
    ----------
    peak : the first rate
    total_steps, steps_per_epoch : length of the run
    every : epochs between two changes
    factor : what the rate is multiplied by
    warmup : fraction of all steps over which the rate rises linearly
    """

    def __init__(
        self,
        peak: float,
        total_steps: int,
        steps_per_epoch: int,
        *,
        every: PositiveInt = 1,
        factor: PositiveFloat = 0.7,
        warmup: Fraction = 0.0,
    ) -> None:
        super().__init__(peak, total_steps, steps_per_epoch, warmup)
        self.depends_on_end = self.warmup > 0
        self.every = every
        self.factor = factor

    def _factor(self, step: int) -> float:
        epoch = step // self.steps_per_epoch
        try:
            return self.factor ** (epoch // self.every)
        except OverflowError:  # a factor far above 1: the loss will tell
            return math.inf


class Cosine(_AfterWarmup):
    """Fall along half a cosine (Loshchilov and Hutter 2017, eq. 5, without restarts).

    Parameters
    ----------
    peak : the highest rate
    total_steps, steps_per_epoch : length of the run
    warmup : fraction of all steps over which the rate rises linearly
    final : rate after the last step, as a fraction of the peak
    """

    def __init__(
        self,
        peak: float,
        total_steps: int,
        steps_per_epoch: int,
        *,
        warmup: Fraction = 0.0,
        final: Fraction = 0.0,
    ) -> None:
        super().__init__(peak, total_steps, steps_per_epoch, warmup)
        self.final = final

    def _factor(self, step: int) -> float:
        progress = (step - self.warmup_steps) / (self.total_steps - self.warmup_steps)
        return _cosine_between(1.0, self.final, progress)


class OneCycle(Schedule):
    """Rise and fall along half cosines (Smith and Topin 2018; the form of PyTorch's OneCycleLR).

    Parameters
    ----------
    peak : the highest rate
    total_steps, steps_per_epoch : length of the run
    warmup : fraction of all steps that the rise takes
    initial : rate of the first step, as a fraction of the peak
    final : rate of the last step, as a fraction of the peak
    """

    def __init__(
        self,
        peak: float,
        total_steps: int,
        steps_per_epoch: int,
        *,
        warmup: Fraction = 0.3,
        initial: Fraction = 0.04,
        final: Fraction = 0.0001,
    ) -> None:
        super().__init__(peak, total_steps, steps_per_epoch, warmup)
        self.initial = initial
        self.final = final

    def learning_rate(self, step: int) -> float:
        top, last = self.warmup * self.total_steps - 1, self.total_steps - 1
        if step < top:
            return self.peak * _cosine_between(self.initial, 1.0, step / top)
        start = max(top, 0.0)
        if last <= start:
            return self.peak
        return self.peak * _cosine_between(1.0, self.final, (step - start) / (last - start))


SCHEDULES: dict[str, type[Schedule]] = {
    "constant": Constant,
    "step": Step,
    "cosine": Cosine,
    "one_cycle": OneCycle,
}


def _cosine_between(start: float, end: float, progress: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * progress)) / 2
