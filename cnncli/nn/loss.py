"""Softmax cross-entropy from logits."""

from __future__ import annotations

import numpy as np

from cnncli.errors import LabelError, ShapeError
from cnncli.nn.arrays import FloatArray, IntArray
from cnncli.nn.options import fraction_below_one, positive_int


def softmax(logits: FloatArray) -> FloatArray:
    """Turn logits (K, N) into probabilities (K, N); each column sums to 1."""
    exponentials: FloatArray = np.exp(logits - logits.max(axis=0))
    exponentials /= exponentials.sum(axis=0)
    return exponentials


def softmax_cross_entropy(
    logits: FloatArray,
    labels: IntArray,
    *,
    label_smoothing: float = 0.0,
    divisor: int | None = None,
) -> tuple[float, FloatArray]:
    """Compute the mean cross-entropy of softmax(logits) and its gradient.

    Parameters
    ----------
    logits : ndarray of shape (K, N)
    labels : integers of shape (N,), from 0 to K - 1
    label_smoothing : epsilon of Szegedy et al. 2016, section 7: the target is 1 - epsilon + epsilon/K
        for the label and epsilon/K for every other class
    divisor : what the sum of the losses is divided by; N by default. A shard of a batch passes the
        size of the batch, so that the shards' losses and gradients simply add up.

    Returns
    -------
    loss : float, in nats
    grad_logits : ndarray of shape (K, N), of the logits' dtype

    Raises
    ------
    ShapeError : logits are not a (K, N) array of floats with at least one image
    LabelError : labels are not integers of shape (N,), or one is out of range
    """
    K, N = _check_logits(logits)
    labels = check_labels(labels, K, N)
    epsilon = fraction_below_one("label_smoothing", label_smoothing)
    divisor = N if divisor is None else positive_int("divisor", divisor)

    shifted = logits - logits.max(axis=0)  # the largest is 0: exp cannot overflow
    probabilities = np.exp(shifted)
    sums = probabilities.sum(axis=0)
    images = np.arange(N)
    # log sum exp - logit, never log(p): a probability that underflows to 0 costs no infinity
    targets = shifted[labels, images]
    if epsilon:
        targets = (1 - epsilon) * targets + epsilon * shifted.mean(axis=0)
    loss = float(np.sum(np.log(sums) - targets, dtype=np.float64)) / divisor

    grad = np.divide(probabilities, sums, out=probabilities)
    grad[labels, images] -= 1 - epsilon
    if epsilon:
        grad -= logits.dtype.type(epsilon / K)
    grad *= logits.dtype.type(1 / divisor)
    return loss, grad


def check_labels(labels: IntArray, K: int, N: int) -> IntArray:
    """Return the labels as an integer array (N,), or raise `LabelError` saying what is wrong."""
    labels = np.asarray(labels)
    if labels.shape != (N,):
        advice = "; flatten them with labels.ravel()" if labels.size == N else ""
        raise LabelError(f"labels: expected shape ({N},), one per image, got {labels.shape}{advice}")
    if not np.issubdtype(labels.dtype, np.integer):
        raise LabelError(f"labels: expected integers, got {labels.dtype}")
    lowest, highest = int(labels.min()), int(labels.max())
    if lowest < 0 or highest >= K:
        raise LabelError(
            f"labels: {lowest if lowest < 0 else highest} is out of range for {K} classes (0 to {K - 1})"
        )
    return labels


def _check_logits(logits: FloatArray) -> tuple[int, int]:
    if logits.ndim != 2 or logits.shape[1] < 1 or not np.issubdtype(logits.dtype, np.floating):
        raise ShapeError(
            f"softmax_cross_entropy: expected logits (K, N) of floats with N of at least 1, "
            f"got {logits.dtype} of shape {logits.shape}"
        )
    return logits.shape[0], logits.shape[1]
