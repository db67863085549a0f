"""SimpleConvNet of "Deep Learning from Scratch", chapter 7, over any of the implementations.

conv, relu, pool, dense, relu, dense, softmax; batch first, float64, Adam over whole arrays.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks.textbook_code import Array, Implementation

POOL_SIZE = 2


class SimpleConvNet:
    """The network and its optimizer.

    Parameters
    ----------
    parameters : as cnncli names them, ``0/weight``, ``0/bias``, ``4/weight``, ...; changed in place
    """

    def __init__(self, implementation: Implementation, parameters: Mapping[str, Array]) -> None:
        self.parameters = parameters
        self._implementation = implementation
        self._adam = Adam(parameters)

    def step(self, images: Array, labels: Array) -> float:
        """Take one training step; return the loss before it."""
        loss, gradients = self.gradients(images, labels)
        self._adam.update(gradients)
        return loss

    def gradients(self, images: Array, labels: Array) -> tuple[float, dict[str, Array]]:
        """Compute the mean loss of images (N, C, H, W) and its gradients."""
        p = self.parameters
        convolved = self._implementation.convolve(images, p["0/weight"], p["0/bias"])
        active = convolved.output > 0
        pooled = self._implementation.max_pool(convolved.output * active, POOL_SIZE)
        features = pooled.output.reshape(len(images), -1)  # (N, D)
        hidden = np.maximum(np.dot(features, p["4/weight"].T) + p["4/bias"], 0)
        logits = np.dot(hidden, p["6/weight"].T) + p["6/bias"]
        loss, grad_logits = softmax_loss(logits, labels)

        grad_hidden = np.dot(grad_logits, p["6/weight"]) * (hidden > 0)
        grad_pooled = np.dot(grad_hidden, p["4/weight"]).reshape(pooled.output.shape)
        _, grad_weight, grad_bias = convolved.backward(pooled.backward(grad_pooled) * active)
        return loss, {
            "0/weight": grad_weight,
            "0/bias": grad_bias,
            "4/weight": np.dot(grad_hidden.T, features),
            "4/bias": grad_hidden.sum(axis=0),
            "6/weight": np.dot(grad_logits.T, hidden),
            "6/bias": grad_logits.sum(axis=0),
        }


def softmax_loss(logits: Array, labels: Array) -> tuple[float, Array]:
    """Compute the mean cross-entropy of logits (N, K) and its gradient."""
    N = len(labels)
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities = exponentials / exponentials.sum(axis=1, keepdims=True)
    loss = -np.mean(np.log(probabilities[np.arange(N), labels]))
    grad = probabilities.copy()
    grad[np.arange(N), labels] -= 1
    return float(loss), grad / N


class Adam:
    """Adam (Kingma and Ba 2015, algorithm 1), a formula for a line."""

    def __init__(self, parameters: Mapping[str, Array], learning_rate: float = 0.001) -> None:
        self._parameters = parameters
        self._learning_rate = learning_rate
        self._first = {name: np.zeros_like(value) for name, value in parameters.items()}
        self._second = {name: np.zeros_like(value) for name, value in parameters.items()}
        self._n_steps = 0

    def update(self, gradients: Mapping[str, Array]) -> None:
        """Change every parameter by its gradient."""
        self._n_steps += 1
        for name, grad in gradients.items():
            self._first[name] = 0.9 * self._first[name] + 0.1 * grad
            self._second[name] = 0.999 * self._second[name] + 0.001 * grad**2
            first = self._first[name] / (1 - 0.9**self._n_steps)
            second = self._second[name] / (1 - 0.999**self._n_steps)
            self._parameters[name][...] -= self._learning_rate * first / (np.sqrt(second) + 1e-8)
