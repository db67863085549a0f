"""Learning-rate schedules, step by step."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cnncli.errors import OptionError
from cnncli.nn import SCHEDULES, Cosine, OneCycle, Schedule, Step
from tests.nn.signatures import options_of, refused_values


def rates(schedule: Schedule) -> list[float]:
    return [schedule.learning_rate(step) for step in range(schedule.total_steps)]


@st.composite
def schedules(draw: st.DrawFn) -> tuple[type[Schedule], dict[str, Any]]:
    """Draw a schedule's class and options."""
    cls = draw(st.sampled_from(list(SCHEDULES.values())))
    fraction = st.floats(0, 1)
    options: dict[str, Any] = {"warmup": draw(fraction)}
    if cls is Step:
        options |= {"every": draw(st.integers(1, 3)), "factor": draw(st.floats(0.01, 1))}
    if cls is Cosine:
        options |= {"final": draw(fraction)}
    if cls is OneCycle:
        options |= {"initial": draw(fraction), "final": draw(fraction)}
    return cls, options


@given(
    chosen=schedules(), epochs=st.integers(1, 6), steps_per_epoch=st.integers(1, 9), peak=st.floats(1e-5, 10)
)
def test_rates_stay_between_zero_and_the_peak(
    chosen: tuple[type[Schedule], dict[str, Any]], epochs: int, steps_per_epoch: int, peak: float
) -> None:
    cls, options = chosen
    found = rates(cls(peak, epochs * steps_per_epoch, steps_per_epoch, **options))
    assert all(type(rate) is float and math.isfinite(rate) for rate in found)
    assert min(found) >= 0
    assert max(found) <= peak * (1 + 1e-12)
    # after the warm-up the rate never rises, so the peak splits the run in two
    top = found.index(max(found))
    assert found[: top + 1] == sorted(found[: top + 1])
    assert found[top:] == sorted(found[top:], reverse=True)


@given(
    chosen=schedules(), epochs=st.integers(1, 6), more=st.integers(1, 6), steps_per_epoch=st.integers(1, 9)
)
def test_depends_on_end_tells_the_truth(
    chosen: tuple[type[Schedule], dict[str, Any]], epochs: int, more: int, steps_per_epoch: int
) -> None:
    cls, options = chosen
    short = cls(0.1, epochs * steps_per_epoch, steps_per_epoch, **options)
    long = cls(0.1, (epochs + more) * steps_per_epoch, steps_per_epoch, **options)
    assert short.depends_on_end == long.depends_on_end
    if not short.depends_on_end:
        assert rates(long)[: short.total_steps] == rates(short)


@pytest.mark.parametrize(
    ("name", "options", "depends_on_end"),
    [
        ("constant", {}, False),
        ("constant", {"warmup": 0.1}, True),
        ("step", {}, False),
        ("step", {"warmup": 0.1}, True),
        ("cosine", {}, True),
        ("one_cycle", {}, True),
    ],
)
def test_which_runs_can_be_made_longer(name: str, options: dict[str, Any], depends_on_end: bool) -> None:
    assert SCHEDULES[name](0.1, 100, 10, **options).depends_on_end is depends_on_end


def test_step_counts_epochs() -> None:
    schedule = Step(0.1, 4 * 5, 5, every=2, factor=0.1)
    assert rates(schedule) == pytest.approx([0.1] * 10 + [0.01] * 10)
    # the first step of the fourth epoch
    assert schedule.learning_rate(15) == pytest.approx(0.01)


def test_cosine() -> None:
    assert rates(Cosine(2.0, 4, 4)) == pytest.approx([2, 1 + math.sqrt(0.5), 1, 1 - math.sqrt(0.5)])
    # the lowest rate, 0.1 of the peak, would belong to the step after the last
    assert rates(Cosine(2.0, 4, 4, final=0.1))[2] == pytest.approx(1.1)


@pytest.mark.parametrize("name", ["constant", "step", "cosine"])
def test_warmup_rises_linearly_to_the_peak(name: str) -> None:
    found = rates(SCHEDULES[name](1.0, 10, 10, warmup=0.4))
    assert found[:5] == pytest.approx([0.25, 0.5, 0.75, 1, 1])


def test_cosine_falls_over_the_steps_after_the_warmup() -> None:
    assert rates(Cosine(1.0, 8, 8, warmup=0.5))[4:] == pytest.approx(rates(Cosine(1.0, 4, 4)))


def test_one_cycle_by_hand() -> None:
    # up over steps 0 to 2, down over steps 2 to 6
    found = rates(OneCycle(1.0, 7, 7, warmup=3 / 7, initial=0.2, final=0.0))
    half = math.sqrt(0.5) / 2
    assert found == pytest.approx([0.2, 0.6, 1, 0.5 + half, 0.5, 0.5 - half, 0], abs=1e-12)


@pytest.mark.parametrize("warmup", [0, 0.05])
def test_one_cycle_with_hardly_any_warmup_starts_at_the_peak(warmup: float) -> None:
    found = rates(OneCycle(1.0, 9, 9, warmup=warmup))
    assert found[0] == pytest.approx(1)
    assert found[4] == pytest.approx((1 + 0.0001) / 2)
    assert found[-1] == pytest.approx(0.0001)


@pytest.mark.parametrize("warmup", [0, 0.3, 1])
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_run_of_one_step(name: str, warmup: float) -> None:
    assert rates(SCHEDULES[name](0.5, 1, 1, warmup=warmup)) == [pytest.approx(0.5)]


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [(name, *refusal) for name, cls in SCHEDULES.items() for refusal in refused_values(cls)],
)
def test_constructor_refuses_what_its_annotations_refuse(name: str, option: str, value: Any) -> None:
    with pytest.raises(OptionError) as caught:
        SCHEDULES[name](0.1, 10, 5, **{option: value})
    assert caught.value.option == option
    assert caught.value.expected == options_of(SCHEDULES[name])[option].expected


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        ((0, 10, 5), "peak"),
        ((math.nan, 10, 5), "peak"),
        ((0.1, 0, 5), "total_steps"),
        ((0.1, 2.5, 5), "total_steps"),
        ((0.1, 10, 0), "steps_per_epoch"),
    ],
)
def test_impossible_lengths(arguments: tuple[Any, ...], option: str) -> None:
    for cls in SCHEDULES.values():
        with pytest.raises(OptionError, match=f"^{option}: expected"):
            cls(*arguments)


def test_a_factor_that_overflows_gives_an_infinite_rate() -> None:
    schedule = Step(1.0, 10, 1, factor=1e200)
    assert schedule.learning_rate(1) == 1e200
    assert schedule.learning_rate(2) == math.inf
