"""The typed reader: a located document in, a checked configuration or every fault at once out."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

from cnncli.config.choices import Entry, registry_of
from cnncli.config.document import FLOAT, Node, resolve
from cnncli.config.faults import Faults, Place, join, one_line
from cnncli.config.schema import (
    TOP_LEVEL,
    Choice,
    Config,
    DataConfig,
    Field,
    LossConfig,
    Seed,
    TrainingConfig,
    fields_of,
)
from cnncli.config.suggestions import Chosen, nearest, unknown
from cnncli.data.catalog import CATALOG
from cnncli.errors import OptionError
from cnncli.nn.optimizers import OPTIMIZERS
from cnncli.nn.options import Option, option_of
from cnncli.nn.schedules import SCHEDULES

_NUMBER_LIKE = re.compile(r"[-+]?\.?[0-9]")
_PLAIN_NUMBER = re.compile(rf"{FLOAT.pattern}|[-+]?[1-9][0-9]*")
_NULL_WORDS = ("none", "nil", "nothing")


def value_hint(node: Node, check: Option[Any]) -> str:
    """Return what would fix a refused value, with a semicolon before it, or no text at all."""
    if not isinstance(node.value, str):
        return ""
    if node.value.lower() in _NULL_WORDS and _accepts(check, None):
        return "; write null"
    is_quoted = node.written != node.value
    if is_quoted and _accepts(check, resolve(node.value)):
        return "; write it without quotes"
    if is_quoted or not _NUMBER_LIKE.match(node.value):
        return ""
    if _PLAIN_NUMBER.fullmatch(node.value):
        return "; the number is too large"
    return "; write a plain decimal number, such as 10 or 0.001"


def _accepts(check: Option[Any], value: object) -> bool:
    try:
        check("", value)
    except OptionError:
        return False
    return True


def absolute_directory(text: str, base: Path) -> Path:
    """Return a directory as absolute: ``~`` is the home directory, a relative one starts at `base`."""
    return _absolute("directory", text, base)


def dataset_name_or_path(text: str, base: Path) -> str:
    """Return a name of the catalogue as it is, and anything else as an absolute path.

    A word that is no path by its looks must exist: `fashion` is a misspelt name, not a directory
    that went missing.
    """
    if text in CATALOG:
        return text
    path = _absolute("dataset", text, base)
    if _looks_like_a_path(text) or _exists(path):
        return str(path)
    guess = nearest(text, CATALOG)
    raise OptionError(
        "dataset",
        f"one of {', '.join(CATALOG)}, or the path of a directory of IDX files or of an .npz file",
        one_line(text) + (f"; did you mean {guess}?" if guess else ""),
    )


def _absolute(option: str, text: str, base: Path) -> Path:
    if not text.isprintable():
        raise OptionError(option, "a path without control characters", one_line(text))
    try:
        return (base / Path(text).expanduser()).resolve()
    except (OSError, RuntimeError) as error:
        # no such user after ~, or links that run in a circle
        raise OptionError(option, "a path that can be resolved", f"{one_line(text)}: {error}") from None


def _looks_like_a_path(text: str) -> bool:
    return "/" in text or os.sep in text or text.startswith((".", "~")) or text.endswith(".npz")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


T = TypeVar("T")

DEFAULT_CHOICES = {"optimizer": "adam", "schedule": "constant"}
NETWORK_EXAMPLE = "[flatten, dense: {out_features: 10}]"


def read_config(root: Node, base_directory: Path, faults: Faults) -> Config:
    """Check a whole document.

    Parameters
    ----------
    base_directory : what relative paths in the file start from; those given by ``--set`` start from
        the current directory
    faults : those already found; all of them are raised together

    Raises
    ------
    ConfigError : with one line for every fault
    """
    return _Reader(root, base_directory, faults).config()


class _Reader:
    """Reads one document; a part with a fault comes out as None or is left out, and reading goes on."""

    def __init__(self, root: Node, base_directory: Path, faults: Faults) -> None:
        self._root = root
        self._base_directory = base_directory
        self._faults = faults
        self._places: dict[str, Place] = {}
        self._chosen = Chosen(_chosen(root, "optimizer"), _chosen(root, "schedule"))

    def config(self) -> Config:
        if not isinstance(self._root.value, Mapping):
            message = f"a configuration must be a mapping of keys to values, got {self._root.shown()}"
            self._faults.add(self._root.place, "", message)
            self._faults.raise_any()
        entries = self._entries(self._root, "", TOP_LEVEL) or {}
        seed = self._seed(entries.get("seed"))
        data = self._data(entries.get("data"))
        network = self._network(entries.get("network"), is_misspelt="network" in _meant(entries, TOP_LEVEL))
        optimizer = self._choice(entries.get("optimizer"), "optimizer", "optimizer")
        schedule = self._choice(entries.get("schedule"), "schedule", "schedule")
        loss = self._options(entries.get("loss"), LossConfig, "loss")
        training = self._options(entries.get("training"), TrainingConfig, "training")
        self._check_early_stopping(training, data)
        self._faults.raise_any()
        assert optimizer is not None and schedule is not None
        return Config(
            seed=seed,
            data=DataConfig(**data),
            network=network,
            optimizer=optimizer,
            schedule=schedule,
            loss=LossConfig(**loss),
            training=TrainingConfig(**training),
            source=self._root.place.source,
            places=self._places,
        )

    def _seed(self, node: Node | None) -> int:
        check: Option[int | None] | None = option_of(Seed)
        assert check is not None
        seed = 0 if node is None else self._checked(node, check, "seed")
        return secrets.randbelow(2**32) if seed is None else seed

    def _data(self, node: Node | None) -> dict[str, Any]:
        data = self._options(node, DataConfig, "data")
        if "dataset" in data:
            data["dataset"] = self._path("dataset", data["dataset"], dataset_name_or_path)
        if data.get("directory") is not None:
            data["directory"] = self._path("directory", data["directory"], absolute_directory)
        if data.get("dataset") is not None and Path(data["dataset"]).is_absolute():
            data["directory"] = None
        return data

    def _path(self, name: str, text: str, resolve: Callable[[str, Path], T]) -> T | None:
        place = self._places.get(f"data.{name}", self._root.place)
        try:
            return resolve(text, Path() if place.is_override else self._base_directory)
        except OptionError as error:
            self._faults.add(place, f"data.{name}", f"expected {error.expected}, got {error.got}")
            return None

    def _network(self, node: Node | None, is_misspelt: bool) -> tuple[Choice, ...]:
        expected = f"expected a list of layers, such as {NETWORK_EXAMPLE}"
        if node is None:
            if not is_misspelt:
                self._faults.add(self._root.place, "network", f"{expected}, but the key is missing")
            return ()
        self._places["network"] = node.place
        if not isinstance(node.value, tuple) or not node.value:
            got = "an empty list" if node.value == () else node.shown()
            self._faults.add(node.place, "network", f"{expected}, got {got}")
            return ()
        choices = [self._choice(item, "layer", f"network[{index}]") for index, item in enumerate(node.value)]
        layers = tuple(choice for choice in choices if choice is not None)
        return self._with_small_last_layer(layers) if len(layers) == len(choices) else layers

    def _with_small_last_layer(self, layers: tuple[Choice, ...]) -> tuple[Choice, ...]:
        """Let the layer that gives the logits start small, so that the first loss is near ln K."""
        for index in reversed(range(len(layers))):
            if "initializer" in layers[index].options:
                name = layers[index].name
                if f"network[{index}].{name}.initializer" in self._places:
                    return layers
                last = Choice(name, {**layers[index].options, "initializer": "small"})
                return (*layers[:index], last, *layers[index + 1 :])
        return layers

    def _choice(self, node: Node | None, kind: str, path: str) -> Choice | None:
        """Read a layer, an optimizer or a schedule; left out or null it is the default one."""
        if kind in DEFAULT_CHOICES and (node is None or node.value is None):
            return self._named(DEFAULT_CHOICES[kind], None, path)
        assert node is not None
        self._places[path] = node.place
        found = Entry(node, kind, path, self._chosen).name_and_options(self._faults)
        return None if found is None else self._named(*found, path)

    def _named(self, name: str, node: Node | None, path: str) -> Choice | None:
        cls = registry_of(path)[name]
        path = join(path, name)
        options = self._options(node, cls, path)
        if len(options) < len(fields_of(cls)):
            return None
        self._check_together(cls, options, path)
        return Choice(name, options)

    def _check_together(self, cls: type[Any], options: Mapping[str, Any], path: str) -> None:
        """Find values that are each fine and not together, such as Nesterov without momentum."""
        try:
            if cls in OPTIMIZERS.values():
                cls({}, **options)
            elif cls in SCHEDULES.values():
                cls(1.0, 1, 1, **options)
        except OptionError as error:
            option = join(path, error.option)
            place = self._places.get(option, self._root.place)
            self._faults.add(place, option, f"expected {error.expected}, got {error.got}")

    def _options(self, node: Node | None, cls: type[Any], path: str) -> dict[str, Any]:
        """Read the options of a class; those with a fault are left out."""
        place = self._root.place if node is None else node.place
        if node is not None:
            self._places[path] = place
        fields = fields_of(cls)
        entries = self._entries(node, path, fields)
        if entries is None:
            return {}
        options, meant = {}, _meant(entries, fields)
        for name, field in fields.items():
            n_faults = len(self._faults)
            if name in entries:
                value = self._option(entries[name], field, join(path, name))
                if len(self._faults) == n_faults:
                    options[name] = value
            elif not field.is_required:
                options[name] = field.default
            elif name not in meant:
                expected = field.check.expected if field.check else "a mapping"
                self._faults.add(place, join(path, name), f"expected {expected}, but the key is missing")
        return options

    def _option(self, node: Node, field: Field, path: str) -> Any:
        if field.check is not None:
            return self._checked(node, field.check, path)
        assert field.section is not None
        return field.default if node.value is None else self._section(node, field.section, path)

    def _section(self, node: Node, cls: type[Any], path: str) -> Any:
        options = self._options(node, cls, path)
        return cls(**options) if len(options) == len(fields_of(cls)) else None

    def _checked(self, node: Node, check: Option[T], path: str) -> T | None:
        self._places[path] = node.place
        try:
            return check(path, node.plain())
        except OptionError as error:
            hint = value_hint(node, check)
            self._faults.add(node.place, path, f"expected {error.expected}, got {node.shown()}{hint}")
            return None

    def _entries(self, node: Node | None, path: str, known: Collection[str]) -> Mapping[str, Node] | None:
        """Return the entries of a mapping, with the unknown ones reported; None for no mapping."""
        if node is None or node.value is None:
            return {}
        if not isinstance(node.value, Mapping):
            example = f" with keys such as {next(iter(known))}" if known else ""
            self._faults.add(node.place, path, f"expected a mapping{example}, got {node.shown()}")
            return None
        for key, entry in node.value.items():
            if key not in known:
                message = unknown("key", key, known, self._chosen, owner=path.rpartition(".")[2])
                self._faults.add(entry.place, join(path, one_line(key, 40)), message)
        return node.value

    def _check_early_stopping(self, training: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        if training.get("early_stopping") is not None and data.get("validation_size") == 0:
            path = "training.early_stopping"
            message = "expected data.validation_size of at least 1 to choose the best epoch by, got 0"
            self._faults.add(self._places[path], path, message)


def _chosen(root: Node, kind: str) -> str:
    """Look ahead for the optimizer or schedule, so that advice about keys can name it."""
    node = root.value.get(kind) if isinstance(root.value, Mapping) else None
    value = None if node is None else node.value
    names = [value] if isinstance(value, str) else list(value) if isinstance(value, Mapping) else []
    return next((name for name in names if name in registry_of(kind)), DEFAULT_CHOICES[kind])


def _meant(entries: Collection[str], known: Collection[str]) -> set[str | None]:
    """Return the known keys that misspelt ones stand for: they need not be called missing too."""
    return {nearest(key, known) for key in entries if key not in known}
