"""Logging configuration (structlog and Django): one line per event, facts as keys, to stderr.

A line is logfmt, or a JSON object.
"""

from __future__ import annotations

from typing import Any

import structlog

_SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]
_ORDER = ["timestamp", "level", "logger", "event"]


def _without_trace_of_refusals(
    _logger: object, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Django warns of a refused request with the trace of the refusal, which tells nothing more."""
    if event.get("level") == "warning" and event.get("logger") == "django.request":
        event.pop("exc_info", None)
    return event


def configure(form: str = "logfmt") -> dict[str, Any]:
    """Set structlog up and return Django's LOGGING: everything goes to standard error.

    `form` is `logfmt`, or `json`: one object per line, whatever a value contains.
    """
    renderer: Any = structlog.processors.LogfmtRenderer(key_order=_ORDER, drop_missing=True)
    if form == "json":
        renderer = structlog.processors.JSONRenderer(default=str)
    structlog.configure(
        processors=[*_SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "lines": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": _SHARED,
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    _without_trace_of_refusals,
                    structlog.processors.format_exc_info,
                    renderer,
                ],
            }
        },
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "lines"}},
        "root": {"handlers": ["console"], "level": "INFO"},
        "loggers": {
            # One line per task and beat tick would bury what matters.
            "celery.beat": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
            "celery.worker.strategy": {"level": "WARNING"},
        },
    }
