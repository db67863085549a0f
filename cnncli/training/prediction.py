"""The classes that a network gives to images."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cnncli.data import Normalization
from cnncli.errors import DivergenceError
from cnncli.nn import Network, softmax
from cnncli.training.evaluation import CHUNK_SIZE


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
