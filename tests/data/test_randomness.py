"""Streams of different purposes, uses and seeds have nothing in common."""

from __future__ import annotations

import itertools

import numpy as np

from cnncli.data import randomness
from cnncli.data.randomness import AUGMENTATION, DROPOUT, EPOCH_ORDER, VALIDATION_SPLIT, WEIGHTS, stream

PURPOSES = [WEIGHTS, VALIDATION_SPLIT, EPOCH_ORDER, DROPOUT, AUGMENTATION]


def first_words(seed: int, *key: int) -> tuple[int, ...]:
    purpose, *indices = key
    return tuple(stream(seed, purpose, *indices).integers(0, 2**63, 4).tolist())


def test_every_purpose_has_its_own_number() -> None:
    constants = {name: value for name, value in vars(randomness).items() if name.isupper()}
    assert sorted(constants.values()) == sorted(PURPOSES)
    assert len(set(PURPOSES)) == len(PURPOSES)


def test_same_arguments_same_stream() -> None:
    assert first_words(5, DROPOUT, 1, 2, 3) == first_words(5, DROPOUT, 1, 2, 3)


def test_no_two_streams_are_the_same() -> None:
    indices = [(), (0,), (1,), (0, 0), (0, 1), (1, 0), (2, 3), (3, 2), (0, 0, 0), (2, 0, 0, 0, 0, 0)]
    # seeds whose 32-bit words look like a purpose and its indices
    seeds = [0, 1, 2, 2**32, 2**32 + 2, 2 * 2**32, 3 * 2**32 + 1, 2**64, 2**64 + 2**32 + 1, 2**96 + 1]
    keys = [(seed, purpose, *rest) for seed, purpose, rest in itertools.product(seeds, PURPOSES, indices)]
    assert len({first_words(*key) for key in keys}) == len(keys)


def test_streams_are_not_correlated() -> None:
    draws = np.stack([stream(0, DROPOUT, step).standard_normal(20_000) for step in range(8)])
    assert np.abs(np.corrcoef(draws) - np.eye(8)).max() < 0.03


def test_streams_are_pinned() -> None:
    # what a seed means must survive releases, or a run cannot be repeated
    assert stream(0, WEIGHTS).integers(0, 1000, 4).tolist() == [662, 677, 352, 242]
    assert stream(7, DROPOUT, 1, 2).integers(0, 1000, 4).tolist() == [578, 692, 597, 834]
