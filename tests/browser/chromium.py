"""Chromium without a window, and what a reader sees and does on an explain page."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.wait import WebDriverWait

# the numbers of a panel by their coordinates: x[(n, c, h, w)], cols[(row, column)], ...
Place: TypeAlias = tuple[int, ...]

AXES: dict[str, tuple[str, ...]] = {
    "x": ("n", "c", "h", "w"),
    "windows": ("n", "oh", "ow"),
    "cols": ("r", "k"),
    "sums": ("n", "c", "h", "w"),
    "coverage": ("n", "c", "h", "w"),
    "weight": ("f", "r"),
    "product": ("n", "f", "oh", "ow"),
    "maxima": ("n", "f", "oh", "ow"),
    "upstream": ("n", "f", "oh", "ow"),
    "gradWeight": ("f", "r"),
    "gradInput": ("n", "c", "h", "w"),
    "scattered": ("n", "c", "h", "w"),
}

# as root in a closed network: no sandbox, and nothing that asks for the outside
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-color-profile=srgb",
)


def programs() -> tuple[str, str] | None:
    """Find Chromium and its driver, or None where one of them is not installed."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


@contextmanager
def chromium(browser: str, driver: str, profile: Path) -> Iterator[Chrome]:
    """Run a browser with an empty profile."""
    options = ChromeOptions()
    options.binary_location = browser
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = Chrome(options=options, service=Service(driver))
    try:
        yield chrome
    finally:
        chrome.quit()


class Page:
    """One explain page in the browser."""

    def __init__(self, chrome: Chrome, path: Path) -> None:
        self.chrome = chrome
        self.resize(1280, 900)
        self.emulate()
        self.drain("browser")
        self.drain("performance")
        chrome.get(path.as_uri())

    # what there is to see

    def text(self, selector: str) -> str:
        """Return the text of an element, hidden or not."""
        return str(self.run("return document.querySelector(arguments[0]).textContent", selector))

    @property
    def words(self) -> str:
        """What the live region says."""
        return self.text("#words")

    @property
    def step(self) -> int:
        return int(self.text("#progress").split()[1])

    @property
    def is_alarmed(self) -> bool:
        return not self.run("return document.querySelector('#alarm').hidden")

    def numbers(self, panel: str) -> dict[Place, str]:
        """Return what stands in every cell of a panel."""
        found = self.run(
            """const [panel, axes] = arguments;
            return [...document.querySelectorAll(`[data-panel="${panel}"] .cell`)]
              .map((cell) => [axes.map((axis) => Number(cell.dataset[axis])), cell.textContent]);""",
            panel,
            AXES[panel],
        )
        return {tuple(place): text for place, text in found}

    def marked(self, panel: str, mark: str = "lit") -> set[Place]:
        """Return the cells of a panel that carry a mark: lit, chosen, winner, padding."""
        found = self.run(
            """const [panel, axes, mark] = arguments;
            return [...document.querySelectorAll(`[data-panel="${panel}"] .cell.${mark}`)]
              .map((cell) => axes.map((axis) => Number(cell.dataset[axis])));""",
            panel,
            AXES[panel],
            mark,
        )
        return {tuple(place) for place in found}

    def focused(self) -> tuple[str, Place] | None:
        """Return the panel and the place of the cell that has the focus."""
        found = self.run(
            """const { panel, ...place } = document.activeElement.dataset;
            return panel ? [panel, place] : null;"""
        )
        if found is None:
            return None
        panel, place = found
        return panel, tuple(int(place[axis]) for axis in AXES[panel])

    def errors(self) -> list[str]:
        """Return what the console complained about since the last call."""
        return [entry["message"] for entry in self.drain("browser")]

    def requests(self) -> list[str]:
        """Return every address that was asked for since the page was opened."""
        messages = [json.loads(entry["message"])["message"] for entry in self.drain("performance")]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]

    # what a reader does

    def point(self, panel: str, place: Place) -> None:
        """Move the mouse onto a cell."""
        x, y = self.centre(panel, place)
        self.mouse("mouseMoved", x, y)

    def point_at_each(self, panel: str, seen: Sequence[str]) -> Iterator[tuple[Place, dict[str, set[Place]]]]:
        """Point at every cell of a panel in turn and yield what is then lit in others, by panel.

        The events are made by a script, all in one go; `point` moves a real mouse.
        """
        found = self.run(
            """const [panel, seen, axes] = arguments;
            const place = (cell, name) => axes[name].map((axis) => Number(cell.dataset[axis]));
            return [...document.querySelectorAll(`[data-panel="${panel}"] .cell`)].map((cell) => {
              cell.dispatchEvent(new PointerEvent("pointerover", { bubbles: true, pointerType: "mouse" }));
              const litOf = (name) => [...document.querySelectorAll(`[data-panel="${name}"] .cell.lit`)];
              return [place(cell, panel), seen.map((name) => litOf(name).map((lit) => place(lit, name)))];
            });""",
            panel,
            list(seen),
            AXES,
        )
        for place, lit in found:
            sets = [{tuple(one) for one in places} for places in lit]
            yield tuple(place), dict(zip(seen, sets, strict=True))

    def click(self, panel: str, place: Place) -> None:
        """Click on a cell with the mouse."""
        x, y = self.centre(panel, place)
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)

    def point_away(self) -> None:
        """Move the mouse off the numbers."""
        self.mouse("mouseMoved", 2, 2)

    def tap(self, panel: str, place: Place) -> None:
        """Touch a cell with a finger."""
        x, y = self.centre(panel, place)
        self.command("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.command("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def press(self, key: str, modifiers: int = 0) -> None:
        """Press a key: its name as in JavaScript, with 2 for Ctrl."""
        text = {" ": " ", "Enter": "\r"}.get(key)
        codes = {"Enter": 13, "Escape": 27, " ": 32, "End": 35, "Home": 36, "Tab": 9}
        codes |= {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        event: dict[str, Any] = {"key": key, "modifiers": modifiers, "windowsVirtualKeyCode": codes[key]}
        if text:
            event["text"] = text
        self.command("Input.dispatchKeyEvent", type="keyDown", **event)
        self.command("Input.dispatchKeyEvent", type="keyUp", **event)

    def focus(self, selector: str) -> None:
        self.run("document.querySelector(arguments[0]).focus()", selector)

    def push(self, *buttons: str) -> None:
        """Push buttons by their ids."""
        for button in buttons:
            self.run("document.getElementById(arguments[0]).click()", button)

    def go_to(self, step: int) -> None:
        """Move the slider."""
        self.enter("step", step)

    def enter(self, field: str, value: object) -> None:
        """Put a value into an input or a select, as if typed or chosen."""
        self.run(
            """const field = document.getElementById(arguments[0]);
            field.value = arguments[1];
            const type = field.tagName === "SELECT" ? "change" : "input";
            field.dispatchEvent(new Event(type, { bubbles: true }));""",
            field,
            str(value),
        )

    def wait(self, condition: Callable[[], bool]) -> None:
        """Wait until something holds; ten seconds at most."""
        WebDriverWait(self.chrome, 10, poll_frequency=0.05).until(lambda _: condition())

    # the browser underneath

    def resize(self, width: int, height: int, touch: bool = False) -> None:
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=touch,
        )
        self.command("Emulation.setTouchEmulationEnabled", enabled=touch)

    def emulate(
        self,
        scheme: Literal["light", "dark"] = "light",
        media: Literal["screen", "print"] = "screen",
        motion: Literal["no-preference", "reduce"] = "no-preference",
    ) -> None:
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": motion},
        ]
        self.command("Emulation.setEmulatedMedia", media=media, features=features)

    def centre(self, panel: str, place: Place) -> tuple[float, float]:
        """Scroll a cell into the middle of the window and return where it is."""
        found = self.run(
            """const [panel, axes, place] = arguments;
            const cell = [...document.querySelectorAll(`[data-panel="${panel}"] .cell`)]
              .find((one) => axes.every((axis, at) => Number(one.dataset[axis]) === place[at]));
            cell.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
            const box = cell.getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2];""",
            panel,
            AXES[panel],
            place,
        )
        return float(found[0]), float(found[1])

    def mouse(self, kind: str, x: float, y: float, **more: object) -> None:
        self.command("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def command(self, name: str, **parameters: object) -> Any:
        return self.chrome.execute_cdp_cmd(name, parameters)

    def run(self, script: str, *arguments: object) -> Any:
        return self.chrome.execute_script(script, *arguments)

    def drain(self, log: str) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = self.chrome.get_log(log)  # type: ignore[no-untyped-call]
        return entries
