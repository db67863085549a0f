"""What a download tells while it goes on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Transfer:
    """What has come of the content at one address.

    Attributes
    ----------
    n_total : bytes that the server promises; None where it does not say
    seconds : since the request
    """

    url: str
    n_received: int
    n_total: int | None
    seconds: float


class DownloadListener(Protocol):
    """Is told how a download goes."""

    def notice(self, message: str) -> None:
        """Take what the user should know, in one line."""

    def received(self, transfer: Transfer) -> None:
        """Take how far the content of an address has come."""

    def placed(self, path: Path, transfer: Transfer) -> None:
        """Take that a content is verified and has its place, and what its transfer has cost."""


class Silent:
    """Listens to a download and tells no one."""

    def notice(self, message: str) -> None:
        """Do nothing."""

    def received(self, transfer: Transfer) -> None:
        """Do nothing."""

    def placed(self, path: Path, transfer: Transfer) -> None:
        """Do nothing."""
