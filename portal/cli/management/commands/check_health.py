"""Health check of one of the portal's programs, as a command: exit code 0 or 1."""

from __future__ import annotations

import socket
from datetime import timedelta
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from celery import current_app
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import Max
from django.utils import timezone

from wms.core.models import ControlLoop

#: All control loops together are started every few seconds.
BEAT_SILENCE_LIMIT = timedelta(seconds=60)


class Command(BaseCommand):
    help = "Check that the web server, this host's workers, or beat works."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "program",
            choices=("web", "worker", "engine", "scripts", "placement", "elements", "beat"),
        )
        parser.add_argument("--port", type=int, default=8000, help="of the web server")

    def handle(self, *args: Any, program: str, port: int, **options: Any) -> None:
        checks = {"web": lambda: _web(port), "beat": _beat}
        trouble = checks.get(program, lambda: _worker(program))()
        if trouble:
            raise CommandError(trouble)


def _web(port: int) -> str:
    try:
        urlopen(f"http://127.0.0.1:{port}/health/live", timeout=5).close()
    except HTTPError as error:
        # A refused host name is an answer as well: the server lives.
        return f"the web server answers {error.code}" if error.code >= 500 else ""
    except (URLError, TimeoutError) as error:
        return f"the web server does not answer: {error}"
    return ""


def _worker(program: str) -> str:
    name = f"{program}@{socket.gethostname()}"
    answers = current_app.control.ping(destination=[name], timeout=5)
    return "" if answers else f"{name} does not answer"


def _beat() -> str:
    last = ControlLoop.objects.aggregate(last=Max("started_at"))["last"]
    if last is None or timezone.now() - last > BEAT_SILENCE_LIMIT:
        return f"no control loop was started lately (last: {last})"
    return ""
