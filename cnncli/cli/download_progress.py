"""What a download tells while it goes on: a bar that is drawn over, and one line for each file."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import NoReturn

from tqdm import tqdm

from cnncli.cli import formats
from cnncli.cli.progress import SPARE_COLUMNS
from cnncli.cli.streams import Stream
from cnncli.data import Transfer


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
        self._bar.set_description_str(_figures(transfer), refresh=False)
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
            desc=_figures(transfer),
            total=transfer.n_total,
            miniters=1,  # a network that slows down must show it
            file=self._stream.file,
            ascii=not self._stream.has_unicode,
            ncols=self._stream.width - SPARE_COLUMNS,
            leave=False,
            bar_format=f"{name}{bar}  {{desc}}",
        )


def _figures(transfer: Transfer) -> str:
    return f"{_amount(transfer)}, {_rate(transfer)}"


def _amount(transfer: Transfer) -> str:
    return formats.size(transfer.n_received)


def _rate(transfer: Transfer) -> str:
    # a small file can come within one tick of the clock
    return f"{formats.size(round(transfer.n_received / max(transfer.seconds, 1e-3)))}/s"
