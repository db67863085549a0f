"""Evaluation against figures worked out by hand and against one pass over everything."""

from __future__ import annotations

import numpy as np
import pytest

from cnncli.config import build_network
from cnncli.data import Split
from cnncli.errors import LabelError
from cnncli.nn import softmax_cross_entropy
from cnncli.training import Evaluation, Workers, evaluate
from tests.training.runs import make_config, make_data, make_split


def test_chunks_give_the_figures_of_one_pass() -> None:
    data, split = make_data(), make_split(150, seed=9)
    network = build_network(make_config(), (1, 8, 7), 4, np.random.default_rng(0), np.float64)
    logits = network.forward(data.normalization.apply(split.images, np.float64))
    loss, _ = softmax_cross_entropy(logits, split.labels)
    predictions = logits.argmax(axis=0)
    with Workers(2) as workers:
        evaluation = evaluate(network, split, data.normalization, workers)
    assert evaluation.examples == 150
    assert evaluation.loss == pytest.approx(loss, rel=1e-12)
    assert evaluation.accuracy == np.mean(predictions == split.labels)
    for true in range(4):
        for predicted in range(4):
            count = np.sum((split.labels == true) & (predictions == predicted))
            assert evaluation.confusion_matrix[true, predicted] == count


def test_threads_and_repetition_change_no_bit() -> None:
    data, split = make_data(), make_split(333, seed=9)
    network = build_network(make_config(), (1, 8, 7), 4, np.random.default_rng(0))
    losses = set()
    for n_threads in (1, 2, 3, 3):
        with Workers(n_threads) as workers:
            losses.add(evaluate(network, split, data.normalization, workers).loss)
    assert len(losses) == 1


def test_per_class_scores() -> None:
    # class 0: 3 of 4 found, 1 wrong guess; class 1: 1 of 2 found; class 2: never seen, never guessed
    matrix = np.array([[3, 1, 0], [1, 1, 0], [0, 0, 0]])
    first, second, third = Evaluation(6, 0.0, 4 / 6, matrix).per_class
    assert (first.precision, first.recall, first.f1, first.support) == (0.75, 0.75, 0.75, 4)
    assert (second.precision, second.recall, second.f1, second.support) == (0.5, 0.5, 0.5, 2)
    assert (third.precision, third.recall, third.f1, third.support) == (0.0, 0.0, 0.0, 0)


def test_a_label_beyond_the_classes_is_refused() -> None:
    data = make_data()
    network = build_network(make_config(), (1, 8, 7), 4, np.random.default_rng(0))
    split = Split(data.train.images[:2], np.array([0, 7]))
    with Workers(1) as workers, pytest.raises(LabelError, match="7 is out of range for 4 classes"):
        evaluate(network, split, data.normalization, workers)
