"""Tracer of this process, by OpenTelemetry: spans go to a collector in batches (OTLP over HTTP).

It is made by the first request or task, after the last fork: its thread is not inherited. A
collector that is away costs nothing but the spans, and a line in the log.
"""

from __future__ import annotations

import os
import socket
from functools import cache

from django.conf import settings
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import Span, Tracer, format_trace_id
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
    provider = TracerProvider(
        sampler=ParentBased(TraceIdRatioBased(settings.TRACES_SHARE)),
        resource=Resource.create(facts),
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def flush() -> None:
    """Send what was not sent yet: before the process ends without a word."""
    _provider().force_flush(int(_TIMEOUT_S * 1000))


def trace_id_of(span: Span) -> str:
    """The id of the span's trace, as collectors show it."""
    return format_trace_id(span.get_span_context().trace_id)
