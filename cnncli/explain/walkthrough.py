"""A walk-through as data: what is shown and said at each step, and how it is checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]

NO_BREAK = "\N{NO-BREAK SPACE}"
# rounding in float64: differences below this part of the numbers that were added are agreement
ROUNDING = 1e-12


class Index(NamedTuple):
    """The axes that are folded into the rows or columns of a matrix, slowest first."""

    axes: tuple[str, ...]
    sizes: tuple[int, ...]

    def written(self, position: int) -> str:
        """Write the place of one row or column: ``0,1,0``."""
        return ",".join(str(int(i)) for i in np.unravel_index(position, self.sizes))


@dataclass(frozen=True, eq=False)
class Panel:
    """An array on show.

    Attributes
    ----------
    name : what the code of the step calls it, and what stands above it
    values : of any rank
    axes : the names of its axes, empty where they say nothing
    form : ``planes`` shows an array of rank 4 as one matrix for each of its first two indices,
        ``rows`` anything as rows along its last axis, ``picture`` shades of grey
    rows, columns : what stands beside and above a matrix
    write : turns the cells that are shown into texts; None writes them as numbers
    caption : is said after the name
    """

    name: str
    values: Array
    axes: tuple[str, ...] = ()
    form: Literal["planes", "rows", "picture"] = "planes"
    rows: Index | None = None
    columns: Index | None = None
    write: Callable[[Array], list[str]] | None = None
    caption: str = ""

    @property
    def heading(self) -> str:
        return f"{self.name}: {self.caption}" if self.caption else self.name


@dataclass(frozen=True)
class Step:
    """One step.

    Attributes
    ----------
    title : what is done
    why : a sentence or two on why
    code : the lines of NumPy that do it; all lines of a walk-through run one after the other
    panels : the arrays that come out, side by side where they fit
    table : rows of text, the first of them the heads of the columns
    notes : what is to be seen in the panels, or the results of the lines of code
    part : heading of the part that begins with this step
    """

    title: str
    why: str
    code: tuple[str, ...] = ()
    panels: tuple[Panel, ...] = ()
    table: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()
    part: str = ""


@dataclass(frozen=True)
class Check:
    """How closely this tool and the textbook agree on one array.

    Attributes
    ----------
    name : what was computed twice
    size : how many numbers
    difference : the largest absolute difference
    scale : the largest sum of absolute values that may stand behind one number
    """

    name: str
    size: int
    difference: float
    scale: float

    @property
    def agrees(self) -> bool:
        # written so that NaN does not agree
        return self.difference <= ROUNDING * self.scale


@dataclass(frozen=True)
class Walkthrough:
    """A page of a textbook with the reader's own numbers.

    Attributes
    ----------
    title, answer : the question of the topic, and what there is to understand
    setting : the sizes it is about, as (name, text)
    steps : in the order of reading
    checks : this tool against the textbook
    """

    title: str
    answer: str
    setting: tuple[tuple[str, str], ...]
    steps: tuple[Step, ...]
    checks: tuple[Check, ...]

    @property
    def agrees(self) -> bool:
        return all(check.agrees for check in self.checks)

    @property
    def difference(self) -> float:
        """The largest difference of all checks."""
        return float(np.max([check.difference for check in self.checks]))


def compared(name: str, ours: Array, theirs: Array, terms: float = 1.0) -> Check:
    """Compare two arrays of the same numbers.

    Parameters
    ----------
    terms : how many times larger than its result the sum of a number's terms can be
    """
    if ours.shape != theirs.shape:
        return Check(name, ours.size, float("inf"), 0.0)
    # padding of a pool is infinite on both sides
    is_same = ours == theirs
    difference = np.subtract(ours, theirs, where=~is_same, out=np.zeros(ours.shape))
    scale = max(float(np.abs(theirs[np.isfinite(theirs)]).max(initial=0.0)), 1.0) * terms
    return Check(name, ours.size, float(np.abs(difference).max(initial=0.0)), scale)


def counted(number: int, noun: str) -> str:
    """Write ``1 window``, ``4 windows``, ``2 boxes``."""
    ending = "" if number == 1 else "es" if noun.endswith("x") else "s"
    return f"{number:,} {noun}{ending}"


def nowrap(formula: str) -> str:
    """Keep a formula in one line."""
    return formula.replace(" ", NO_BREAK)
