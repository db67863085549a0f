"""A layer class of the user's own, named on the command line, and the faults of its code."""

from __future__ import annotations

import contextlib
import difflib
import inspect
import sys
import traceback
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import cnncli
from cnncli.errors import CnncliError, GradientError, OptionError, ShapeError, UsageError
from cnncli.nn import Checkable

METHODS = ("forward", "backward")
# what the program hands over to the constructors that take it
HANDED_OVER = ("rng", "dtype")
OWN_CODE = Path(cnncli.__file__).parent
EXAMPLE = "my_layers:LeakyReLU"


def import_layer_class(name: str) -> type[Any]:
    """Import the class that ``module:Class`` names; modules may lie in the current directory.

    Raises
    ------
    UsageError : the text is no such name, there is no such module, or it has no class of that name
        with `forward` and `backward`
    GradientError : the code of the module raises
    """
    module_name, colon, class_name = name.partition(":")
    words = [*module_name.split("."), class_name]
    if not colon or not all(word.isidentifier() for word in words) or module_name.endswith(".py"):
        raise UsageError(
            f"--layer-class: expected module:Class, such as {EXAMPLE} for class LeakyReLU of "
            f"my_layers.py in the current directory, got {name}"
        )
    module = _import(module_name)
    cls = getattr(module, class_name, None)
    if cls is None:
        raise UsageError(f"--layer-class: {module_name} has no class {class_name}{_near(module, class_name)}")
    if not isinstance(cls, type):
        kind = type(cls).__name__
        raise UsageError(f"--layer-class: expected a class, but {name} is a {kind}")
    missing = [method for method in METHODS if not callable(getattr(cls, method, None))]
    missing += sorted(getattr(cls, "__abstractmethods__", ()))
    if missing:
        raise UsageError(
            f"--layer-class: {name} has no method {' and no method '.join(missing)}; "
            "a layer has forward(x) and backward(grad_output)"
        )
    return cls


def make_layer(
    cls: type[Any], input_shape: tuple[int, ...], options: Mapping[str, Any], seed: int
) -> Checkable:
    """Construct ``cls(input_shape, **options)``; `rng` and `dtype` go to the constructors that take them.

    Raises
    ------
    UsageError : the constructor does not take the options, or refuses their values or the shape
    GradientError : it raises anything else
    """
    offered = {"rng": np.random.default_rng(seed), "dtype": np.float64}
    signature = inspect.signature(cls)
    extras = {name: offered[name] for name in HANDED_OVER if name in signature.parameters}
    arguments = {**extras, **options}
    try:
        signature.bind(input_shape, **arguments)
    except TypeError as error:
        raise UsageError(f"--options: {error}; the constructor is {cls.__name__}{signature}") from None
    with faults_of_user_code():
        try:
            layer: Checkable = cls(input_shape, **arguments)
        except OptionError as error:
            raise UsageError(f"--options: {error}; the layer's input is {input_shape}") from None
        except ShapeError as error:
            raise UsageError(f"--input-shape: {error}") from None
    return layer


@contextlib.contextmanager
def faults_of_user_code() -> Iterator[None]:
    """Turn what the user's code raises into one message with its file and line.

    What it prints goes to standard error, so that results stay alone on standard output.
    """
    with contextlib.redirect_stdout(sys.stderr):
        try:
            yield
        except UsageError:
            raise
        except (Exception, SystemExit) as error:
            frame = _user_frame(error)
            if frame is not None:
                raise GradientError(_located(frame, error)) from None
            if isinstance(error, CnncliError):
                raise
            raise GradientError(_in_words(error)) from error


def _import(name: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    with faults_of_user_code():
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            missing = error.name or ""
            if name != missing and not name.startswith(f"{missing}."):
                raise
            raise UsageError(
                f"--layer-class: there is no module {name} in the current directory or among the "
                "installed packages"
            ) from None
        except SyntaxError as error:
            place = f"{_shown(error.filename or name)}:{error.lineno}"
            raise GradientError(f"{place}: {_in_words(error)}{_source(error.text)}") from None


def _near(module: Any, name: str) -> str:
    """Name the class that was meant, or those there are."""
    defined = [
        attribute
        for attribute, value in vars(module).items()
        if isinstance(value, type) and all(hasattr(value, method) for method in METHODS)
    ]
    near = difflib.get_close_matches(name, defined, n=1)
    if near:
        return f"; did you mean {near[0]}?"
    return f"; there are {', '.join(defined)}" if defined else ""


def _user_frame(error: BaseException) -> traceback.FrameSummary | None:
    """Find the innermost line that is neither this program's nor a library's."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_users(frame.filename)]
    return frames[-1] if frames else None


def _is_users(filename: str) -> bool:
    path = Path(filename)
    if OWN_CODE in path.parents or not path.is_file():
        return False
    standard_library = Path(inspect.__file__).parent
    if standard_library in path.parents and "site-packages" not in path.parts:
        return False
    return Path(np.__file__).parent not in path.parents


def _located(frame: traceback.FrameSummary, error: BaseException) -> str:
    place = f"{_shown(frame.filename)}:{frame.lineno}"
    function = "" if frame.name == "<module>" else f" in {frame.name}:"
    return f"{place}:{function} {_in_words(error)}{_source(frame.line)}"


def _shown(filename: str) -> str:
    """Write a path from the current directory, if it lies below."""
    path = Path(filename)
    return str(path.relative_to(Path.cwd()) if Path.cwd() in path.parents else path)


def _source(line: str | None) -> str:
    return f"\n    {line.strip()}" if line and line.strip() else ""


def _in_words(error: BaseException) -> str:
    text = " ".join(str(getattr(error, "msg", None) or error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
