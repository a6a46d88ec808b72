"""Announcements of new waiting jobs over Redis (publish/subscribe), for held claims.

Redis keeps none of the messages: one that is lost costs a pilot the time until it asks again, and
nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache

import redis
import structlog
from django.conf import settings
from redis.exceptions import RedisError

from wms.core.idling import note_activity

log = structlog.get_logger(__name__)
_CHANNEL = "pilotage:arrivals"
_ANSWER_TIMEOUT_S = 1.0
#: A connection that died without a word is found out after so long.
_SILENCE_S = 15.0
_PAUSE_S = 1.0


def publish(jobs: int) -> None:
    """Publish the number of jobs that have begun to wait. A broker that is away is logged."""
    note_activity()
    try:
        _sender().publish(_CHANNEL, jobs)
    except (RedisError, OSError) as error:
        log.warning("arrivals_not_told", error=str(error))


@cache
def _sender() -> redis.Redis:
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=_ANSWER_TIMEOUT_S,
        socket_connect_timeout=_ANSWER_TIMEOUT_S,
    )


class Listener:
    """A thread that receives the messages and hands on their numbers of jobs.

    `on_lost` is called whenever the connection is lost.
    """

    def __init__(self, on_jobs: Callable[[int], None], on_lost: Callable[[], None]) -> None:
        self._on_jobs, self._on_lost = on_jobs, on_lost
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.hears = False

    def start(self) -> None:
        """Begin, unless that was done; the thread ends with the process."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="arrivals", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        pause = threading.Event()
        is_told = False
        while True:
            try:
                self._listen()
            except (RedisError, OSError, ValueError) as error:
                if self.hears or not is_told:
                    log.warning("arrivals_not_heard", error=str(error))
                is_told = True
            self.hears = False
            self._on_lost()
            pause.wait(_PAUSE_S)

    def _listen(self) -> None:
        client = redis.Redis.from_url(
            settings.REDIS_URL,
            socket_timeout=2 * _SILENCE_S,
            socket_connect_timeout=_ANSWER_TIMEOUT_S,
            health_check_interval=_SILENCE_S,
        )
        with client, client.pubsub() as pubsub:  # type: ignore[no-untyped-call]
            pubsub.psubscribe(_CHANNEL)
            while True:
                message = pubsub.get_message(timeout=_SILENCE_S)
                if message is None:
                    continue
                if message["type"] == "psubscribe":
                    self.hears = True
                elif message["type"] == "pmessage":
                    self._on_jobs(int(message["data"]))
