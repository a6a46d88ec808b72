"""Panes (charts) of the history page: series of each, kind of its bins, and how they are drawn.

Also which panes are shown by default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from portal.history.groupings import GroupBy, Grouping
from portal.history.parts import WHOLE, Part
from wms.core.errors import NotFound
from wms.core.loops import known_loops
from wms.dags.states import DagState
from wms.history.counting import COUNTED_MINUTES, FAILURES, MATCHES, THROUGHPUT, WAITING
from wms.history.frontends import THROUGHPUT_OF_FRONTENDS, series_of
from wms.history.sampling import SITE_STATES
from wms.jobs.states import TERMINAL as JOB_TERMINAL
from wms.jobs.states import JobState
from wms.pilots.states import TERMINAL as PILOT_TERMINAL
from wms.pilots.states import PilotState


class PaneKind(StrEnum):
    """Meaning of the bins of a pane: level, count, ratio or spread."""

    #: A number that is sampled: its average, minimum, maximum or last value.
    LEVEL = "level"
    #: Things that are counted: how many there were in the bin.
    COUNT = "count"
    #: Things that are counted: what share of them ended well.
    RATIO = "ratio"
    #: Values of single things: what shares of them do not exceed.
    SPREAD = "spread"


@dataclass(frozen=True, slots=True)
class PaneLine:
    """One line of a pane; `share` is the part of all values that a line of a spread tells.

    Of a ratio, `series` counts what ended well, `others` all that did not. A folded line is drawn
    when it is asked for.
    """

    name: str
    label: str
    series: str
    is_folded: bool = False
    share: float = 0.0
    others: Sequence[str] = ()

    def at(self, site: str) -> PaneLine:
        """Line of one site."""
        others = [f"{name}@{site}" for name in self.others]
        return replace(self, series=f"{self.series}@{site}", others=others)


@dataclass(frozen=True, slots=True)
class Pane:
    """One chart; `site_lines` are drawn instead of `lines` when a site is chosen, if it has any.

    So are `frontend_lines` when a frontend is chosen. What is of accounts has bins of days, and no
    lines of its own.
    """

    name: str
    title: str
    unit: str
    lines: Sequence[PaneLine]
    kind: PaneKind = PaneKind.LEVEL
    site_lines: Sequence[PaneLine] = ()
    frontend_lines: Sequence[PaneLine] = ()
    note: str = ""
    groupings: Mapping[GroupBy, Grouping] = field(default_factory=dict)
    is_of_accounts: bool = False

    def grouping(self, by: GroupBy | None) -> Grouping | None:
        """Form of the pane when it is grouped so; None where it cannot be."""
        return None if by is None else self.groupings.get(by)

    def titled(self, by: GroupBy | None) -> Pane:
        """Pane under the title that it has when it is grouped so."""
        grouping = self.grouping(by)
        return replace(self, title=grouping.title) if grouping else self

    @property
    def has_sites(self) -> bool:
        """Whether it can be drawn for one site."""
        return bool(self.site_lines) or self.is_of_accounts

    @property
    def has_frontends(self) -> bool:
        """Whether it can be drawn for one frontend."""
        return bool(self.frontend_lines)

    def is_of(self, part: Part) -> bool:
        """Whether it shows the chosen site or frontend, and not all."""
        return bool((part.site and self.has_sites) or (part.frontend and self.frontend_lines))

    def lines_of(self, part: Part) -> list[PaneLine]:
        """The lines of a site or frontend, or of all together."""
        if not self.is_of(part):
            return list(self.lines)
        if part.site:
            return [line.at(part.site) for line in self.site_lines]
        return [
            replace(line, series=series_of(line.series, part.frontend_id))
            for line in self.frontend_lines
        ]

    def series_of(self, part: Part = WHOLE) -> list[str]:
        """The series to be read for these lines."""
        if self.is_of_accounts:
            return []
        lines = self.lines_of(part)
        names = dict.fromkeys(name for line in lines for name in (line.series, *line.others))
        return [*names, COUNTED_MINUTES] if self.kind == PaneKind.COUNT else list(names)


def _states(source: str, states: Sequence[str], folded: frozenset[str]) -> list[PaneLine]:
    return [PaneLine(state, state, f"{source}.{state}", state in folded) for state in states]


def _line(name: str, label: str = "", *, series: str, is_folded: bool = False) -> PaneLine:
    return PaneLine(name, label or name, series, is_folded)


#: A site that takes work is called open on every page.
_SITE_LABELS = {"enabled": "open"}
_DAG_ENDS = frozenset({DagState.COMPLETED.value, DagState.REMOVED.value, DagState.FAILED.value})
_FAILURE_LABELS = {
    "exit_code": "exit code",
    "signal": "ended by a signal",
    "output_missing": "output missing",
    "watchdog": "stopped by the watchdog",
    "pilot_time": "out of its pilot's time",
    "stopped": "stopped or killed",
    "preempted": "pre-empted",
    "pilot_lost": "pilot lost",
    "not_run": "could not be run",
    "never_started": "never started",
}
_BY_SITE = GroupBy.SITE
_PRESSURE = [
    _line("requested", series="pilots.requested"),
    _line("granted", series="pilots.granted"),
    _line("running", series="pilots.running"),
]
_ALIVE = [
    _line("queued", "waiting", series="pilots.queued"),
    _line("running", series="pilots.running"),
]
_WAITING = _line("queued", "waiting", series="pilots.queued", is_folded=True)
_THROUGHPUT = [_line(name, series=f"throughput.{name}") for name in THROUGHPUT]
_SHARES = [
    PaneLine("median", "median", WAITING, share=0.5),
    PaneLine("p90", "90 %", WAITING, share=0.9),
    PaneLine("p99", "99 %", WAITING, share=0.99),
]
#: Loops whose durations are drawn without being asked for.
_MAIN_LOOPS = frozenset({"negotiator", "dag-engine", "director", "pilot-monitor", "sampler"})

_ALWAYS = (
    Pane("jobs", "Jobs by state", "jobs", _states("jobs", JobState.values, JOB_TERMINAL),
         site_lines=[_line("running", series="jobs.running")],
         frontend_lines=[_line("waiting", series="jobs.waiting"),
                         _line("running", series="jobs.running")],
         groupings={_BY_SITE: Grouping("Running jobs", "jobs.running")}),
    Pane("dags", "DAGs by state", "DAGs", _states("dags", DagState.values, _DAG_ENDS)),
    Pane("pilots", "Pilots by state", "pilots",
         _states("pilots", PilotState.values, PILOT_TERMINAL),
         site_lines=_ALIVE, frontend_lines=_ALIVE,
         groupings={_BY_SITE: Grouping("Running pilots", "pilots.running")}),
    Pane("pressure", "Pilots requested, granted, running", "pilots", _PRESSURE,
         site_lines=[*_PRESSURE, _WAITING], frontend_lines=[*_PRESSURE, _WAITING],
         note="Requested is what the waiting jobs would fill, whatever was granted.",
         groupings={_BY_SITE: Grouping("Pilots requested", "pilots.requested")}),
    Pane("throughput", "Jobs submitted, started, ended", "jobs", _THROUGHPUT, PaneKind.COUNT,
         site_lines=[line for line in _THROUGHPUT if line.name in ("started", "done", "failed")],
         frontend_lines=[line for line in _THROUGHPUT if line.name in THROUGHPUT_OF_FRONTENDS],
         groupings={_BY_SITE: Grouping("Jobs done", "throughput.done")}),
    Pane("failures", "Failed attempts by reason", "attempts",
         [_line(name, _FAILURE_LABELS.get(name, name), series=f"failures.{name}")
          for name in FAILURES],
         PaneKind.COUNT,
         site_lines=[_line("failed", "all reasons", series="failures")],
         groupings={_BY_SITE: Grouping("Failed attempts", "failures")}),
    Pane("success", "Attempts that succeeded", "%",
         [PaneLine("succeeded", "succeeded", "throughput.done",
                   others=[f"failures.{name}" for name in FAILURES])],
         PaneKind.RATIO,
         site_lines=[PaneLine("succeeded", "succeeded", "throughput.done", others=["failures"])]),
    Pane("use", "Core-hours used", "core h", (), PaneKind.COUNT, is_of_accounts=True,
         note="From the accounts of whole days: an attempt counts on the day of its end, and once"
              " for each of its labels.",
         groupings={by: Grouping("Core-hours of attempts") for by in GroupBy}),
    Pane("waiting", "Waiting time of jobs that started", "s", _SHARES, PaneKind.SPREAD,
         note="From when a job joined a TaskQueue last until its start, to within 10 %."),
    Pane("sites", "Sites by state", "sites",
         [_line(state, _SITE_LABELS.get(state, ""), series=f"sites.{state}")
          for state in SITE_STATES]),
    Pane("matches", "Matches of DAGs with sites", "matches",
         [_line("matches", series=MATCHES)], PaneKind.COUNT),
    Pane("negotiation", "DAGs in a negotiation", "DAGs",
         [_line(name, series=f"negotiation.{name}") for name in ("requests", "unmatched")]),
    Pane("duration", "Seconds of a negotiation", "s",
         [_line("seconds", series="negotiation.seconds")]),
)  # fmt: skip

#: The panes that there always are, by name and in the order of the page.
FIXED: Mapping[str, Pane] = {pane.name: pane for pane in _ALWAYS}
#: What pages of their own show, or a long time alone.
_ELSEWHERE = frozenset({"negotiation", "duration", "use", "success"})


def panes() -> dict[str, Pane]:
    """All panes; the last has the loops that exist, which register themselves late."""
    loops = [
        _line(name, series=f"loop.{name}.seconds", is_folded=name not in _MAIN_LOOPS)
        for name in sorted(known_loops(), key=lambda name: (name not in _MAIN_LOOPS, name))
    ]
    return {**FIXED, "loops": Pane("loops", "Cycles of the loops", "s", loops)}


def usual_panes(part: Part, by: GroupBy | None = None) -> list[Pane]:
    """Panes shown by default, for the installation, one site or one frontend, or so grouped."""
    if by is not None:
        return [pane for pane in panes().values() if pane.grouping(by)]
    return [
        pane
        for pane in panes().values()
        if pane.name not in _ELSEWHERE and (pane.is_of(part) or not part)
    ]


def find_pane(name: str) -> Pane:
    """The pane of this name. Raises NotFound."""
    known = panes()
    if name not in known:
        raise NotFound(f"There is no pane {name!r}; there are {', '.join(known)}.")
    return known[name]
