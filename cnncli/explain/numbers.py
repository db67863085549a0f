"""Numbers as a page wants them: short, and all of one array in the same form."""

from __future__ import annotations

import numpy as np

from cnncli.explain.walkthrough import Array

DECIMALS = 4
# beyond these a fixed number of decimals is long, or shows nothing but zeros
TOO_LARGE = 1e6
TOO_SMALL = 10.0**-DECIMALS
WHOLE = 1e15


def written_all(values: Array) -> list[str]:
    """Write numbers in one form: whole where all are, else with as few decimals as show them."""
    flat = np.asarray(values, dtype=np.float64).ravel()
    finite = flat[np.isfinite(flat)]
    if np.all(finite == np.trunc(finite)) and np.all(np.abs(finite) < WHOLE):
        return [str(int(v)) if np.isfinite(v) else str(v) for v in flat]
    sizes = np.abs(finite[finite != 0])
    if sizes.max() >= TOO_LARGE or sizes.max() < TOO_SMALL:
        return [f"{v:.3e}" if v else "0" for v in flat]
    decimals = max(_decimals(v) for v in finite)
    # adding zero takes the sign from a zero
    return [f"{np.round(v, decimals) + 0.0:.{decimals}f}" for v in flat]


def written(value: float) -> str:
    """Write one number."""
    return written_all(np.array([value]))[0]


def exact(value: float) -> str:
    """Write one number with all the digits that it has."""
    return f"{float(value):.15g}"


def written_sum(values: Array, most: int = 9) -> str:
    """Write ``1 + 2 + 3``, or ``1 + 2 + ... + 9`` where there are many; brackets around what is negative."""
    texts = [f"({text})" if text.startswith("-") else text for text in written_all(values)]
    if len(texts) > most:
        texts = [*texts[:2], "...", texts[-1]]
    return " + ".join(texts)


def shortened(values: Array) -> str:
    """Write the beginning and the end of a row: ``0 100 200 ... 2900``."""
    texts = written_all(values if len(values) <= 5 else values[[0, 1, 2, -1]])
    return " ".join(texts if len(values) <= 5 else [*texts[:3], "...", texts[3]])


def written_difference(value: float) -> str:
    """Write a difference: ``0``, ``4.4e-16``."""
    return f"{value:.1e}" if value else "0"


def _decimals(value: float) -> int:
    text = f"{value:.{DECIMALS}f}".rstrip("0")
    return len(text.partition(".")[2])
