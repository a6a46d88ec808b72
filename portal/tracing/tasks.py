"""Signals of Celery by which a task is a span, of the trace of the request that has sent it."""

from __future__ import annotations

from collections.abc import MutableMapping
from contextvars import Token
from typing import Any

import structlog
from celery.signals import (
    before_task_publish,
    task_failure,
    task_postrun,
    task_prerun,
    worker_process_shutdown,
)
from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import Span, SpanKind, get_current_span, set_span_in_context

from portal.tracing.tracer import PROPAGATOR, flush, note_error, trace_id_of, tracer

#: The header of a message that names the trace.
_HEADER = "traceparent"
#: Of the tasks that this process is at: one.
_running: dict[str, tuple[Span, Token[Context]]] = {}


@before_task_publish.connect
def _name_trace(headers: MutableMapping[str, Any], **_: Any) -> None:
    # Tasks that tasks send begin traces of their own: loops wake each other without end.
    if getattr(get_current_span(), "kind", None) == SpanKind.SERVER:
        PROPAGATOR.inject(headers)


@task_prerun.connect
def _begin(task_id: str, task: Any, **_: Any) -> None:
    named = task.request.get(_HEADER) or (task.request.headers or {}).get(_HEADER)
    parent = PROPAGATOR.extract({_HEADER: named} if named else {}, Context())
    span = tracer().start_span(
        task.name, parent, SpanKind.CONSUMER, {"messaging.message.id": task_id}
    )
    _running[task_id] = (span, attach(set_span_in_context(span)))
    if span.is_recording():
        structlog.contextvars.bind_contextvars(trace_id=trace_id_of(span))


@task_failure.connect
def _record(task_id: str, exception: Exception, **_: Any) -> None:
    if task_id in _running:
        span, _token = _running[task_id]
        note_error(span, exception)


@task_postrun.connect
def _end(task_id: str, **_: Any) -> None:
    structlog.contextvars.unbind_contextvars("trace_id")
    if task_id in _running:
        span, token = _running.pop(task_id)
        detach(token)
        span.end()


@worker_process_shutdown.connect
def _flush(**_: Any) -> None:
    flush()
