"""Tracer of this process, by OpenTelemetry: spans go to a collector in batches (OTLP over HTTP).

It is made by the first request or task, after the last fork: its thread is not inherited. A
collector that is away costs nothing but the spans, and a line in the log.
"""

from __future__ import annotations

import atexit
import os
import socket
from functools import cache
from threading import Thread
from traceback import format_tb

from django.conf import settings
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import Span, Status, StatusCode, Tracer, format_trace_id
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from portal.config.version import product_version

#: Writes and reads the W3C header `traceparent`.
PROPAGATOR = TraceContextTextMapPropagator()
_TIMEOUT_S = 5.0


def tracer() -> Tracer:
    """The tracer."""
    return _provider().get_tracer("pilotage", product_version())


@cache
def _provider() -> TracerProvider:
    token = settings.TRACES_TOKEN
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    exporter = OTLPSpanExporter(settings.TRACES_URL, headers=headers, timeout=_TIMEOUT_S)
    facts: dict[str, str | int] = {
        "service.name": "pilotage",
        "service.version": product_version(),
        "host.name": socket.gethostname(),
        "process.pid": os.getpid(),
    }
    # It waits for a collector that hangs; `flush` does so for a moment.
    atexit.register(flush)
    provider = TracerProvider(
        shutdown_on_exit=False,
        sampler=ParentBased(TraceIdRatioBased(settings.TRACES_SHARE)),
        resource=Resource.create(facts),
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def flush() -> None:
    """Send what was not sent yet, before the process ends; a few seconds at most."""
    sending = Thread(target=_provider().force_flush, daemon=True)
    sending.start()
    sending.join(_TIMEOUT_S)


def note_error(span: Span, error: BaseException) -> None:
    """Note the kind and the place of an error; its words may have values of a row."""
    kind = type(error)
    facts = {
        "exception.type": f"{kind.__module__}.{kind.__qualname__}",
        "exception.stacktrace": "".join(format_tb(error.__traceback__)),
    }
    span.add_event("exception", facts)
    span.set_status(Status(StatusCode.ERROR))


def trace_id_of(span: Span) -> str:
    """The id of the span's trace, as collectors show it."""
    return format_trace_id(span.get_span_context().trace_id)
