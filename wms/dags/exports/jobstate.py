"""The `jobstate.log` of a run, which Pegasus' monitor reads."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from wms.dags.exports.timeline import Chronicle, Happening
from wms.dags.models import Dag

#: Of these the column of the job has the code of the node's job part instead.
_WITH_CODE = frozenset({"JOB_SUCCESS", "JOB_FAILURE"})


def lines(dag: Dag, now: datetime) -> Iterator[str]:
    """The text of the file, a line each: time, node, event, job or code, two dashes, attempt.

    Attempts are counted over all nodes, and on from the runs that this one resumed.
    """
    for happening in Chronicle(dag).happenings():
        yield f"{int(happening.time.timestamp())} {_rest(happening)}\n"


def _rest(happening: Happening) -> str:
    job = "-" if happening.job is None else f"{happening.job.cluster}.{happening.job.process}"
    if happening.what == "DAGMAN_STARTED":
        return f"INTERNAL *** DAGMAN_STARTED {job} ***"
    if happening.what == "DAGMAN_FINISHED":
        return f"INTERNAL *** DAGMAN_FINISHED {happening.code} ***"
    shown = str(happening.code) if happening.what in _WITH_CODE else job
    return f"{happening.node} {happening.what} {shown} - - {happening.attempt}"
