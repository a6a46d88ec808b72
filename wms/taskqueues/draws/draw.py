"""Draw of a TaskQueue for what a pilot has free (its resource), the first half of a claim.

The documented steps (DIRAC TaskQueue matching, 2009): all TaskQueues that the resource fits; of
these the highest CPU segment; of that one, drawn by priority. Nothing is locked or changed, but
that a job without further conditions may be taken in the same statement.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from matching.task_queues.needs import Needs
from matching.task_queues.resources import JobKind, Resource
from matching.task_queues.start_expressions import NEEDS_FIELDS
from matching.task_queues.weighted_draws import Law
from wms.core.database.statements import prepared_rows
from wms.taskqueues.draws.sql import SAMPLE, SCAN_BY, fitting
from wms.taskqueues.waiting import ANYONE, ClaimingHost, Taken

#: Conditions that have no parameter of their name.
_WITHOUT_VALUE = frozenset({"excluded", "is_plain", "alike"})
#: Random points tried before the TaskQueues of the segment are read one by one.
_POINTS = 200
#: Most TaskQueues without an interval that take part; others wait a few seconds for theirs.
_FRESH = 1000
#: TaskQueues read ahead in the order of the draw.
_AHEAD = 10

_COLUMNS = (
    "site", "queue", "platform", "setup", "pilot_type", "cores", "memory_mb", "gpus",
    "disk_mb",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Candidate:
    """A TaskQueue that was drawn."""

    task_queue_id: int
    needs: Needs
    taken: Taken | None = None


class Draw:
    """The TaskQueues that a resource fits, in the order of one draw, the highest segment first.

    With `takes_at_once` a job of a drawn TaskQueue without requirements is taken with it, mostly:
    then the candidate tells it, and nothing more may be drawn.
    """

    def __init__(
        self, resource: Resource, taker: ClaimingHost = ANYONE, *, takes_at_once: bool = False
    ) -> None:
        self.law = Law.EXPONENTIAL
        self._taker = taker
        self._takes_at_once = takes_at_once
        self._resource = resource
        # An index leads to the few TaskQueues of one owner; no point would ever hit one. Another
        # one leads to those that carry certain tags, which may be few.
        self._points = 0 if resource.owner else _POINTS
        self._is_indexed = bool(resource.owner or resource.required_tags)
        self._bound_s = resource.cpu_time_s
        self._tried: list[int] = []
        self._left_out: dict[str, Any] = {"failed": [], "hopeless": [], "is_plain": False}
        self._alike: dict[str, list[Any]] = {}
        self._ahead: list[Candidate] = []

    def exclude(self, kind: JobKind) -> None:
        """Leave out jobs of this kind from now on, and draw anew."""
        self._resource = replace(self._resource, excluded=(*self._resource.excluded, kind))
        self._ahead = []

    def exclude_alike(self, needs: Needs, names: Collection[str]) -> None:
        """Leave out jobs that are equal in these needs, or all where none is named; draw anew."""
        for name in NEEDS_FIELDS.values():
            given = getattr(needs, name) if name in names else None
            self._alike.setdefault(f"alike_{name}", []).append(given)
        self._ahead = []

    def exclude_requirements(self, *, text: str = "", owner: str = "") -> None:
        """Leave out jobs with these requirements, all of an owner with any, or all; draw anew."""
        if text:
            self._left_out["failed"].append(text)
        if owner:
            self._left_out["hopeless"].append(owner)
        self._left_out["is_plain"] |= not (text or owner)
        self._ahead = []

    def next(self) -> Candidate | None:
        """The next TaskQueue; None when there is none that fits and was not drawn before."""
        while not self._ahead:
            segment_s, self._ahead = self._sample()
            if segment_s is None:
                return None
            if not self._ahead:
                least_s = 0 if self._is_indexed else segment_s
                self._ahead = self._scan(least_s, segment_s)
                if not self._ahead:
                    self._bound_s = least_s - 1
        found = self._ahead.pop(0)
        self._tried.append(found.task_queue_id)
        return found

    def _sample(self) -> tuple[int | None, list[Candidate]]:
        [(segment_s, law, job_id, jobs, *columns)] = self._rows(
            SAMPLE,
            points=self._points,
            fresh=_FRESH,
            at_once=self._takes_at_once,
            **self._taker.parameters(),
        )
        self.law = Law(law or Law.EXPONENTIAL)
        if self.law is not Law.EXPONENTIAL:
            self._points = 0
            return segment_s, []
        if columns[0] is None:
            return segment_s, []
        taken = None if job_id is None else Taken(job_id, is_last=jobs <= 1)
        return segment_s, [replace(_candidate(columns), taken=taken)]

    def _scan(self, least_s: int, segment_s: int) -> list[Candidate]:
        statement = SCAN_BY[self.law]
        rows = self._rows(statement, least_s=least_s, segment_s=segment_s, ahead=_AHEAD)
        return [_candidate(row) for row in rows]

    def _rows(self, sql: str, **parameters: Any) -> list[Any]:
        left_out = {"tried": self._tried, **self._left_out, "alike": bool(self._alike)}
        statement, values = _bound(sql, self._resource, left_out)
        parameters |= {"cpu_time_s": self._bound_s, **self._alike}
        return prepared_rows(statement, {**values, **parameters})


def explained(name: str, resource: Resource, segment_s: int) -> tuple[str, dict[str, Any]]:
    """The statement `sample` or `scan` as it is sent: for tests and benchmarks of plans."""
    sql = SAMPLE if name == "sample" else SCAN_BY[Law.EXPONENTIAL]
    statement, values = _bound(sql, resource, {})
    segment = {"least_s": segment_s, "segment_s": segment_s, "cpu_time_s": segment_s}
    return statement, {**values, **segment, "points": _POINTS, "fresh": _FRESH, "ahead": _AHEAD,
            "at_once": False, **ANYONE.parameters()}  # fmt: skip


def _bound(sql: str, resource: Resource, left_out: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """A statement with the conditions that this resource makes, and their parameters."""
    sometimes: dict[str, Any] = {
        "required_tags": list(resource.required_tags),
        "owner": resource.owner,
        "owner_groups": list(resource.owner_groups),
        "foreign_groups": list(resource.foreign_groups),
        "refused_owners": list(resource.refused_owners),
        "refused_groups": list(resource.refused_groups),
        "excluded": resource.excluded,
        **left_out,
    }
    values = {name: getattr(resource, name) for name in _COLUMNS} | {
        "tags": list(resource.tags),
        "excluded_types": [kind.job_type for kind in resource.excluded],
        "excluded_groups": [kind.owner_group for kind in resource.excluded],
        "excluded_limits": [kind.limit for kind in resource.excluded],
        **{name: value for name, value in sometimes.items() if name not in _WITHOUT_VALUE},
    }
    return fitting(sql, [name for name in sometimes if sometimes[name]]), values


def _candidate(columns: Any) -> Candidate:
    task_queue_id, *values = columns
    named = {field.name: value for field, value in zip(fields(Needs), values, strict=True)}
    return Candidate(task_queue_id, Needs.from_dict(named))
