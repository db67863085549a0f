"""Kill trainings at random moments, go on with them, and compare their ends with an uninterrupted run.

    python -m tests.stress.kills --runs 100 --interrupts 50 --seed 0

Each of the runs is struck by kill -9 once or twice: at its start, while it writes a file, anywhere
in its life, and while it is resumed. What lies in its directory at that moment is read; it is resumed at
once, until it is done. Then every array of last.npz and best.npz must have the bits of a run that
nothing happened to, metrics.jsonl its lines, and nothing else may lie in the directory.

The interrupted runs get SIGINT or SIGTERM, half of them a second one behind it: they must end with exit
code 130 and name a checkpoint that is there, and are resumed in the same way.

Half of the runs stop early. Every draw comes from the seed, but not the speed of the machine. The exit
code is 1 if anything was lost; the directories of the runs then stay where the report says.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from cnncli.errors import CnncliError
from cnncli.training import load_checkpoint
from tests.stress.attack import Attack, Victim, draw_interrupt, draw_kill, strike, survivors
from tests.stress.victim import VARIANTS, differences, examine, make_workspace

N_STRIKES = (1, 1, 2)  # drawn from
NAMED = re.compile(r"interrupted: (?:epoch (\d+) of \d+ is kept in|no epoch was finished;) (\S+\.npz)")


@dataclass
class Report:
    """What has happened so far."""

    runs: Counter[str] = field(default_factory=Counter)
    phases: Counter[str] = field(default_factory=Counter)
    n_in_writes: int = 0
    n_in_resumes: int = 0
    faults: list[str] = field(default_factory=list)

    def lines(self, seconds: float) -> list[str]:
        """Word the figures."""
        n_strikes = sum(self.phases.values())
        return [
            f"{sum(self.runs.values())} runs struck {n_strikes} times in {seconds:.0f} s",
            *(f"  {n:4} {kind}" for kind, n in sorted(self.runs.items())),
            *(f"  {n:4} strikes {phase}" for phase, n in sorted(self.phases.items())),
            f"  {self.n_in_writes:4} strikes while a file was half written",
            f"  {self.n_in_resumes:4} strikes while a run was resumed",
            f"  {len(self.faults):4} faults",
            *self.faults,
        ]


class Stress:
    """Runs in one directory, each compared with the whole run of its variant."""

    def __init__(self, directory: Path, seed: int) -> None:
        self._directory = directory
        self._rng = Random(seed)
        self.report = Report()
        make_workspace(directory)
        self._lives = {variant: self._train_whole(variant) for variant in VARIANTS}

    def _train_whole(self, variant: str) -> float:
        """Train without a break; return the seconds that it took."""
        started = time.monotonic()
        run = self._directory / variant
        victim = strike(["train", "--config", f"{variant}.yaml", "--run-dir", variant], run, None)
        assert victim.code == 0, victim.err
        return time.monotonic() - started

    def attack(self, number: int, *, interrupt: bool) -> None:
        """Strike one run until it is done, and look at everything that it leaves."""
        rng, variant = self._rng, list(VARIANTS)[number % len(VARIANTS)]
        run = self._directory / f"run-{number}"
        n_strikes, victims = rng.choice(N_STRIKES), list[Victim]()
        for _ in range(1000):
            is_done = sum(victim.was_struck for victim in victims) == n_strikes
            life = self._lives[variant]
            attack = None
            if not is_done:
                attack = draw_interrupt(rng, life) if interrupt else draw_kill(rng, life)
            victim = self._strike(variant, run, attack)
            victims.append(victim)
            if victim.code == 0 and not victim.was_struck:
                if len(victims) == 1:  # it was over before it could be struck: once more
                    shutil.rmtree(run)
                    victims.clear()
                    continue
                break
        self._finish(variant, run, victims, "interrupted" if interrupt else "killed")

    def _strike(self, variant: str, run: Path, attack: Attack | None) -> Victim:
        is_resumed = (run / "config.yaml").exists()
        new = ["--config", f"{variant}.yaml", "--run-dir", run.name]
        threads = ["--threads", str(self._rng.choice((1, 2, 3)))]
        victim = strike(["train", *(["--resume", run.name] if is_resumed else new), *threads], run, attack)
        if attack is not None and victim.was_struck:
            state = examine(run)
            self.report.phases[state.phase] += 1
            self.report.n_in_writes += state.is_writing
            self.report.n_in_resumes += is_resumed
            self.report.faults += state.faults
            if attack.signals[0].name != "SIGKILL":
                self.report.faults += _faults_of_interrupt(run, victim)
        elif victim.code != 0:
            self.report.faults.append(f"{run}: exit code {victim.code}: {victim.err}")
        return victim

    def _finish(self, variant: str, run: Path, victims: list[Victim], kind: str) -> None:
        faults = differences(run, self._directory / variant)
        faults += [
            f"{run}: process {pid} of a killed command is still running"
            for victim in victims
            for pid in survivors(victim.pid)
        ]
        self.report.faults += faults
        self.report.runs[f"{kind}, with {variant.replace('_', ' ')}"] += 1
        if not faults:
            shutil.rmtree(run)


def _faults_of_interrupt(run: Path, victim: Victim) -> list[str]:
    if victim.code == 0:
        return []  # the work was done, the signal came behind it
    if not run.exists() and victim.code != 130:
        return []  # Python itself was still starting
    faults = [] if victim.code == 130 else [f"{run}: exit code {victim.code} after a signal: {victim.err}"]
    if "Traceback" in victim.err or "Exception ignored" in victim.err:
        faults.append(f"{run}: {victim.err}")
    named = NAMED.search(victim.err)
    if named is not None:
        try:
            epoch = load_checkpoint(run.parent / named[2]).epoch
            if epoch != int(named[1] or 0):
                faults.append(f"{run}: epoch {epoch} is kept, not as named: {named[0]}")
        except CnncliError as error:
            faults.append(f"{run}: {named[0]}: {error}")
    elif "resuming with epoch" in victim.err and "training is done" not in victim.err:
        faults.append(f"{run}: no checkpoint is named: {victim.err}")
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=100, help="runs that are killed with kill -9")
    parser.add_argument("--interrupts", type=int, default=0, help="runs that get SIGINT or SIGTERM")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="kills-"))
    started = time.monotonic()
    stress = Stress(directory, options.seed)
    for number in range(options.runs + options.interrupts):
        stress.attack(number, interrupt=number >= options.runs)
    lines = stress.report.lines(time.monotonic() - started)
    if stress.report.faults:
        lines.append(f"the runs are left in {directory}")
    else:
        shutil.rmtree(directory)
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if stress.report.faults else 0


if __name__ == "__main__":
    sys.exit(main())
