"""The servers that offer a data set, the one that works first."""

from __future__ import annotations

from collections.abc import Sequence

from cnncli.data.catalog import KnownFile
from cnncli.data.fetch import FetchError, Patience, fetch
from cnncli.data.listener import DownloadListener, Transfer
from cnncli.data.placing import fault_of_content


class UnavailableError(Exception):
    """No mirror gives a file.

    Attributes
    ----------
    failures : each address that was tried, with the cause
    """

    def __init__(self, failures: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{url}: {cause}" for url, cause in failures))
        self.failures = failures


class Mirrors:
    """Addresses of directories that offer the same files.

    Parameters
    ----------
    addresses : in the order in which they are tried; one that gives a file is the first for the next
    """

    def __init__(self, addresses: Sequence[str], listener: DownloadListener, patience: Patience) -> None:
        self._addresses = list(addresses)
        self._listener = listener
        self._patience = patience

    def get(self, file: KnownFile) -> tuple[bytes, Transfer]:
        """Return the verified content of a file, gzipped or not, and what its transfer has cost.

        Raises
        ------
        UnavailableError : no mirror gives it
        """
        failures: list[tuple[str, str]] = []
        for address in list(self._addresses):
            if failures:
                self._listener.notice("{}: {}; trying another address".format(*failures[-1]))
            url = f"{address.rstrip('/')}/{file.name}.gz"
            try:
                content, transfer = self._get(url, file)
            except FetchError as error:
                failures.append((url, str(error)))
                continue
            self._prefer(address)
            return content, transfer
        raise UnavailableError(failures)

    def _get(self, url: str, file: KnownFile) -> tuple[bytes, Transfer]:
        # what does not compress grows by a few bytes for each block
        limit_bytes = file.size + file.size // 1000 + 1024
        content, transfer = fetch(url, limit_bytes, self._listener, self._patience)
        fault = fault_of_content(content, file)
        if fault is not None:
            raise FetchError(fault)
        return content, transfer

    def _prefer(self, address: str) -> None:
        self._addresses.remove(address)
        self._addresses.insert(0, address)
