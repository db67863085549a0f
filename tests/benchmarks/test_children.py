"""Programs in processes of their own: their order, their environment, their memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks.children import ChildError, in_turn, peak_bytes, run
from benchmarks.memory import tree_bytes

MIB = 2**20

SHOW_THREADS = (
    "import os; print([os.environ.get(name) for name in ('OPENBLAS_NUM_THREADS', 'OMP_NUM_THREADS')])"
)


def test_programs_take_turns() -> None:
    order: list[str] = []

    def program(name: str) -> int:
        order.append(name)
        return len(order)

    results = in_turn("letters", 2, {"a": lambda: program("a"), "b": lambda: program("b")})
    assert order == ["a", "b", "a", "b"]
    assert results == {"a": [1, 3], "b": [2, 4]}


def test_the_blas_has_the_threads_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert run(["-c", SHOW_THREADS], 1).output.strip() == "['1', '1']"
    assert run(["-c", SHOW_THREADS], None).output.strip() == "[None, None]"


def test_the_result_is_the_json_that_the_program_wrote() -> None:
    assert run(["-c", "print('{\"seconds\": 1.5}')"], None).result == {"seconds": 1.5}


def test_a_failure_is_no_result() -> None:
    with pytest.raises(ChildError, match="exit code 3"):
        run(["-c", "raise SystemExit(3)"], None)


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_memory_is_that_of_all_processes_together() -> None:
    # 40 MiB that parent and child share, then 30 MiB of the child's own
    script = (
        "import os, time\n"
        f"shared = bytearray(os.urandom(1) * 40 * {MIB})\n"
        "if os.fork() == 0:\n"
        f"    own = bytearray(os.urandom(1) * 30 * {MIB})\n"
        "    time.sleep(0.5)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    bare = peak_bytes(["-c", "import time; time.sleep(0.3)"], None)
    # while it is built, an array is there twice
    assert 70 * MIB <= peak_bytes(["-c", script], None) - bare <= 105 * MIB


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_a_process_that_has_ended_has_no_memory() -> None:
    with subprocess.Popen([sys.executable, "-c", "pass"]) as process:
        process.wait()
    assert tree_bytes(process.pid) == 0
