"""Traces of a process whose settings name a collector: requests, tasks, statements."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from portal.config.traces import check_traces

#: What a web server and a worker do, in one process: a request, a message, the task of it.
PROGRAM = """
import django
django.setup()
from django.test import Client
from kombu.simple import SimpleQueue
from opentelemetry.trace import SpanKind
from portal.celery import app
from portal.tracing.tracer import tracer
from wms.placement.tasks import PLACEMENT

client = Client(headers={"host": "127.0.0.1", "traceparent": f"00-{'a' * 32}-{'b' * 16}-01"})
assert client.get("/health/ready?code=secret").status_code in (200, 503)
assert client.get("/dags/7/").status_code == 302
with tracer().start_as_current_span("caller", kind=SpanKind.SERVER):
    app.send_task(PLACEMENT.task, queue="traced")
with app.connection_for_read() as there, SimpleQueue(there, "traced") as queue:
    message = queue.get(timeout=10)
    message.ack()
app.tasks[PLACEMENT.task].apply(headers=dict(message.headers)).get()
"""


@pytest.fixture
def collector() -> Iterator[tuple[str, list[ExportTraceServiceRequest], list[str]]]:
    """A collector: its address, what it is sent, and the credentials of that."""
    batches: list[ExportTraceServiceRequest] = []
    credentials: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            batches.append(ExportTraceServiceRequest.FromString(self.rfile.read(length)))
            credentials.append(self.headers["Authorization"])
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=[0.01])
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1/traces", batches, credentials
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.process
@pytest.mark.django_db
def test_requests_tasks_and_their_statements_are_spans_without_values(collector) -> None:
    address, batches, credentials = collector
    database = urlsplit(os.environ["DATABASE_URL"])._replace(
        path=f"/{connection.settings_dict['NAME']}"
    )
    environment = os.environ | {
        "DATABASE_URL": database.geturl(),
        "PILOTAGE_TRACES_URL": address,
        "PILOTAGE_TRACES_TOKEN": "hush",
        "DJANGO_SETTINGS_MODULE": "portal.settings",
    }

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, cwd=settings.BASE_DIR,
        capture_output=True, text=True,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    spans = [
        span for batch in batches for each in batch.resource_spans for scope in each.scope_spans
        for span in scope.spans
    ]  # fmt: skip
    by_name = {span.name: span for span in spans}
    ready, dag = by_name["GET health-ready"], by_name["GET web:dag"]
    facts = {each.key: each.value.string_value for each in dag.attributes}
    task, caller = by_name["wms.placement.look_after"], by_name["caller"]
    statements = [span for span in spans if span.name == "SELECT"]
    assert set(credentials) == {"Bearer hush"}
    assert ready.trace_id.hex() != "a" * 32
    assert b"secret" not in b"".join(batch.SerializeToString() for batch in batches)
    assert (facts["http.route"], facts["pilotage.dag"]) == ("web:dag", "7")
    assert (task.trace_id, task.parent_span_id) == (caller.trace_id, caller.span_id)
    assert {span.parent_span_id for span in statements} >= {ready.span_id, task.span_id}


@pytest.mark.parametrize(
    ("url", "share"),
    [
        ("collector:4318", 1),
        ("grpc://collector", 1),
        ("http://[x", 1),
        ("http://c", 2),
        ("http://c", float("nan")),
    ],
)
def test_settings_of_no_use_stop_the_start(url: str, share: float) -> None:
    with pytest.raises(ImproperlyConfigured):
        check_traces(url, share)
