from __future__ import annotations

import contextlib
import itertools
import os
import re
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
import time_machine
from celery import current_app
from celery.signals import before_task_publish
from django.core.cache import cache
from django.db import connections

from portal.embedded.temporary import running_redis
from wms.core import idling, loops
from wms.core.database.locks import advisory_lock
from wms.core.models import ControlLoop
from wms.dags.lifecycle import ADVANCE_TASK

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def loop(run_cycle: Any) -> loops.Loop:
    return loops.Loop("test-loop", "tests.none", period_s=5, run_cycle=run_cycle)


@pytest.mark.django_db
def test_first_turns_are_awaited_once_and_say_nothing_of_loops_that_ran() -> None:
    ControlLoop.objects.create(name="director", period_s=2, started_at=NOW, known_since=NOW)

    loops.await_first_turns()
    rows = {row.name: row for row in ControlLoop.objects.all()}
    loops.await_first_turns()

    assert set(rows) == set(loops.known_loops())
    assert (rows["director"].started_at, rows["director"].known_since) == (NOW, NOW)
    assert rows["negotiator"].started_at is None
    again = {row.name: row.known_since for row in ControlLoop.objects.all()}
    assert again == {name: row.known_since for name, row in rows.items()}


def in_thread(work: Any) -> Any:
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(work())
        finally:
            connections["default"].close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.django_db(transaction=True)
def test_a_loop_runs_once_at_a_time() -> None:
    def cycle(_now: datetime) -> dict[str, Any]:
        return {"inner": in_thread(lambda: loops.run(loop(lambda _: {})))}

    assert loops.run(loop(cycle))
    assert ControlLoop.objects.get(name="test-loop").report == {"inner": False}
    assert in_thread(lambda: loops.run(loop(lambda _: {})))


@pytest.mark.django_db
def test_a_loop_that_rests_pauses_as_long_as_its_cycle_took() -> None:
    resting = replace(loop(lambda _: {}), rests=True)
    with time_machine.travel(NOW, tick=False):
        assert loops.run(resting)
    ControlLoop.objects.update(duration_s=4.0)

    for after_s, has_run in ((7.9, False), (8.0, True)):
        with time_machine.travel(NOW + timedelta(seconds=after_s), tick=False):
            assert loops.run(resting) is has_run


@pytest.mark.django_db
def test_a_loop_that_fails_tells_so_and_keeps_its_last_report() -> None:
    loops.run(loop(lambda _: {"done": 3}))

    def broken(_now: datetime) -> dict[str, Any]:
        raise RuntimeError("no more space")

    with pytest.raises(RuntimeError):
        loops.run(loop(broken))

    row = ControlLoop.objects.get(name="test-loop")
    assert (row.report, row.error) == ({"done": 3}, "RuntimeError: no more space")
    loops.run(loop(lambda _: {"done": 4}))
    row.refresh_from_db()
    assert (row.report, row.error) == ({"done": 4}, "")
    assert row.failed_at is not None


@pytest.mark.process
@pytest.mark.django_db(transaction=True)
def test_a_lock_ends_with_the_process_that_holds_it() -> None:
    program = (
        "import django, os; django.setup()\n"
        "from wms.core.database.locks import advisory_lock\n"
        "from django.db import connection\n"
        f"connection.settings_dict['NAME'] = {connections['default'].settings_dict['NAME']!r}\n"
        "with advisory_lock('x') as held:\n"
        "    print(held, flush=True)\n"
        "    input()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=_environment(),
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        with advisory_lock("x") as is_held:
            assert not is_held
        other.kill()
        other.wait()

    _wait_until_free()


def _environment() -> dict[str, str]:
    return {**os.environ, "DJANGO_SETTINGS_MODULE": "portal.settings"}


def _wait_until_free() -> None:
    """The server notices the dead client a moment later."""
    for _ in range(1000):
        with advisory_lock("x") as is_held:
            if is_held:
                return
    pytest.fail("the lock of the dead process is still held")


def test_every_loop_has_a_task_of_its_name_and_a_time_limit() -> None:
    current_app.loader.import_default_modules()

    assert {"negotiator", "dag-engine", "director", "pilot-monitor", "sampler"} <= set(loops.LOOPS)
    for each in loops.LOOPS.values():
        task = current_app.tasks[each.task]
        assert task.time_limit, each.name
        assert task.soft_time_limit < task.time_limit


def test_the_document_tells_of_each_loop_how_many_may_run_at_a_time() -> None:
    text = (Path(__file__).parents[3] / "docs/architecture.md").read_text(encoding="utf-8")
    table = text.partition("| loop | every | does | at a time |")[2].partition("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| `")]
    told = {name: row[-1] for row in rows for name in re.findall("`([^`]+)`", row[0])}

    assert told.keys() == dict(loops.known_loops()).keys() - {"test-loop"}
    for name, each in loops.known_loops().items():
        assert told[name].startswith("any number: " if each.unlocked else "one"), name


@dataclass
class Sent:
    """The messages of a task that nobody serves."""

    task: str
    count: int = 0


@pytest.fixture
def sent() -> Iterator[Sent]:
    messages = Sent(f"tests.{uuid.uuid4().hex}")

    def count(sender: str, **_: Any) -> None:
        messages.count += sender == messages.task

    before_task_publish.connect(count, weak=False)
    yield messages
    before_task_publish.disconnect(count)
    cache.delete(f"woken:{messages.task}")


def test_a_thousand_events_leave_one_message_until_the_loop_begins(sent: Sent) -> None:
    for _ in range(1000):
        loops.wake_loop(sent.task)

    assert sent.count == 1


@pytest.mark.django_db
def test_what_happens_after_a_loop_has_begun_wakes_it_again(sent: Sent) -> None:
    loops.wake_loop(sent.task)

    def cycle(_now: datetime) -> dict[str, Any]:
        loops.wake_loop(sent.task)
        return {"messages": sent.count}

    loops.run(replace(loop(cycle), task=sent.task))

    assert ControlLoop.objects.get(name="test-loop").report == {"messages": 2}


def test_the_engine_has_a_queue_of_its_own() -> None:
    routes = current_app.conf.task_routes

    assert routes[ADVANCE_TASK] == {"queue": "engine"}
    assert [task for task, route in routes.items() if route == {"queue": "engine"}] == [
        ADVANCE_TASK
    ]


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.process
def test_a_broker_that_does_not_answer_is_not_waited_for(silent_port: int) -> None:
    with _asking(f"redis://127.0.0.1:{silent_port}/0") as ask:
        _assert_calls_are_dropped(ask)


@pytest.mark.process
def test_without_a_broker_a_wake_up_call_is_dropped_and_nothing_else_fails() -> None:
    with _asking("redis://127.0.0.1:1/0") as ask:
        _assert_calls_are_dropped(ask)


@pytest.mark.django_db
def test_a_loop_runs_without_the_cache(settings: Any) -> None:
    settings.CACHES = {"default": settings.CACHES["default"] | {"LOCATION": "redis://127.0.0.1:1"}}

    assert loops.run(loop(lambda _: {}))


@pytest.mark.process
def test_when_the_broker_is_full_a_wake_up_call_is_dropped_and_taken_again_later(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("redis")
    with (
        running_redis(folder / "redis", maxmemory="4mb") as (server, _),
        redis.Redis.from_url(server.url) as client,
        _asking(server.url) as ask,
    ):
        _fill(client)

        _assert_calls_are_dropped(ask)

        client.delete("filling")
        for number, how in enumerate(_CALLS, start=1):
            assert ask(how) == []
            assert client.llen("celery") == number


def _fill(client: redis.Redis) -> None:
    with contextlib.suppress(redis.exceptions.OutOfMemoryError):
        while True:
            client.lpush("filling", b"x" * 50_000)


_CALLS = ("wake", "wake_loop")
_ASKED = """
import sys, django
django.setup()
from wms.core import loops
for line in sys.stdin:
    getattr(loops, line.strip())(f"a.task.{line.strip()}")
    print("over", file=sys.stderr, flush=True)
"""


@contextlib.contextmanager
def _asking(redis_url: str) -> Iterator[Callable[[str], list[str]]]:
    """Function that makes a wake-up call in a process with this broker; what was said meanwhile."""
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", _ASKED],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=_environment() | {"REDIS_URL": redis_url},
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        calls, said = process.stdin, process.stderr

        def ask(how: str) -> list[str]:
            calls.write(f"{how}\n")
            calls.flush()
            lines = iter(said.readline, "")
            return list(itertools.takewhile(lambda line: line != "over\n", lines))

        yield ask
        calls.close()
        assert process.wait(timeout=60) == 0


def _assert_calls_are_dropped(ask: Callable[[str], list[str]]) -> None:
    for how in _CALLS:
        assert f"event=task_wake_failed task=a.task.{how}" in "".join(ask(how))


@pytest.mark.django_db
def test_a_cycle_that_did_something_keeps_the_installation_active(own_cache: None) -> None:
    busy = replace(loop(lambda _: {"looked_at": 0, "done": 1}), deeds=("done",))
    looking = replace(loop(lambda _: {"looked_at": 7, "done": 0}), deeds=("done",))
    any_deed = loop(lambda _: {"done": 2})
    clockwork = replace(any_deed, keeps_period=True)

    for each, is_active in ((busy, True), (looking, False), (any_deed, True), (clockwork, False)):
        cache.delete("active_at")
        loops.run(each)
        assert (idling.idle_for_s() < 5) is is_active


@pytest.mark.django_db
def test_a_loop_tells_the_period_of_its_next_turn_at_the_latest(own_cache: None) -> None:
    for active_s_ago, period_s in ((0.0, 5.0), (20.0, 15.0), (60.0, 15.0)):
        cache.set("active_at", time.time() - active_s_ago)
        loops.run(loop(lambda _: {}))
        assert ControlLoop.objects.get(name="test-loop").period_s == period_s


@pytest.mark.django_db
def test_an_event_keeps_the_installation_active_and_the_clock_does_not(
    own_cache: None,
) -> None:
    loops.ask_loop("tests.by-the-clock")
    assert idling.idle_for_s() > 5
    loops.wake_loop("tests.by-an-event")
    assert idling.idle_for_s() < 5
