"""Benchmark of the portal over HTTP: pilots, a submission, a list, followers, and overload.

The web server, started as `manage.py up` starts it, the client in a process of its own, and the
database share the processors. `pilots` (`benchmarks.api_pilots`) are requests of pilots: claims by
one client and by twelve, heartbeats, whole lives of jobs without payload. `submit_s` is a DAG of
10,000 nodes, `list_ms` a page of a hundred out of a million jobs. `followers`
(`benchmarks.api_followers`) are 200 that wait for events, and `overload`
(`benchmarks.api_overload`) three times as much as can be served: `lost` is work that was accepted
and is not there. `cpu_ms` is what a request costs the web server's processes, whatever else the
machine does. `reference` is a
read of one row and a transaction of one row in the same run, to compare machines by.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import base
from benchmarks.api_followers import followers
from benchmarks.api_overload import overload
from benchmarks.api_pilots import pilots_requests
from benchmarks.claim_load import Meanwhile, keep_house
from benchmarks.claim_load import Size as ClaimSize
from benchmarks.http_load import Server, times_ms
from benchmarks.pilots import prepare
from benchmarks.portal import session_of
from benchmarks.web_server import WebServer, web_server
from portal.cli.client import Client, Part

_OWNER = "bench"
_JOBS = """
INSERT INTO jobs_job ({columns})
SELECT {values} FROM jobs_job AS job CROSS JOIN generate_series(1, %s) AS n WHERE job.id = %s
"""


@dataclass(frozen=True, slots=True)
class Size:
    """Pilots of each part, nodes of the DAG, jobs of the list, followers, seconds of the loads."""

    pilots: int = 1200
    nodes: int = 10_000
    jobs: int = 1_000_000
    repeated: int = 25
    followers: int = 200
    changes: int = 5
    seconds: float = 20.0


QUICK = Size(
    pilots=64, nodes=300, jobs=2_000, repeated=5, followers=200, changes=2, seconds=4.0
)  # fmt: skip


def measure(is_quick: bool) -> dict[str, Any]:
    """Fill, serve, ask; each client is a process of its own."""
    size = QUICK if is_quick else Size()
    furnished = base.in_a_process(_furnish, size)
    with web_server() as web, Meanwhile(ClaimSize(1, 1, 1, 1), keep_house):
        found = {
            "pilots": base.in_a_process(pilots_requests, web, furnished["pilots"][: size.pilots]),
            "submit_s": base.in_a_process(_submit_s, web, furnished["token"], size.nodes),
        }
        jobs = base.in_a_process(_fill, size.jobs)
        found["list_ms"] = base.in_a_process(_list_ms, web, furnished["token"], size.repeated)
        found["followers"] = base.in_a_process(
            followers, web, furnished["token"], size.followers, size.changes
        )
        seen = base.in_a_process(
            overload, web, furnished["token"], furnished["session"],
            furnished["pilots"][size.pilots :], size.seconds,
        )  # fmt: skip
        found["overload"] = base.in_a_process(_judged, seen)
    return {**found, "jobs": jobs, "reference": base.reference_ms()}


def _furnish(size: Size) -> dict[str, Any]:
    """Tables, static files, pilots, jobs, and what a program and a person show."""
    base.load_django()
    from django.core.management import call_command

    from wms.core.actors import Actor
    from wms.core.models import User
    from wms.core.tokens import create_token

    call_command("migrate", verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)
    pilots = prepare(2 * size.pilots, 10 * size.pilots)
    token = create_token(
        User.objects.get(username=_OWNER), name="bench", actor=Actor.system("benchmark")
    )
    found = {"pilots": pilots, "token": token, "session": session_of(_OWNER)}
    base.close_connections()
    return found


def _submit_s(web: WebServer, token: str, nodes: int) -> float:
    """The best of three submissions of a DAG: what it takes where nobody else needs the machine."""
    client = Client(f"http://127.0.0.1:{web.port}", token)
    times_s = []
    with tempfile.TemporaryDirectory(prefix="pilotage-") as folder:
        dag = Path(folder, "wide.dag")
        lines = [f"JOB N{at} true.sub\n" for at in range(nodes)]
        lines += [f"PARENT N{at // 10} CHILD N{at}\n" for at in range(10, nodes)]
        dag.write_text("".join(lines))
        dag.with_name("true.sub").write_text("executable = /bin/true\nqueue\n")
        parts = [Part("dag", dag), Part("file", dag.with_name("true.sub"))]
        for number in range(3):
            began_s = time.perf_counter()
            client.post_files("dags/", parts, key=f"wide-{number}")
            times_s.append(time.perf_counter() - began_s)
    return round(min(times_s), 2)


def _fill(jobs: int) -> int:
    """As many jobs of the past as wanted, beside those that are there; how many there are."""
    base.load_django()
    from django.db import connection

    from wms.jobs.models import Job

    pattern = Job.objects.filter(state="done").order_by("pk")[0]
    values = {
        field.column: f"job.{field.column}"
        for field in Job._meta.concrete_fields
        if field.name != "id"
    }
    values["name"] = "'past' || n"
    values["state"] = "CASE WHEN n %% 20 = 0 THEN 'failed' ELSE 'done' END"
    values["created_at"] = values["state_since"] = "job.created_at - n * interval '2 seconds'"
    statement = _JOBS.format(columns=", ".join(values), values=", ".join(values.values()))
    with connection.cursor() as cursor:
        cursor.execute(statement, [max(0, jobs - Job.objects.count()), pattern.pk])
        cursor.execute("VACUUM ANALYZE jobs_job")
    count = Job.objects.count()
    base.close_connections()
    return count


def _list_ms(web: WebServer, token: str, repeated: int) -> dict[str, Any]:
    """The list by a program: the newest jobs, those of a state, and a page from the middle."""
    server = Server(web.port, f"Authorization: Bearer {token}\r\n")

    async def ask(path: str) -> dict[str, float]:
        await server.get(path)
        began_s = web.cpu_s()
        answers = [await server.get(path) for _ in range(repeated)]
        if any(len(answer.json()["results"]) != 100 for answer in answers):
            raise SystemExit(f"{path} has not a hundred jobs")
        cpu_ms = 1000 * (web.cpu_s() - began_s) / repeated
        return {**times_ms(answers), "cpu_ms": round(cpu_ms, 1)}

    paths = ("/api/v1/jobs/", "/api/v1/jobs/?state=done")
    return {path: asyncio.run(ask(path)) for path in paths}


def _judged(seen: dict[str, Any]) -> dict[str, Any]:
    """Figures seen, with the number of accepted works that are not there."""
    base.load_django()
    from wms.jobs.models import Cluster, Job

    clusters, ended = seen.pop("clusters"), seen.pop("ended")
    stored = Cluster.objects.filter(pk__in=clusters).count()
    done = Job.objects.filter(pk__in=ended, state="done").count()
    base.close_connections()
    accepted = len(clusters) + len(ended)
    return {**seen, "accepted": accepted, "lost": accepted - stored - done}


if __name__ == "__main__":
    base.main("api", measure, __doc__)
