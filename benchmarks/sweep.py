"""Benchmark of clusters: submission, making of their jobs, and the life of a sweep under kills.

`submit` are seconds for ten million jobs, by a number and by a table that comes as a file; hardly
any job is made by it. `eager` are seconds for a hundred thousand jobs that are made with their
submission, and where they go: `check_s` is what the check alone takes, which renders all jobs;
`statements_s` is what the client spent in statements, by their tables; those that are sent ahead
count as sent, and the wait for them with the next that is read. `materialise` is how many jobs a
second the materialiser makes where all may wait. `sweep` is told in `benchmarks.sweep_life`: a
million `/bin/true` while programs are killed, and the account of each of its rows. `reference` is a
read of one row and a transaction of one row in the same run, to compare machines by.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import base
from benchmarks.sweep_life import CLIENTS, live_sweep

_TABLE = "table.txt"
_TARGET = re.compile(r"(?:INSERT INTO|UPDATE|DELETE FROM|FROM)\s+\"?(\w+)", re.IGNORECASE)


def measure(is_quick: bool) -> dict[str, Any]:
    """Measure each part in a process of its own, one after the other in one database.

    To see that it works, one process does for the first parts, and half of the clients do.
    """
    large, eager, made, swept = (
        (10_000, 2_000, 2_000, 400) if is_quick else (10_000_000, 100_000, 100_000, 1_000_000)
    )
    parts = {
        "furnish": (_furnish,),
        "submit": (_measure_submission, large),
        "eager": (_measure_eager, eager),
        "materialise": (_measure_materialiser, made),
    }
    if is_quick:
        found = base.in_a_process(_measure_parts, parts)
    else:
        found = {name: base.in_a_process(*part) for name, part in parts.items()}
    return {
        **{name: found[name] for name in parts if name != "furnish"},
        "sweep": live_sweep(swept, CLIENTS // 2 if is_quick else CLIENTS),
        "reference": base.reference_ms(),
    }


def _measure_parts(parts: dict[str, tuple[Any, ...]]) -> dict[str, Any]:
    return {name: work(*arguments) for name, (work, *arguments) in parts.items()}


def _furnish() -> None:
    base.load_django()
    from django.core.management import call_command

    from wms.core.accounts import ensure_account
    from wms.core.actors import Actor
    from wms.core.models import Role

    call_command("migrate", verbosity=0)
    actor = Actor.system("benchmark")
    ensure_account("sweeper", password="a password for measuring", role=Role.USER, actor=actor)


def _measure_submission(rows: int) -> dict[str, Any]:
    base.load_django()
    from wms.jobs.clusters.submit import ClusterSubmission

    common = "executable = /bin/true\n"
    options = {"eager": False}
    number = ClusterSubmission(f"{common}queue {rows}\n", options=options)
    seconds = {"number_s": _seconds(lambda: _submitted(number))}
    with tempfile.TemporaryDirectory(prefix="pilotage-") as folder:
        path = Path(folder, _TABLE)
        with path.open("w") as stream:
            stream.writelines(f"{row} {row % 97}\n" for row in range(rows))
        with path.open("rb") as file:
            text = f"{common}arguments = $(x) $(y)\nqueue x, y from {_TABLE}\n"
            table = ClusterSubmission(text, options=options, files={_TABLE: file})
            seconds["table_s"] = _seconds(lambda: _submitted(table))
        seconds["table_mb"] = round(path.stat().st_size / 1e6, 1)
    _remove_all()
    return {"jobs": rows, **seconds}


def _measure_eager(rows: int) -> dict[str, Any]:
    base.load_django()
    from django.db import connection

    from wms.core.models import User
    from wms.jobs.clusters.submit import ClusterSubmission, check_submission

    text = "executable = /bin/true\narguments = $(Process)\n"
    submission = ClusterSubmission(f"{text}queue {rows}\n", options={"eager": True})
    owner = User.objects.get(username="sweeper")
    check_s = _seconds(lambda: check_submission(submission, owner=owner))
    spent_s: defaultdict[str, float] = defaultdict(float)

    def timed(execute: Any, sql: Any, parameters: Any, many: bool, context: Any) -> Any:
        began_s = time.perf_counter()
        try:
            return execute(sql, parameters, many, context)
        finally:
            spent_s[_target(str(sql))] += time.perf_counter() - began_s

    with connection.execute_wrapper(timed):
        total_s = _seconds(lambda: _submitted(submission))
    largest = sorted(spent_s.items(), key=lambda each: -each[1])[:8]
    statements_s = {name: round(seconds, 2) for name, seconds in largest}
    _remove_all()
    return {"jobs": rows, "s": total_s, "check_s": check_s, "statements_s": statements_s}


def _target(sql: str) -> str:
    found = _TARGET.search(sql)
    return f"{sql.split(maxsplit=1)[0].lower()} {found.group(1) if found else ''}".strip()


def _measure_materialiser(rows: int) -> dict[str, Any]:
    base.load_django()
    from wms.jobs.clusters.materialiser import Turn, advance
    from wms.jobs.clusters.submit import ClusterSubmission
    from wms.jobs.models import Cluster

    text = "executable = /bin/true\narguments = $(Process)\n"
    options = {"eager": False, "max_idle": rows, "max_materialize": rows}
    cluster = _submitted(ClusterSubmission(f"{text}queue {rows}\n", options=options))
    began_s = time.perf_counter()
    while advance(cluster.pk) is Turn.MORE:
        pass
    took_s = time.perf_counter() - began_s
    if Cluster.objects.get(pk=cluster.pk).made_count != rows:
        raise SystemExit("the materialiser has stopped before the last row")
    _remove_all()
    return {"jobs": rows, "jobs_per_s": round(rows / took_s)}


def _seconds(work: Callable[[], Any]) -> float:
    began_s = time.perf_counter()
    work()
    return round(time.perf_counter() - began_s, 2)


def _submitted(submission: Any) -> Any:
    from wms.core.actors import Actor
    from wms.core.models import User
    from wms.jobs.clusters.submit import submit_cluster

    owner = User.objects.get(username="sweeper")
    return submit_cluster(submission, owner=owner, actor=Actor.person(owner)).cluster


def _remove_all() -> None:
    """Nothing of one part waits in the next."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "TRUNCATE jobs_cluster, jobs_job, jobs_jobevent, taskqueues_taskqueue,"
            " taskqueues_waitingjob, taskqueues_tally, taskqueues_ticket, core_inboxentry CASCADE"
        )


if __name__ == "__main__":
    base.main("sweep", measure, __doc__)
