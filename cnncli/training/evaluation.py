"""What a network makes of a set of images: loss, accuracy and confusion matrix, or its predictions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cnncli.data import Normalization, Split
from cnncli.errors import DivergenceError
from cnncli.nn import Network, softmax, softmax_cross_entropy
from cnncli.nn.arrays import FloatArray
from cnncli.training.divergence import origin_in_evaluation
from cnncli.training.workers import Workers, shared_array

# One size for every evaluation, so that training and a later evaluation give the same bits.
CHUNK_SIZE = 64


@dataclass(frozen=True)
class ClassScores:
    """How well one class was told from the others; a ratio of nothing is 0."""

    label: int
    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True)
class Evaluation:
    """Figures over a set of images.

    Attributes
    ----------
    examples : number of images
    loss : mean cross-entropy in nats
    accuracy : from 0 to 1
    confusion_matrix : integers (K, K); rows are true classes, columns predictions
    """

    examples: int
    loss: float
    accuracy: float
    confusion_matrix: NDArray[np.int64]

    @property
    def per_class(self) -> list[ClassScores]:
        """Precision, recall, F1 and support of every class."""
        matrix = self.confusion_matrix
        return [
            _scores(label, int(matrix[label, label]), int(matrix[:, label].sum()), int(matrix[label].sum()))
            for label in range(len(matrix))
        ]

    def to_dict(self) -> dict[str, Any]:
        """Give plain numbers and lists, ready for JSON."""
        return {
            "examples": self.examples,
            "loss": self.loss,
            "accuracy": self.accuracy,
            "confusion_matrix": self.confusion_matrix.tolist(),
            "per_class": [vars(scores).copy() for scores in self.per_class],
        }


class Evaluator:
    """Evaluates a network on a set of images as often as wanted.

    The images are taken in chunks of a fixed size, so the figures depend on nothing but weights and
    images.
    """

    def __init__(
        self, network: Network, split: Split, normalization: Normalization, workers: Workers
    ) -> None:
        self._network, self._split, self._normalization = network, split, normalization
        self._replicas = [network.replica() for _ in range(workers.n_workers)]
        self._n_chunks = -(-len(split) // CHUNK_SIZE)
        self._losses = shared_array((self._n_chunks,), np.float64)
        self._predictions = shared_array((len(split),), np.int64)
        self._run_chunks = workers.operation(self._run_chunk)

    def evaluate(self) -> Evaluation:
        """Evaluate the weights as they are now.

        Raises
        ------
        LabelError : a label is not one of the network's classes
        """
        self._run_chunks(self._n_chunks)
        n, K = len(self._split), self._network.output_shape[0]
        matrix = np.bincount(self._split.labels * K + self._predictions, minlength=K * K).reshape(K, K)
        return Evaluation(n, float(self._losses.sum()) / n, int(np.trace(matrix)) / n, matrix)

    def origin_of_failure(self) -> str:
        """Evaluate weights whose loss was not finite again, and name the layer to blame."""
        return origin_in_evaluation(self._network, map(self._images, range(self._n_chunks)))

    def _run_chunk(self, worker: int, chunk: int) -> None:
        part = self._part(chunk)
        logits = self._replicas[worker].forward(self._images(chunk))
        self._losses[chunk], _ = softmax_cross_entropy(logits, self._split.labels[part], divisor=1)
        self._predictions[part] = logits.argmax(axis=0)

    def _part(self, chunk: int) -> slice:
        return slice(chunk * CHUNK_SIZE, min((chunk + 1) * CHUNK_SIZE, len(self._split)))

    def _images(self, chunk: int) -> FloatArray:
        return self._normalization.apply(self._split.images[self._part(chunk)], self._network.dtype)


def evaluate(network: Network, split: Split, normalization: Normalization, workers: Workers) -> Evaluation:
    """Evaluate once; see `Evaluator`.

    Raises
    ------
    LabelError : a label is not one of the network's classes
    DivergenceError : the loss is not finite, so the figures would mean nothing
    """
    evaluator = Evaluator(network, split, normalization, workers)
    evaluation = evaluator.evaluate()
    if not math.isfinite(evaluation.loss):
        raise DivergenceError(
            f"the loss on the images is {evaluation.loss}: training has diverged\n"
            f"  {evaluator.origin_of_failure()}"
        )
    return evaluation


def predict(network: Network, images: NDArray[Any], normalization: Normalization) -> NDArray[np.float64]:
    """Return the probability of every class for every image.

    Images are taken in the chunks of an evaluation, which gives the same logits.

    Parameters
    ----------
    images : ndarray of shape (N, C, H, W), uint8 or float32

    Returns
    -------
    ndarray of shape (N, K) : each row sums to 1

    Raises
    ------
    DivergenceError : they are not finite, so the weights are of no use
    """
    probabilities = np.empty((len(images), network.output_shape[0]))
    for start in range(0, len(images), CHUNK_SIZE):
        part = slice(start, start + CHUNK_SIZE)
        with np.errstate(over="ignore", invalid="ignore"):  # found below
            logits = network.forward(normalization.apply(images[part], network.dtype))
        if not np.isfinite(logits).all():
            raise DivergenceError("the network's scores are not finite: its training has diverged")
        probabilities[part] = softmax(logits.astype(np.float64)).T
    return probabilities


def _scores(label: int, n_correct: int, n_predicted: int, support: int) -> ClassScores:
    return ClassScores(
        label=label,
        precision=n_correct / n_predicted if n_predicted else 0.0,
        recall=n_correct / support if support else 0.0,
        f1=2 * n_correct / (n_predicted + support) if n_predicted + support else 0.0,
        support=support,
    )
