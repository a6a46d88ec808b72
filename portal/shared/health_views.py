"""Health endpoints for probes: /health/live (process), /health/ready (what the portal stands on).

The first also tells which portal it is.
"""

from __future__ import annotations

from dataclasses import asdict
from http import HTTPStatus

from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from portal.config.instance import instance_of
from portal.shared.health_checks import look


@never_cache
@require_safe
def live(request: HttpRequest) -> JsonResponse:
    """Answer as long as the process does, and say which portal it is; asks nobody else."""
    return JsonResponse({"status": "ok", "portal": instance_of(settings.SECRET_KEY)})


@never_cache
@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """200 when database, migrations, broker and control loops are well, else 503 with reasons.

    Anybody may ask, so the answer has names, states and ages only; errors are in the log.
    """
    checks = asdict(look(timezone.now()))
    reasons = checks.pop("reasons")
    return JsonResponse(
        {"status": "unavailable" if reasons else "ok", "checks": checks, "reasons": reasons},
        status=HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK,
    )
