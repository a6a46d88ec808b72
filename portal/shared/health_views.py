"""Health endpoints for probes: /health/live (process), /health/ready (database, broker, loops).

The first also tells which portal it is.
"""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Any

import redis
import structlog
from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from portal.config.instance import instance_of
from wms.core.selectors import LoopHealth, LoopStatus, loop_statuses

log = structlog.get_logger(__name__)
_BROKER_TIMEOUT_S = 1.5


@never_cache
@require_safe
def live(request: HttpRequest) -> JsonResponse:
    """Answer as long as the process does, and say which portal it is; asks nobody else."""
    return JsonResponse({"status": "ok", "portal": instance_of(settings.SECRET_KEY)})


@never_cache
@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """200 when database, broker and control loops do their work, else 503.

    Anybody may ask, so the answer has names, states and ages only; the reasons are in the log.
    """
    now = timezone.now()
    database, loops = _database(now)
    checks = {"database": database, "broker": _broker(), "loops": loops}
    # A slow loop has its first turn later than the others; that is no trouble while they run.
    states = {facts["status"] for facts in loops.values()}
    do_loops_run = LoopHealth.OK in states and states <= {LoopHealth.OK, LoopHealth.NEVER}
    is_ready = database == checks["broker"] == "ok" and do_loops_run
    return JsonResponse(
        {"status": "ok" if is_ready else "unavailable", "checks": checks},
        status=HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE,
    )


def _database(now: datetime) -> tuple[str, dict[str, Any]]:
    # A connection that is kept may wait for an answer for ever; a new one has a time limit.
    probe = connection.copy()
    try:
        probe.ensure_connection()
        return "ok", {status.name: _loop(status, now) for status in loop_statuses(now=now)}
    except DatabaseError as error:
        log.warning("database_unreachable", error=str(error))
        return "unavailable", {}
    finally:
        probe.close()


def _loop(status: LoopStatus, now: datetime) -> dict[str, Any]:
    age_s = None if status.started_at is None else (now - status.started_at).total_seconds()
    return {"status": status.health, "age_s": None if age_s is None else round(age_s, 1)}


def _broker() -> str:
    client = redis.Redis.from_url(
        settings.REDIS_URL,
        socket_connect_timeout=_BROKER_TIMEOUT_S,
        socket_timeout=_BROKER_TIMEOUT_S,
    )
    try:
        client.ping()
    except redis.RedisError as error:
        log.warning("broker_unreachable", error=str(error))
        return "unavailable"
    finally:
        client.close()
    return "ok"
