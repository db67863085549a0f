"""One independent random stream for every purpose, derived from the seed alone.

Nothing is drawn from a shared generator, so nothing has to be saved: a resumed run asks for the
stream of the step it continues with, and evaluating or logging cannot shift what training draws.
"""

from __future__ import annotations

from typing import Final

import numpy as np

# The numbers are part of what a seed means: never change one, never use one for two purposes.
WEIGHTS: Final = 1
VALIDATION_SPLIT: Final = 2
EPOCH_ORDER: Final = 3
DROPOUT: Final = 4
AUGMENTATION: Final = 5


def stream(seed: int, purpose: int, *indices: int) -> np.random.Generator:
    """Return the generator of one purpose, the same for the same arguments.

    Parameters
    ----------
    seed : at least 0
    purpose : one of the constants of this module
    indices : tell the uses of one purpose apart (epoch, step, shard, layer); at least 0, below 2**32
    """
    # A plain list [seed, purpose, ...] would not do: NumPy pads short lists with zeros and cuts
    # large numbers into words of 32 bits, so different lists can mean the same stream. A spawn key
    # is kept apart from the seed.
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(purpose, *indices)))
