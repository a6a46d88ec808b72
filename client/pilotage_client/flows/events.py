"""Flows that follow the portal's events, and wait by them for DAGs, clusters and jobs to end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from ..errors import InvalidInput, NoAnswer, NotFound, TimedOut, decoded
from ..model import Cluster, Dag, EventBatch, Job
from ..wire import Flow, Pause, Request, query_of
from .asking import ask
from .objects import cluster, dag, job

#: The portal lets one wait for 30 s; some proxies give up then.
_WAIT_S = 25.0
#: Between two looks at what changes without a pause.
_REST_S = 1.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 10.0
#: So often in a row a portal may be away while one waits, each time for some 16 seconds.
_SILENCES = 20
T = TypeVar("T")
E = TypeVar("E", Dag, Cluster, Job)


def events(after: str = "", *, wait_s: float = 0, **filters: object) -> Flow[EventBatch]:
    """Events since a cursor; without one, a cursor behind all that has happened.

    Filters are those of the API: `kind`, `dag`, `cluster`, `label`, ...
    """
    return (yield from _asked(after, wait_s, filters))[0]


def next_events(after: str, **filters: object) -> Flow[EventBatch]:
    """The next events after a cursor, waited for as long as it takes; not past 25 seconds a time.

    A portal that is away for some minutes is waited for.
    """
    batch = yield from patient(lambda: events(after, wait_s=_WAIT_S, **filters))
    if batch.again_s:
        yield Pause(batch.again_s)
    return batch


def wait_for_dag(
    dag_id: int,
    *,
    timeout_s: float | None = None,
    on_change: Callable[[Dag], None] | None = None,
) -> Flow[Dag]:
    """The DAG when it has ended. Raises TimedOut."""
    news = News({"dag": dag_id, "kind": None if on_change else "dag"})
    return (yield from _wait(lambda: dag(dag_id), news, f"DAG {dag_id}", timeout_s, on_change))


def wait_for_cluster(
    cluster_id: int,
    *,
    timeout_s: float | None = None,
    on_change: Callable[[Cluster], None] | None = None,
) -> Flow[Cluster]:
    """The cluster when all of its jobs have ended. Raises TimedOut."""
    name = f"Cluster {cluster_id}"
    news = News({"cluster": cluster_id, "kind": None if on_change else "cluster"})
    return (yield from _wait(lambda: cluster(cluster_id), news, name, timeout_s, on_change))


def wait_for_job(
    job_id: int,
    *,
    timeout_s: float | None = None,
    on_change: Callable[[Job], None] | None = None,
) -> Flow[Job]:
    """The job when it has ended. Raises TimedOut."""
    news = News({"job": job_id})
    return (yield from _wait(lambda: job(job_id), news, f"Job {job_id}", timeout_s, on_change))


class News:
    """Signs that it is time to look again: events of some objects, or that a while is over.

    Of some changes there are no events, and a long transaction holds all of them up: so one looks
    now and then anyway; without filters by time alone.
    """

    def __init__(self, filters: Mapping[str, object] | None) -> None:
        self._filters = filters or {}
        self._cursor, self._has_stream = "", filters is not None
        self._rest_s, self._pause_s = 0.0, _FIRST_PAUSE_S

    def begin(self) -> Flow[None]:
        """Hear of what happens from now on; to be called before the first look."""
        if not self._has_stream:
            return
        try:
            self._cursor = (yield from events()).cursor
        except NotFound:
            # The portal is too old to have the stream.
            self._has_stream = False

    def wait(self, at_most_s: float | None) -> Flow[float]:
        """Wait for news; the seconds that it took."""
        limit_s = _WAIT_S if at_most_s is None else min(_WAIT_S, at_most_s)
        rest_s = min(self._rest_s, limit_s)
        if rest_s:
            yield Pause(rest_s)
        left_s = limit_s - rest_s
        if not self._has_stream or left_s < 1:
            return rest_s + (yield from self._pause(left_s))
        try:
            batch, took_s = yield from _asked(self._cursor, left_s, self._filters)
        except InvalidInput:
            # The cursor is too old, as after a night of this host.
            yield from patient(self.begin)
            return rest_s + (yield from self._pause(left_s))
        except NoAnswer:
            return rest_s + (yield from self._pause(left_s, _LONGEST_PAUSE_S))
        self._cursor = batch.cursor
        if batch.events:
            self._rest_s, self._pause_s = _REST_S, _FIRST_PAUSE_S
            return rest_s + took_s
        self._rest_s = 0.0
        if batch.again_s or took_s < 1:
            # Nobody could be let wait.
            took_s += yield from self._pause(max(0.0, left_s - took_s), batch.again_s)
        return rest_s + took_s

    def _pause(self, limit_s: float, least_s: float = 0.0) -> Flow[float]:
        pause_s = min(max(self._pause_s, least_s), limit_s)
        self._pause_s = min(1.5 * max(self._pause_s, least_s), _LONGEST_PAUSE_S)
        yield Pause(pause_s)
        return pause_s


def patient(look: Callable[[], Flow[T]]) -> Flow[T]:
    """Result of a flow, also when the portal is away for some minutes. Raises NoAnswer."""
    for _ in range(_SILENCES):
        try:
            return (yield from look())
        except NoAnswer:
            yield Pause(_LONGEST_PAUSE_S)
    return (yield from look())


def _asked(
    after: str, wait_s: float, filters: Mapping[str, object]
) -> Flow[tuple[EventBatch, float]]:
    """The next events, and the seconds that the answer took."""
    given = {"after": after or None, "wait": int(wait_s) or None, **filters}
    answer = yield from ask(Request("GET", "events/", query_of(given)))
    return EventBatch.of(decoded(answer)), answer.took_s


def _wait(
    look: Callable[[], Flow[E]],
    news: News,
    name: str,
    timeout_s: float | None,
    on_change: Callable[[E], None] | None,
) -> Flow[E]:
    waited_s = 0.0
    before: E | None = None
    yield from patient(news.begin)
    while True:
        now: E = yield from patient(look)
        if on_change is not None and (before is None or now.raw != before.raw):
            on_change(now)
        before = now
        if now.has_ended:
            return now
        if timeout_s is not None and waited_s >= timeout_s:
            raise TimedOut(f"{name} has not ended within {timeout_s:g} s.")
        # The time that is left, so that one does not wait for longer than was asked.
        waited_s += yield from news.wait(None if timeout_s is None else timeout_s - waited_s)
