"""Spans of SQL statements within traced requests and tasks; their parameters are not in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.dispatch import receiver
from opentelemetry.trace import SpanKind, get_current_span

from portal.tracing.tracer import note_error, tracer

_MOST_CHARACTERS: Final = 4000


@receiver(connection_created)
def _trace_statements(connection: BaseDatabaseWrapper, **_: Any) -> None:
    if traced not in connection.execute_wrappers:
        connection.execute_wrappers.append(traced)


def traced(
    execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]
) -> Any:
    """Execute a statement, in a span where the current one is recorded."""
    if not get_current_span().is_recording():
        return execute(sql, params, many, context)
    text = str(sql)
    facts = {"db.system.name": "postgresql", "db.query.text": text[:_MOST_CHARACTERS]}
    words = text.split(None, 1)
    name = words[0].upper() if words else "SQL"
    with tracer().start_as_current_span(
        name, kind=SpanKind.CLIENT, attributes=facts,
        record_exception=False, set_status_on_exception=False,
    ) as span:  # fmt: skip
        try:
            return execute(sql, params, many, context)
        except Exception as error:
            note_error(span, error)
            raise
