"""The text of ``cnncli inspect-shapes --backward``."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cnncli.cli import formats
from cnncli.cli.streams import Stream
from cnncli.cli.tables import GAP, labelled
from cnncli.training.step_facts import Kind, LayerArrays, PassArrays, StepArray, StepFacts

INDENT = "  "
MAX_WIDTH = 100
SIZE_WIDTH = 8

LIVES: dict[Kind, str] = {
    "kept": "kept",
    "shard": "shard",
    "temporary": "moment",
    "slot": "slot",
    "view": "view",
    "batch": "run",
}
LIVES_WIDTH = max(map(len, LIVES.values()))
MEANING = {
    "run": "as long as the training, in memory that all workers share",
    "kept": "the worker keeps the memory for its next shard",
    "shard": "until the shard is done",
    "moment": "freed within the pass",
    "slot": "counted above: the gradients of a shard, until those of all are added up",
    "view": "no memory of its own",
}
AXES = {
    "N": "images of the shard",
    "C, H, W": "channels, height and width of the input",
    "F": "kernels",
    "KH, KW": "height and width of the kernel",
    "OH, OW": "height and width of the output",
    "PH, PW": "height and width of the window of the pool",
    "YH, YW": "height and width between a convolution and its pool",
    "rows": "rows of windows that are computed at a time",
    "pieces": "pieces of a product, each summed up by itself",
    "D, K": "inputs and outputs of a dense layer",
    "draws": "numbers that 64 random bits decide on",
}


def write_step(title: str, facts: StepFacts, stream: Stream) -> None:
    """Write the arrays of the batch, then those of a shard forward and backward, then the sums."""
    table = _StepTable(facts, stream)
    stream.write(stream.bold(title) + stream.dim(f"  one step on {_images(facts.batch_size)}, {facts.dtype}"))
    stream.write()
    table.prose(_shards(facts))
    table.section("Once, for all shards", [("", "", facts.batch)])
    table.section(
        f"One shard forward, N = {facts.shard_size}",
        [
            ("images", "", facts.input),
            *((_label(layer), layer.note, layer.forward) for layer in facts.layers),
            ("loss", "", facts.loss),
        ],
    )
    table.section("Backward", [(_label(layer), "", _backward(layer)) for layer in facts.backward])
    if facts.update.arrays:
        table.section("The optimizer's step", [("gradient clipping", "", facts.update)])
    table.totals()
    table.legend()


class _StepTable:
    """Lines of one width on one stream."""

    def __init__(self, facts: StepFacts, stream: Stream) -> None:
        self._facts = facts
        self._stream = stream
        self._width = min(stream.width, MAX_WIDTH)
        self._name_width = max(len(array.name) for array in self._arrays())

    def section(self, head: str, passes: Iterable[tuple[str, str, PassArrays]]) -> None:
        self._stream.write()
        self._stream.write(self._stream.bold(head))
        for label, layer_note, passed in passes:
            if label:
                self._stream.write(label)
            for note in filter(None, (layer_note, passed.note)):
                self._note(note)
            for array in passed.arrays:
                self._array(array)

    def prose(self, text: str) -> None:
        for line in labelled("", text, label_width=0, width=self._width + len(GAP)):
            self._stream.write(line.removeprefix(GAP))

    def totals(self) -> None:
        """Write the sums, and how the peak is made up of them."""
        facts = self._facts
        rows = [
            (facts.batch_bytes, "once, for all shards"),
            (facts.shard_kept_bytes, "kept by each worker from shard to shard"),
            (facts.shard_passing_bytes, "more for each shard at its worst moment"),
        ]
        self._stream.write()
        self._stream.write(self._stream.bold("Memory"))
        for n_bytes, text in rows:
            self._stream.write(_sum_line(n_bytes, text))
        self._stream.write(
            self._stream.bold(_sum_line(facts.peak_bytes, f"peak of the step: {_peak(facts)}"))
        )
        self._note(
            "without Python and NumPy themselves, the images of the data set, and arrays of a few numbers "
            "for each image"
        )

    def legend(self) -> None:
        """Explain the words of the last column, and the letters that were used."""
        arrays = self._arrays()
        lives = {LIVES[array.kind] for array in arrays}
        letters = {letter for array in arrays for letter in re.findall(r"\w+", array.shape_words)}
        self._stream.write()
        for word, meaning in MEANING.items():
            if word in lives:
                self._explain(word, meaning)
        for names, meaning in AXES.items():
            used = [name for name in names.split(", ") if name in letters]
            if used:
                self._explain(names, meaning)

    def _arrays(self) -> list[StepArray]:
        facts = self._facts
        layers = [*(layer.forward for layer in facts.layers), *map(_backward, facts.backward)]
        passes = [facts.batch, facts.input, *layers, facts.loss, facts.update]
        return [array for passed in passes for array in passed.arrays]

    def _array(self, array: StepArray) -> None:
        shape = _numbers(array, self._facts.dtype)
        size = formats.size(array.nbytes) if array.nbytes else ""
        tail = f"{GAP}{size:>{SIZE_WIDTH}}{GAP}{LIVES[array.kind]}"
        room = self._width - len(tail) - (LIVES_WIDTH - len(LIVES[array.kind]))
        words = f"{INDENT}{array.name:{self._name_width}}{GAP}{array.shape_words}"
        line = f"{words} = {shape}" if array.shape_words else f"{words}{shape}"
        if len(line) > room:
            self._stream.write(words)
            line = f"{INDENT}{'':{self._name_width}}{GAP}= {shape}"
        self._stream.write(f"{line:{room}}{tail}")

    def _note(self, text: str) -> None:
        for line in labelled("", text, label_width=0, width=self._width):
            self._stream.write(self._stream.dim(line))

    def _explain(self, word: str, meaning: str) -> None:
        for line in labelled(f"{INDENT}{word}", meaning, label_width=len(INDENT) + 7, width=self._width):
            self._stream.write(self._stream.dim(line))


def _shards(facts: StepFacts) -> str:
    if facts.n_shards == 1:
        return (
            f"The batch is one shard: {_images(facts.shard_size)} that one worker takes through the network."
        )
    threads = formats.counted(facts.n_threads, "thread")
    side_by_side = f"{facts.n_in_flight} at a time" if facts.n_in_flight > 1 else "one at a time"
    return (
        f"The batch is cut into {facts.n_shards} shards of at most {_images(facts.shard_size)}. They go "
        f"through the network {side_by_side} on {threads}; their gradients are added up, and one step is "
        "taken."
    )


def _sum_line(n_bytes: int, text: str) -> str:
    return f"{INDENT}{formats.size(n_bytes):>{SIZE_WIDTH}}{GAP}{text}"


def _peak(facts: StepFacts) -> str:
    """Write how the peak is made up."""
    once, kept = formats.size(facts.batch_bytes), formats.size(facts.shard_kept_bytes)
    update = facts.update.temporary_bytes
    if update > facts.n_in_flight * facts.shard_passing_bytes:
        return f"{once} + {facts.n_in_flight} x {kept} + {formats.size(update)} in the update"
    return f"{once} + {facts.n_in_flight} x ({kept} + {formats.size(facts.shard_passing_bytes)})"


def _images(number: int) -> str:
    return formats.counted(number, "image")


def _label(layer: LayerArrays) -> str:
    return f"{'+'.join(map(str, layer.indices))} {layer.name}"


def _backward(layer: LayerArrays) -> PassArrays:
    assert layer.backward is not None
    return layer.backward


def _numbers(array: StepArray, dtype: str) -> str:
    text = str(array.shape)
    if array.dtype != dtype:
        text += f" {array.dtype}"
    return text if array.count == 1 else f"{text} x {array.count}"
