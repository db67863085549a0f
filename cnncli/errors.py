"""Everything that can go wrong for a reason the user can fix.

Each kind says where, what was expected, what came and what to do. `cnncli.cli` is the one place
that turns a kind into an exit code: 2 for `ConfigError` and `UsageError`, 1 for every other.
"""

from __future__ import annotations


class CnncliError(Exception):
    """Base of every error that ends a command with a message instead of a traceback."""


class ShapeError(CnncliError, ValueError):
    """An array or a layer does not fit the one before it: wrong shape, rank or dtype."""


class OptionError(CnncliError, ValueError):
    """An option of a layer, optimizer, schedule or section has an impossible value.

    Attributes
    ----------
    option : name of the option, e.g. ``kernel_size``
    expected : what it may be, e.g. ``an integer of at least 1``
    got : the value that came, as the user would write it
    """

    def __init__(self, option: str, expected: str, got: str) -> None:
        super().__init__(f"{option}: expected {expected}, got {got}")
        self.option = option
        self.expected = expected
        self.got = got


class LabelError(CnncliError, ValueError):
    """Labels that are not one integer class per image, or name a class that does not exist."""


class ConfigError(CnncliError):
    """One or more faults in a configuration; each line of the message is one of them."""


class UsageError(CnncliError):
    """The command line asks for something that cannot be done as it stands."""


class DataError(CnncliError):
    """A data file is missing, damaged or not what its name says."""


class CheckpointError(CnncliError):
    """A file is not a checkpoint of this program, is damaged, or belongs to another network."""


class TrainingError(CnncliError):
    """Training cannot continue: a worker has ended, the run cannot be written, or the numbers diverge."""


class DivergenceError(TrainingError):
    """A loss, a gradient or a weight becomes non-finite; continuing would repeat it."""


class GradientError(CnncliError):
    """A backward pass does not give the gradient of its forward pass, or cannot be run."""
