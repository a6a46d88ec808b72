"""Benchmark of the portal's pages over a million jobs: time to the first byte, queries, and size.

Charts and exports are among the pages. It loads the example (`examples.load`) into servers of its
own, starts the web server as `manage.py up` does, and asks for each page as a shifter who is logged
in. `first_byte_ms` is the median of some requests after others have warmed the processes; `cold_ms`
that of the very first. `kb_compressed` is the page and its own assets as they travel, without the
chart library. Queries are all statements that PostgreSQL carries out for the page, prepared ones
included. `sampling_s` is what one cycle of the sampler takes with 1,000 series.
"""

from __future__ import annotations

import gzip
import http.client
import os
import re
import statistics
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from benchmarks import base
from benchmarks.web_server import web_server

_PASSWORD = "a password for measuring"
_JOBS, _QUICK_JOBS = 1_000_000, 3_000
_SERIES = 1_000
#: So many requests of each page before those that count, and of those; with --quick fewer.
_REPEATED, _QUICKLY_REPEATED = (4, 9), (0, 1)
_SAMPLED = 5
_ASSET = re.compile(r'<(?:link|script)\b[^>]*?\b(?:href|src)="(/static/[^"]+)"')
_CHARTS = "plotly"
_HEADERS = {"Accept-Encoding": "gzip", "Accept": "text/html"}


_ENTRIES = """
INSERT INTO core_auditentry
    (actor, action, target, object_kind, object_key, reason, request_id, facts, created_at)
SELECT
    CASE WHEN random() < 0.2 THEN 'amelie' ELSE 'user' || n %% 200 END,
    (ARRAY['hold', 'release', 'kill', 'change', 'rematch'])[1 + floor(random() * 5)::int],
    object.kind || ' ' || object.key, object.kind, object.key::text,
    (ARRAY['disk full', 'looks stuck', 'asked by its owner'])[1 + n %% 3] || ' ' || n %% 1000,
    md5((n / 10)::text), '{"state": ["running", "held"]}'::jsonb,
    now() - n * interval '180 days' / %s
FROM generate_series(1, %s) AS n, LATERAL (
    SELECT (ARRAY['dag', 'job', 'pilot'])[1 + floor(random() * 3)::int] AS kind, n %% 2000 AS key
) AS object ORDER BY n DESC
"""


def measure(is_quick: bool) -> dict[str, Any]:
    """Load, serve, ask, sample."""
    jobs = _QUICK_JOBS if is_quick else _JOBS
    session, paths = base.in_a_process(_load, jobs)
    # First what a browser sees: counting queries would warm what the pages need.
    with web_server() as server:
        repeated = _QUICKLY_REPEATED if is_quick else _REPEATED
        timed = _measure_pages(server.port, session, paths, repeated)
    queries = base.in_a_process(_count_queries, session, paths)
    return {
        "pages": [
            {
                "path": path,
                "first_byte_ms": page.first_byte_ms,
                "queries": queries[path],
                "kb_compressed": page.kb_compressed,
            }
            for path, page in timed.items()
        ],
        "sampling_s": base.in_a_process(_sample),
        "cold_ms": {path: page.cold_ms for path, page in timed.items()},
        "jobs": jobs,
        "load_average": [round(each, 1) for each in os.getloadavg()],
    }


def _load(jobs: int) -> tuple[str, list[str]]:
    """Fill the database; the key of a session of a shifter, and the pages to ask for."""
    base.load_django()
    from django.core.management import call_command
    from django.utils import timezone

    from examples.load.accounts_and_sites import SHIFTER
    from examples.load.loading import load
    from examples.load.scale import Scale

    call_command("migrate", verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)
    load(Scale.of_jobs(jobs), password=_PASSWORD, now=timezone.now())
    _audit(jobs)
    found = session_of(SHIFTER), [*_lists(), *_objects(), *_histories()]
    base.close_connections()
    return found


def _audit(entries: int) -> None:
    """As many entries of the audit trail, over half a year."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(_ENTRIES, [entries, entries])
        cursor.execute("ANALYZE core_auditentry")


def session_of(username: str) -> str:
    """The key of a session in which this user is logged in."""
    from django.conf import settings
    from django.test import Client

    from wms.core.models import User

    client = Client()
    client.force_login(User.objects.get(username=username))
    return client.cookies[settings.SESSION_COOKIE_NAME].value


def _lists() -> Iterator[str]:
    """The lists with the filters that people use."""
    from django.urls import reverse

    from wms.jobs.models import Job
    from wms.sites.models import Site

    site = Site.objects.order_by("pk")[0].name
    job = Job.objects.order_by("-pk")[1000]
    yield "/"
    for filters in (
        "", "state=running", "state=failed", "state=done,failed", "owner=amelie",
        "owner=amelie&state=failed", f"site={site}", "reason=exit code", "reason=no+such+reason",
        "attempts=2..", f"name={job.name[-9:]}", "name=no+such+name", f"dag={job.topic_key}",
        "created=24h", "since=6h&state=!done", "failure=1", f"before={job.pk // 2}",
    ):  # fmt: skip
        yield f"/jobs/?{filters}".rstrip("?").replace(" ", "+")
    for filters in ("", "state=running", "owner=amelie", f"site={site}", "attention=true"):
        yield f"/dags/?{filters}".rstrip("?")
    for filters in ("", "state=failed", f"site={site}", "reason=disk", "host=node001"):
        yield f"/pilots/?{filters}".rstrip("?")
    yield from ("/sites/", "/sites/?standing=downtime", "/errors/")
    for filters in ("", "actor=amelie", "action=hold", "object=dag:12", "reason=no+such"):
        yield f"/audit/?{filters}".rstrip("?")
    yield from map(reverse, ("web:downtimes", "web:placements", "web:task-queues"))


def _objects() -> Iterator[str]:
    """One of each, and the tabs of the largest DAG."""
    from django.urls import reverse

    from wms.dags.models import Dag, Node
    from wms.failures.models import FailureGroup
    from wms.jobs.models import Job
    from wms.pilots.models import Pilot
    from wms.sites.models import Site
    from wms.taskqueues.models import TaskQueue

    for state in ("done", "failed", "waiting"):
        yield f"/jobs/{Job.objects.filter(state=state).order_by('-pk')[0].pk}/"
    large = Dag.objects.order_by("-node_count")[0].pk
    usual = Dag.objects.filter(node_count__gt=50, state="running").order_by("node_count")[0].pk
    for dag in (usual, large):
        yield f"/dags/{dag}/"
        for tab in ("graph", "levels", "nodes", "timeline", "events"):
            yield f"/dags/{dag}/?tab={tab}"
    yield from (f"/dags/{large}/graph/places", f"/dags/{large}/graph/states")
    node = Node.objects.filter(dag=large, state="done").order_by("pk")[0].pk
    yield f"/dags/{large}/nodes/{node}/"
    yield f"/pilots/{Pilot.objects.filter(state='running').order_by('-pk')[0].pk}/"
    site = Site.objects.order_by("pk")[0]
    yield from (f"/sites/{site.name}/", f"/sites/{site.name}/queues/long/")
    yield reverse("web:task-queue", args=[TaskQueue.objects.order_by("pk")[0].pk])
    yield f"/errors/{FailureGroup.objects.order_by('-total')[0].pk}/"


def _histories() -> Iterator[str]:
    """Single panes over ranges of all lengths, and beginnings of exports."""
    from wms.sites.models import Site

    site = Site.objects.order_by("pk")[0].name
    yield "/history/"
    for pane in ("jobs", "pilots", "throughput", "waiting"):
        yield f"/history/{pane}.json?range=1d"
    yield f"/history/pressure.json?range=1w&site={site}"
    yield "/history/jobs.json?range=1m"
    yield "/history/jobs.json?range=1y"
    yield "/api/v1/history/panes/jobs.figure.json?range=1m"
    yield "/api/v1/history/panes/jobs.html?range=1m"
    yield "/api/v1/lists/jobs.csv?state=failed"
    yield "/api/v1/lists/jobs.csv"


def _count_queries(session: str, paths: list[str]) -> dict[str, int]:
    """How many statements the server carries out for each page, in a process without a web server.

    The second request counts: what a process reads once in its life has been read then.
    """
    base.load_django()
    from django.conf import settings
    from django.test import Client

    from tests.statements import carried_out_by

    client = Client(HTTP_HOST="127.0.0.1")
    client.cookies[settings.SESSION_COOKIE_NAME] = session
    counts = {}
    for path in paths:
        _read_in_process(client, path)
        counts[path] = len(carried_out_by(lambda path=path: _read_in_process(client, path)))
    base.close_connections()
    return counts


def _read_in_process(client: Any, path: str) -> None:
    """The beginning of an answer: exports are endless."""
    response = client.get(path)
    if response.status_code != 200:
        raise SystemExit(f"{path} is answered with {response.status_code}")
    if response.streaming:
        next(iter(response.streaming_content))
    response.close()


@dataclass(frozen=True, slots=True)
class _Page:
    """What was measured of one page."""

    first_byte_ms: float
    cold_ms: float
    kb_compressed: float


def _measure_pages(
    port: int, session: str, paths: list[str], repeated: tuple[int, int]
) -> dict[str, _Page]:
    warming, measured = repeated
    headers = {**_HEADERS, "Cookie": f"sessionid={session}"}
    pages: dict[str, _Page] = {}
    assets: dict[str, int] = {}
    for path in paths:
        first_s, body = _get(port, path, headers)
        for _ in range(warming):
            _get(port, path, headers)
        times = [_get(port, path, headers)[0] for _ in range(measured)]
        own = set(_ASSET.findall(_plain(body).decode(errors="replace")))
        for asset in own - set(assets):
            assets[asset] = 0 if _CHARTS in asset else len(_packed(_get(port, asset, headers)[1]))
        pages[path] = _Page(
            first_byte_ms=round(1000 * statistics.median(times), 1),
            cold_ms=round(1000 * first_s, 1),
            kb_compressed=round((len(_packed(body)) + sum(assets[each] for each in own)) / 1024, 1),
        )
    return pages


def _get(port: int, path: str, headers: Mapping[str, str]) -> tuple[float, bytes]:
    """The seconds to the first byte, and the content as it came; of exports the beginning."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    began_s = time.perf_counter()
    connection.request("GET", path, headers=dict(headers))
    response = connection.getresponse()
    first = response.read(1)
    took_s = time.perf_counter() - began_s
    if response.status != 200:
        raise SystemExit(f"{path} is answered with {response.status}")
    body = first + response.read(2**20 if "/lists/" in path else None)
    connection.close()
    return took_s, body


def _plain(body: bytes) -> bytes:
    return gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body


def _packed(body: bytes) -> bytes:
    """As it travels: compressed, by us or by the server in front."""
    return body if body[:2] == b"\x1f\x8b" else gzip.compress(body, 6)


def _sample() -> float:
    """The median of some cycles of the sampler, with as many series as wanted."""
    base.load_django()
    from django.utils import timezone

    from wms.history import sampling
    from wms.history.operations import store_samples

    now, times = timezone.now(), []
    for number in range(1, _SAMPLED + 1):
        at = now + timedelta(seconds=10 * number)
        began_s = time.perf_counter()
        series = sampling.run_cycle(at)["series"]
        more = {f"benchmark.{each}": float(each) for each in range(_SERIES - series)}
        if more:
            store_samples(more, now=at)
        times.append(time.perf_counter() - began_s)
    base.close_connections()
    return round(statistics.median(times), 3)


if __name__ == "__main__":
    base.main("portal", measure, __doc__)
