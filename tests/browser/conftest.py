"""A browser for all tests of this directory; they are skipped where there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from cnncli.report.explain_page import write_explain_page
from tests.browser.cases import Case

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

    from tests.browser.chromium import Page

OpenPage: TypeAlias = "Callable[[Case], Page]"
OpenFile: TypeAlias = "Callable[[Path], Page]"


@pytest.fixture(scope="session")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    pytest.importorskip("selenium", reason="pip install 'cnncli[browser]'")
    from tests.browser.chromium import chromium, programs

    found = programs()
    if found is None:
        pytest.skip("needs Chromium and chromedriver (Debian: chromium, chromium-driver)")
    with chromium(*found, profile=tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def open_file(chrome: Chrome) -> Iterator[OpenFile]:
    """Open a page; afterwards it must not have complained, nor asked for anything but itself."""
    from tests.browser.chromium import Page

    opened: list[tuple[Page, Path]] = []

    def open_(path: Path) -> Page:
        opened.append((Page(chrome, path), path))
        return opened[-1][0]

    yield open_
    if opened:
        page, path = opened[-1]
        assert page.errors() == []
        assert set(page.requests()) <= {path.as_uri(), "data:,"}


@pytest.fixture
def open_page(open_file: OpenFile, tmp_path: Path) -> OpenPage:
    """Write the page of a case and open it."""

    def open_(case: Case) -> Page:
        path = tmp_path / "page.html"
        arguments: dict[str, Any] = {"weight": case.weight, "upstream": case.upstream}
        write_explain_page(path, case.topic, case.x, case.kernel_size, case.stride, case.padding, **arguments)
        return open_file(path)

    return open_
