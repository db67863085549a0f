"""Flatten."""

from __future__ import annotations

import numpy as np

from cnncli.nn import Flatten


def test_features_come_in_c_h_w_order() -> None:
    x = np.arange(2.0 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    y = Flatten((2, 3, 4)).forward(x)
    assert y.shape == (24, 5)
    for c, h, w, n in np.ndindex(x.shape):
        assert y[(c * 3 + h) * 4 + w, n] == x[c, h, w, n]


def test_nothing_is_copied() -> None:
    x = np.zeros((2, 3, 4, 5))
    layer = Flatten((2, 3, 4))
    y = layer.forward(x)
    assert np.shares_memory(x, y)
    assert np.shares_memory(y, layer.backward(y))
