"""What ran in a simulation, and when: the runs of all components in their order."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from wms.dags.simulation.behaviour import component_of


@dataclass(slots=True)
class Run:
    """One run of a component: a process of a job, a script, an inner DAG, a placement request.

    `number` counts the clusters, or the runs, of the component from 0. Times are in microseconds
    since the submission; `started` and `ended` are places in the order of all that happened.
    """

    name: str
    kind: str
    number: int
    dag_id: int
    process: int = 0
    category: str = ""
    arguments: tuple[str, ...] = ()
    is_job: bool = False
    started: int = -1
    ended: int | None = None
    started_us: int = 0
    ended_us: int | None = None
    how: str = ""

    @property
    def component(self) -> str:
        """What it is a run of."""
        return component_of(self.name, self.kind)


@dataclass(slots=True)
class Record:
    """All runs; the places in their order are given here."""

    runs: list[Run] = field(default_factory=list)
    _counts: Counter[str] = field(default_factory=Counter)
    _places: Iterator[int] = field(default_factory=count)

    def next_number(self, name: str, kind: str) -> int:
        """The number of the next run of a component, which is taken by asking."""
        component = component_of(name, kind)
        self._counts[component] += 1
        return self._counts[component] - 1

    def start(self, run: Run, now_us: int) -> Run:
        """A run has begun."""
        run.started, run.started_us = next(self._places), now_us
        self.runs.append(run)
        return run

    def end(self, run: Run, now_us: int, how: str) -> None:
        """It has ended; a second end of a run says nothing."""
        if run.ended is None:
            run.ended, run.ended_us, run.how = next(self._places), now_us, how

    @property
    def attempts(self) -> dict[str, int]:
        """How often each component ran; of jobs, their clusters."""
        return dict(sorted(self._counts.items()))

    @property
    def components(self) -> dict[str, list[Run]]:
        """The runs by component."""
        found: dict[str, list[Run]] = defaultdict(list)
        for run in self.runs:
            found[run.component].append(run)
        return dict(found)

    @property
    def processes(self) -> dict[str, int]:
        """How many processes of each node ran."""
        return dict(Counter(run.name for run in self.runs if run.is_job))

    @property
    def start_order(self) -> list[str]:
        """The nodes of all job starts."""
        return [run.name for run in self.runs if run.is_job]


def most_at_once(runs: Sequence[Run]) -> int:
    """How many of these runs were under way at the same time, at most."""
    steps = [(run.started, 1) for run in runs]
    steps += [(run.ended, -1) for run in runs if run.ended is not None]
    most = running = 0
    for _, step in sorted(steps):
        running += step
        most = max(most, running)
    return most
