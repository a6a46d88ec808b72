"""Trace of a simulation: runs of jobs, scripts, inner DAGs and placements, with order and times.

Also counts of runs, and how many went on at once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from wms.dags.simulation.behaviour import component_name


@dataclass(slots=True)
class Run:
    """Run of a component: a process of a job, a script, an inner DAG, a placement request.

    `number` counts the clusters, or the runs, of the component from 0. Times are in microseconds
    since the submission; positions are those in the order of all starts and ends. `ending` is the
    exit code or a word.
    """

    name: str
    kind: str
    number: int
    dag_id: int
    process: int = 0
    category: str = ""
    arguments: tuple[str, ...] = ()
    is_job: bool = False
    start_position: int = -1
    end_position: int | None = None
    started_us: int = 0
    ended_us: int | None = None
    ending: str = ""

    @property
    def component(self) -> str:
        """Name of the component."""
        return component_name(self.name, self.kind)


@dataclass(slots=True)
class Trace:
    """All runs in the order of their starts."""

    runs: list[Run] = field(default_factory=list)
    _counts: Counter[str] = field(default_factory=Counter)
    _positions: Iterator[int] = field(default_factory=count)

    def next_run_number(self, name: str, kind: str) -> int:
        """Number for a new run of a component; each call counts one."""
        component = component_name(name, kind)
        self._counts[component] += 1
        return self._counts[component] - 1

    def start(self, run: Run, now_us: int) -> Run:
        """Add a run that starts now."""
        run.start_position, run.started_us = next(self._positions), now_us
        self.runs.append(run)
        return run

    def end(self, run: Run, now_us: int, ending: str) -> None:
        """Set the end of a run; a second end changes nothing."""
        if run.end_position is None:
            run.end_position, run.ended_us = next(self._positions), now_us
            run.ending = ending

    @property
    def attempts(self) -> dict[str, int]:
        """Number of runs of each component; for jobs, of clusters."""
        return dict(sorted(self._counts.items()))

    @property
    def components(self) -> dict[str, list[Run]]:
        """Runs by component."""
        runs: dict[str, list[Run]] = defaultdict(list)
        for run in self.runs:
            runs[run.component].append(run)
        return dict(runs)

    @property
    def processes(self) -> dict[str, int]:
        """Number of job processes of each node."""
        return dict(Counter(run.name for run in self.runs if run.is_job))

    @property
    def start_order(self) -> list[str]:
        """Node names of all job starts."""
        return [run.name for run in self.runs if run.is_job]


def max_concurrency(runs: Sequence[Run]) -> int:
    """Largest number of these runs at the same time."""
    steps = [(run.start_position, 1) for run in runs]
    steps += [(run.end_position, -1) for run in runs if run.end_position is not None]
    most = running = 0
    for _, step in sorted(steps):
        running += step
        most = max(most, running)
    return most
