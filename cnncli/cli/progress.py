"""Progress of a run or a download: a bar that is drawn over, and a line for each epoch or file."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import NoReturn

from tqdm import tqdm

from cnncli.cli import formats
from cnncli.cli.terminal import Column, Stream, head, row_of
from cnncli.data import Transfer
from cnncli.training import EpochReport, StepReport

# a terminal writes ^C behind the bar; it must not run over into the next line
SPARE_COLUMNS = 4

VALIDATION_COLUMNS = (Column("val loss"), Column("val acc", width=9))


class Progress:
    """Writes to one stream: the heads once, then a row for each epoch; on a terminal also a bar.

    With a validation set, ``*`` marks an epoch that is better than all before it.
    """

    def __init__(self, stream: Stream, n_epochs: int, *, has_validation: bool) -> None:
        self._stream = stream
        self._n_epochs = n_epochs
        self._has_validation = has_validation
        self._columns = _columns(n_epochs, has_validation)
        self._has_heads = False
        self._bar: tqdm[NoReturn] | None = None

    def step(self, report: StepReport) -> None:
        """Move the bar, which is drawn some ten times a second at most."""
        if not self._stream.can_redraw:
            return
        self._write_heads()
        if self._bar is None:
            self._bar = self._new_bar(report)
        self._bar.ncols = self._stream.width - SPARE_COLUMNS
        self._bar.set_description_str(_figures(report), refresh=False)
        self._bar.update(report.step - self._bar.n)

    def epoch(self, report: EpochReport, *, is_best: bool) -> None:
        """Write the row of a finished epoch in the place of its bar."""
        self.close()
        self._write_heads()
        self._stream.write(row_of(self._columns, self._cells(report, is_best)))

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None and kind is KeyboardInterrupt:
            self._bar.leave = True  # it shows how far the epoch had come
        self.close()

    def _write_heads(self) -> None:
        if not self._has_heads:
            if self._has_validation:
                self._stream.write(self._stream.dim("* best epoch so far"))
            self._stream.write(self._stream.bold(head(self._columns)))
            self._has_heads = True

    def _new_bar(self, report: StepReport) -> tqdm[NoReturn]:
        epoch = f"{report.epoch}/{self._n_epochs}"
        return tqdm(
            desc=_figures(report),
            total=report.steps_per_epoch,
            file=self._stream.file,
            ascii=not self._stream.has_unicode,
            ncols=self._stream.width - SPARE_COLUMNS,
            leave=False,
            bar_format=f"{epoch:>5}  {{percentage:3.0f}} % |{{bar}}| {{desc}}  {{remaining}} left",
        )

    def _cells(self, report: EpochReport, is_best: bool) -> list[str]:
        validation = []
        if report.validation_loss is not None and report.validation_accuracy is not None:
            accuracy = formats.percent(report.validation_accuracy)
            # 100.00 % is a character wider: it takes that of the space
            marked = accuracy.rjust(7).ljust(8) + ("*" if is_best else " ")
            validation = [formats.loss(report.validation_loss), marked]
        return [
            f"{report.epoch}/{self._n_epochs}",
            formats.loss(report.train_loss),
            formats.percent(report.train_accuracy),
            *validation,
            f"{report.learning_rate:.3g}",
            formats.count(round(report.images_per_second)),
            f"{report.seconds:.1f}",
        ]


def _columns(n_epochs: int, has_validation: bool) -> tuple[Column, ...]:
    return (
        Column("epoch", width=2 * len(str(n_epochs)) + 1),
        Column("train loss"),
        Column("train acc"),
        *(VALIDATION_COLUMNS if has_validation else ()),
        Column("lr", width=8),
        Column("images/s", width=7),
        Column("seconds"),
    )


def _figures(report: StepReport) -> str:
    speed = formats.count(round(report.images_per_second))
    return f"loss {formats.loss(report.mean_loss)}  {formats.percent(report.accuracy)}  {speed} images/s"


class DownloadProgress:
    """Writes to one stream: every notice, and a line for each file; on a terminal also a bar."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._bar: tqdm[NoReturn] | None = None

    def notice(self, message: str) -> None:
        """Write a line in the place of the bar."""
        self.close()
        self._stream.write(message)

    def received(self, transfer: Transfer) -> None:
        """Move the bar, which is drawn some ten times a second at most."""
        if not self._stream.can_redraw:
            return
        if transfer.n_received == 0:
            self.close()
        if self._bar is None:
            self._bar = self._new_bar(transfer)
        self._bar.ncols = self._stream.width - SPARE_COLUMNS
        self._bar.set_description_str(_download_figures(transfer), refresh=False)
        self._bar.update(transfer.n_received - self._bar.n)

    def placed(self, path: Path, transfer: Transfer) -> None:
        """Write the line of a file that is complete in the place of its bar."""
        self.close()
        duration = formats.duration(transfer.seconds)
        self._stream.write(f"{path.name:<26}  {_amount(transfer)} in {duration}, {_rate(transfer)}")

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def __enter__(self) -> DownloadProgress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _new_bar(self, transfer: Transfer) -> tqdm[NoReturn]:
        name = transfer.url.rpartition("/")[2]
        # without a total there is nothing to draw a bar of
        bar = "" if transfer.n_total is None else "  {percentage:3.0f} % |{bar}|"
        return tqdm(
            desc=_download_figures(transfer),
            total=transfer.n_total,
            miniters=1,  # a network that slows down must show it
            file=self._stream.file,
            ascii=not self._stream.has_unicode,
            ncols=self._stream.width - SPARE_COLUMNS,
            leave=False,
            bar_format=f"{name}{bar}  {{desc}}",
        )


def _download_figures(transfer: Transfer) -> str:
    return f"{_amount(transfer)}, {_rate(transfer)}"


def _amount(transfer: Transfer) -> str:
    return formats.size(transfer.n_received)


def _rate(transfer: Transfer) -> str:
    # a small file can come within one tick of the clock
    return f"{formats.size(round(transfer.n_received / max(transfer.seconds, 1e-3)))}/s"
