"""The first half of the claim: which TaskQueue a resource draws.

The documented steps (DIRAC TaskQueue matching, 2009): all TaskQueues that the resource fits; of
these the highest CPU segment; of that one, drawn by priority. Nothing here is locked or changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from matching.needs import Needs
from matching.resources import JobKind, Resource
from matching.weighted_draws import Law
from wms.core.database.statements import one_line, prepared_rows
from wms.taskqueues.waiting import ANYONE, TAKING_OF_CHOSEN, Taken, Taker

#: Conditions that have no parameter of their name.
_WITHOUT_VALUE = frozenset({"excluded", "is_plain"})
#: So many points are thrown before the TaskQueues of the segment are read one by one.
_POINTS = 200
#: So many TaskQueues without a place take part; others wait a few seconds for theirs.
_FRESH = 1000
#: So many TaskQueues are read ahead in the order of the draw.
_AHEAD = 10

_NEEDS = ", ".join(
    "u.username" if field.name == "owner" else f"q.{field.name}" for field in fields(Needs)
)

# What `matching.resources.Resource.refusal` asks, in the same order of columns as it is quickest.
_ALWAYS = """
    q.cores <= %(cores)s AND q.memory_mb <= %(memory_mb)s AND q.gpus <= %(gpus)s
    AND q.setup = %(setup)s
    AND (q.platforms = '{}' OR %(platform)s = ANY(q.platforms))
    AND q.tags <@ %(tags)s::varchar[]
    AND (q.sites = '{}' OR %(site)s = ANY(q.sites))
    AND NOT %(site)s = ANY(q.banned_sites)
    AND (q.queues = '{}' OR %(queue)s = ANY(q.queues))
    AND (q.pilot_types = '{}' OR %(pilot_type)s = ANY(q.pilot_types))
"""
_COLUMNS = (
    "site", "queue", "platform", "setup", "pilot_type", "cores", "memory_mb", "gpus",
)  # fmt: skip
_SOMETIMES = {
    "required_tags": "q.tags @> %(required_tags)s::varchar[]",
    "owner": "q.owner_id = (SELECT id FROM core_user WHERE username = %(owner)s)",
    "owner_groups": "q.owner_group = ANY(%(owner_groups)s::text[])",
    "excluded": """NOT EXISTS (
        SELECT FROM unnest(%(excluded_types)s::text[], %(excluded_groups)s::text[])
            AS kind(job_type, owner_group)
        WHERE kind.job_type IN ('', q.job_type) AND kind.owner_group IN ('', q.owner_group))""",
    "tried": "q.id <> ALL(%(tried)s::bigint[])",
    "failed": "q.requirements <> ALL(%(failed)s::text[])",
    "hopeless": """(q.requirements = '' OR q.owner_id NOT IN (
        SELECT id FROM core_user WHERE username = ANY(%(hopeless)s::text[])))""",
    "is_plain": "q.requirements = ''",
}

# The tickets of a segment lie side by side, each as long as its TaskQueue's priority. A random
# point in their sum hits one of them in proportion to its priority, found by the index however
# many there are. A point that hits a TaskQueue that does not fit, or a gap that a removed one left,
# is thrown again: so those that fit keep their proportions among each other. Tickets without a
# place yet are few; they lie behind the others. The points are looked at one after the other,
# because the scalar subquery stands in the list of columns, and only up to the first hit.
# Where nothing else is to be asked, the job is taken in the same statement.
_THROW = """
WITH top AS MATERIALIZED (
    SELECT max(cpu_time_s) AS cpu_time_s FROM taskqueues_ticket WHERE cpu_time_s <= %(cpu_time_s)s
), fresh AS MATERIALIZED (
    SELECT id, priority, sum(priority) OVER (ORDER BY id) AS ends_at
    FROM (
        SELECT task_queue_id AS id, priority FROM taskqueues_ticket
        WHERE cpu_time_s = (SELECT cpu_time_s FROM top) AND starts_at IS NULL
        LIMIT %(fresh)s
    ) AS unplaced
), whole AS MATERIALIZED (
    SELECT coalesce((
            SELECT t.starts_at + t.priority FROM taskqueues_ticket AS t
            WHERE t.cpu_time_s = (SELECT cpu_time_s FROM top) AND t.starts_at IS NOT NULL
            ORDER BY t.starts_at DESC LIMIT 1
        ), 0) AS placed,
        coalesce((SELECT max(ends_at) FROM fresh), 0) AS fresh
), thrown AS MATERIALIZED (
    SELECT random() * (placed + fresh) AS point FROM whole, generate_series(1, %(points)s)
), hit AS MATERIALIZED (
    SELECT id FROM (
        SELECT (
            SELECT q.id FROM taskqueues_taskqueue AS q
            WHERE q.id = coalesce((
                SELECT CASE WHEN thrown.point < t.starts_at + t.priority THEN t.task_queue_id END
                FROM taskqueues_ticket AS t
                WHERE t.cpu_time_s = (SELECT cpu_time_s FROM top) AND t.starts_at <= thrown.point
                ORDER BY t.starts_at DESC LIMIT 1
            ), (
                SELECT id FROM fresh, whole
                WHERE thrown.point - placed >= fresh.ends_at - fresh.priority
                  AND thrown.point - placed < fresh.ends_at
                LIMIT 1
            )) AND {fits}
        ) AS id
        FROM thrown
        OFFSET 0
    ) AS points
    WHERE id IS NOT NULL
    LIMIT 1
), chosen AS MATERIALIZED (
    SELECT q.id FROM hit JOIN taskqueues_taskqueue AS q ON q.id = hit.id
    WHERE %(at_once)s AND q.requirements = ''
      AND NOT EXISTS (SELECT FROM taskqueues_taskqueuepolicy WHERE law <> 'exponential')
), {taking}
SELECT top.cpu_time_s, (SELECT law FROM taskqueues_taskqueuepolicy WHERE id = 1),
    (SELECT job_id FROM gone), (SELECT sum(jobs) FROM level), q.id, {needs}
FROM top LEFT JOIN (hit
    JOIN taskqueues_taskqueue AS q ON q.id = hit.id JOIN core_user AS u ON u.id = q.owner_id
) ON true
"""

# Every TaskQueue between two segments is looked at: for resources that few of them fit, which
# points hit too rarely, and for the other law, which has no such intervals.
_SCAN = """
SELECT q.id, {needs}
FROM taskqueues_taskqueue AS q
JOIN taskqueues_ticket AS t ON t.task_queue_id = q.id
JOIN core_user AS u ON u.id = q.owner_id
WHERE q.cpu_time_s BETWEEN %(least_s)s AND %(segment_s)s AND {fits}
ORDER BY q.cpu_time_s DESC, VARIATE
LIMIT %(ahead)s
"""
#: `matching.weighted_draws.variate`.
_VARIATES = {
    Law.EXPONENTIAL: "-ln(1 - random()) / t.priority",
    Law.UNIFORM: "random() / t.priority",
}
_SCAN_BY = {law: _SCAN.replace("VARIATE", variate) for law, variate in _VARIATES.items()}


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
        self, resource: Resource, taker: Taker = ANYONE, *, takes_at_once: bool = False
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
        self._ahead: list[Candidate] = []

    def exclude(self, kind: JobKind) -> None:
        """Leave out jobs of this kind from now on, and draw anew."""
        self._resource = replace(self._resource, excluded=(*self._resource.excluded, kind))
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
            segment_s, self._ahead = self._throw()
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

    def _throw(self) -> tuple[int | None, list[Candidate]]:
        [(segment_s, law, job_id, jobs, *columns)] = self._rows(
            _THROW,
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
        statement = _SCAN_BY[self.law]
        rows = self._rows(statement, least_s=least_s, segment_s=segment_s, ahead=_AHEAD)
        return [_candidate(row) for row in rows]

    def _rows(self, sql: str, **parameters: Any) -> list[Any]:
        left_out = {"tried": self._tried, **self._left_out}
        statement, values = _bound(sql, self._resource, left_out)
        return prepared_rows(statement, {**values, "cpu_time_s": self._bound_s, **parameters})


def explained(name: str, resource: Resource, segment_s: int) -> tuple[str, dict[str, Any]]:
    """The statement `throw` or `scan` as it is sent: for tests and benchmarks of plans."""
    sql = _THROW if name == "throw" else _SCAN_BY[Law.EXPONENTIAL]
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
        "excluded": resource.excluded,
        **left_out,
    }
    fits = " AND ".join([_ALWAYS, *(_SOMETIMES[name] for name in sometimes if sometimes[name])])
    values = {name: getattr(resource, name) for name in _COLUMNS} | {
        "tags": list(resource.tags),
        "excluded_types": [kind.job_type for kind in resource.excluded],
        "excluded_groups": [kind.owner_group for kind in resource.excluded],
        **{name: value for name, value in sometimes.items() if name not in _WITHOUT_VALUE},
    }
    return one_line(sql.format(fits=fits, needs=_NEEDS, taking=TAKING_OF_CHOSEN)), values


def _candidate(columns: Any) -> Candidate:
    task_queue_id, *values = columns
    named = {field.name: value for field, value in zip(fields(Needs), values, strict=True)}
    return Candidate(task_queue_id, Needs.from_dict(named))
