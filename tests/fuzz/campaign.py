"""Feeding inputs to a target, and what came of them."""

from __future__ import annotations

import time
import traceback
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from cnncli.errors import CheckpointError, CnncliError, ConfigError, DataError
from tests.fuzz.limits import SECONDS, TimeLimitError, limited_time
from tests.fuzz.target import Case, Target, WrongSuccessError

KINDS = (DataError, CheckpointError, ConfigError)
# a configuration may have a hundred faults, each a line
MAX_LINES = 102
MAX_LINE = 1000


@dataclass(frozen=True)
class Fault:
    """An input that came to something else than being read rightly or refused with a message."""

    number: int
    what: str
    case: Case


@dataclass
class Tally:
    """What has come of the inputs so far."""

    n_read: int = 0
    n_refused: int = 0
    slowest_seconds: float = 0.0
    faults: list[Fault] = field(default_factory=list)

    @property
    def n_inputs(self) -> int:
        return self.n_read + self.n_refused + len(self.faults)


def feed(target: Target, name: str, seed: int, numbers: range) -> Tally:
    """Make and read the inputs of these numbers; the same name, seed and number give the same input."""
    tally = Tally()
    for number in numbers:
        case = target.make(Random(f"{name} {seed} {number}"))
        target.path.write_bytes(case.content)
        start = time.process_time()
        what = outcome(target, case, tally)
        tally.slowest_seconds = max(tally.slowest_seconds, time.process_time() - start)
        if what is not None:
            tally.faults.append(Fault(number, what, case))
    return tally


def outcome(target: Target, case: Case, tally: Tally) -> str | None:
    """Read one input and count it; return what is wrong with the outcome, if anything is."""
    try:
        with limited_time(), warnings.catch_warnings():
            warnings.simplefilter("error")
            target.read(case)
    except CnncliError as error:
        fault = fault_of_refusal(error, target.path)
        tally.n_refused += fault is None
        return fault
    except WrongSuccessError as error:
        return f"wrong success: {error}"
    except TimeLimitError:
        return f"longer than {SECONDS:g} s\n{traceback.format_exc(limit=-6)}"
    except Exception:
        return traceback.format_exc(limit=-8)
    tally.n_read += 1
    return None


def fault_of_refusal(error: CnncliError, path: Path) -> str | None:
    """Return what is wrong with a message, if anything is."""
    if not isinstance(error, KINDS):
        return f"refused as {type(error).__name__}: {error}"
    # NumPy refuses the arrays of a layer before it touches them; the configuration is at fault
    if _came_from_memory(error) and "too large to fit in memory" not in str(error):
        return f"a huge allocation was tried:\n{''.join(traceback.format_exception(error, limit=-6))}"
    lines = str(error).split("\n")
    if len(lines) > MAX_LINES or max(map(len, lines)) > MAX_LINE:
        return f"a message of {len(lines)} lines, the longest of {max(map(len, lines))}: {lines[0][:300]}"
    if not all(line.isprintable() for line in lines):
        return f"a message with control characters: {str(error)[:500]!r}"
    if str(path) not in lines[0] and not lines[0].startswith("--set "):
        return f"a message that does not name the file: {lines[0]}"
    return None


def _came_from_memory(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        error = error.__cause__ or error.__context__
    return False
