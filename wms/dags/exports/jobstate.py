"""Export of a run as `jobstate.log`, which Pegasus' monitor reads."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from wms.dags.exports.timeline import Timeline, TimelineEvent
from wms.dags.models import Dag

#: Events whose job column has the code of the node's job part instead.
_WITH_CODE = frozenset({"JOB_SUCCESS", "JOB_FAILURE"})


def lines(dag: Dag, now: datetime) -> Iterator[str]:
    """Text of the file, by lines: time, node, event, job or code, two dashes, attempt.

    Attempts are counted over all nodes, including those of the earlier runs that this one resumed.
    """
    for event in Timeline(dag).events():
        yield f"{int(event.time.timestamp())} {_fields(event)}\n"


def _fields(event: TimelineEvent) -> str:
    job = "-" if event.job is None else f"{event.job.cluster}.{event.job.process}"
    if event.name == "DAGMAN_STARTED":
        return f"INTERNAL *** DAGMAN_STARTED {job} ***"
    if event.name == "DAGMAN_FINISHED":
        return f"INTERNAL *** DAGMAN_FINISHED {event.code} ***"
    shown = str(event.code) if event.name in _WITH_CODE else job
    return f"{event.node} {event.name} {shown} - - {event.attempt}"
