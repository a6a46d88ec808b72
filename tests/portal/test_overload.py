"""Who finds no working place is refused before anything is begun, and told when to come again."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable
from typing import Any
from wsgiref.util import setup_testing_defaults

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.api.events.waiting import WaitingRoom
from portal.metrics.counts import REGISTRY
from portal.middleware.overload import BoundedWork, bounded
from portal.shared.working_places import RetryAdvice, WorkingPlaces, resting, working
from portal.wsgi import application

NONE = WorkingPlaces(0, waiting=0, wait_s=0.0)


def _asked(app: Any, path: str, **environ: Any) -> tuple[str, dict[str, str], bytes]:
    """Status, fields and content that a WSGI application answers."""
    environ = {"PATH_INFO": path, "HTTP_HOST": "localhost", "QUERY_STRING": "", **environ}
    setup_testing_defaults(environ)
    told: list[Any] = []
    body = app(environ, lambda status, fields: told.extend([status, dict(fields)]))
    content = b"".join(body)
    if hasattr(body, "close"):
        body.close()
    return told[0], told[1], content


def _stub(begun: list[str], during: Callable[[dict[str, Any]], Any] = lambda environ: None) -> Any:
    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        begun.append(environ["PATH_INFO"])
        during(environ)
        start_response("200 OK", [])
        return []

    return app


def _refused(face: str) -> float:
    return REGISTRY.get_sample_value("pilotage_requests_refused_total", {"face": face}) or 0.0


@pytest.mark.parametrize(
    ("path", "face"),
    [("/api/v1/jobs/", "api"), ("/pilot/v1/claim", "pilot"), ("/factory/v1/report", "factory")],
)
def test_a_program_without_a_place_is_told_when_to_come_again(path: str, face: str) -> None:
    begun: list[str] = []
    before = _refused(face)

    status, fields, content = _asked(BoundedWork(_stub(begun), NONE), path)

    problem = json.loads(content)
    assert (status, begun) == ("503 Service Unavailable", [])
    assert fields["Content-Type"] == "application/problem+json"
    assert problem["type"] == "/problems/overloaded/"
    assert problem["request_id"] == fields["X-Request-ID"] != ""
    assert 1 <= int(fields["Retry-After"]) <= 5
    assert _refused(face) == before + 1


@pytest.mark.django_db
def test_a_person_without_a_place_gets_a_page_and_nothing_is_looked_up() -> None:
    status, fields, content = _asked(BoundedWork(application, NONE), "/jobs/")

    assert status == "503 Service Unavailable"
    assert fields["Content-Type"].startswith("text/html")
    assert "default-src" in fields["Content-Security-Policy"]
    assert int(fields["Retry-After"]) >= 1
    assert fields["X-Request-ID"].encode() in content


def test_an_answer_to_head_has_no_content() -> None:
    _, fields, content = _asked(
        BoundedWork(_stub([]), NONE), "/api/v1/jobs/", REQUEST_METHOD="HEAD"
    )

    assert (content, int(fields["Content-Length"]) > 0) == (b"", True)


@pytest.mark.parametrize(
    "path",
    [
        "/", "/metrics", "/health/live", "/health/ready", "/static/css/main.css",
        "/pilot/v1/heartbeat", "/pilot/v1/end", "/pilot/v1/jobs/17/1/report",
        "/pilot/v1/jobs/17/1/files/output/a/b", "/pilot/v1/jobs/17/1/links/output/a",
    ],
)  # fmt: skip
def test_what_must_not_be_refused_needs_no_place(path: str) -> None:
    begun: list[str] = []

    status, _, _ = _asked(BoundedWork(_stub(begun), NONE), path)

    assert (status, begun) == ("200 OK", [path])


@pytest.mark.parametrize("path", ["/jobs/", "/pilot/v1/heartbeat/x", "//", "/pilot/v1/jobs/17"])
def test_what_is_only_like_it_needs_a_place(path: str) -> None:
    before = _refused("page") + _refused("pilot")

    _asked(BoundedWork(_stub([]), NONE), path)

    assert _refused("page") + _refused("pilot") == before + 1


def test_a_place_is_free_again_after_an_answer_and_after_a_fault() -> None:
    places = WorkingPlaces(1, waiting=0, wait_s=0.0)

    def fail(environ: dict[str, Any]) -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        _asked(BoundedWork(_stub([], fail), places), "/api/v1/jobs/")
    first, _, _ = _asked(BoundedWork(_stub([]), places), "/api/v1/jobs/")

    assert (first, places.take()) == ("200 OK", True)


def test_who_waits_for_a_place_has_the_next_one_in_order() -> None:
    places = WorkingPlaces(1, waiting=2, wait_s=30.0)
    places.take()
    turns: list[int] = []

    def wait(number: int) -> None:
        with working(places) as has_place:
            assert has_place
            turns.append(number)

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(2)]
    for number, thread in enumerate(threads, 1):
        thread.start()
        while len(places._queue) < number:
            thread.join(0.001)
    is_full = places.take()
    places.give_back()
    for thread in threads:
        thread.join()

    assert (turns, is_full) == ([0, 1], False)


def test_who_waits_in_vain_leaves_the_queue() -> None:
    places = WorkingPlaces(1, waiting=1, wait_s=0.001)
    places.take()

    first, second = places.take(), places.take()
    places.give_back()

    assert (first, second, places.take()) == (False, False, True)


def test_who_rests_lets_somebody_else_work_and_goes_on_afterwards() -> None:
    places = WorkingPlaces(1, waiting=0, wait_s=0.0)

    with working(places):
        with resting():
            meanwhile = places.take()
        too_many = places.take()
        places.give_back()
        still_one = places.take()

    assert (meanwhile, too_many, still_one, places.take()) == (True, False, False, True)


def test_a_follower_rests_while_it_waits_for_events() -> None:
    places = WorkingPlaces(1, waiting=0, wait_s=0.0)
    found: list[bool] = []

    def pause(seconds: float) -> None:
        found.append(places.take())
        places.give_back()

    with working(places):
        WaitingRoom(1, pause=pause).wait_for(lambda: len(found), bool, wait_s=30.0)

    assert found == [True]


def test_a_large_body_is_waited_for_without_a_place_and_a_small_one_before_it() -> None:
    places = WorkingPlaces(1, waiting=0, wait_s=0.0)
    seen: dict[str, bool] = {}

    class Sender(io.BytesIO):
        def read(self, *size: Any) -> bytes:
            seen[f"{len(self.getbuffer())}"] = places.take()
            places.give_back()
            return super().read(*size)

    app = BoundedWork(_stub([], lambda environ: environ["wsgi.input"].read()), places)
    for size in (10, 100_000):
        _asked(
            app, "/api/v1/dags/", **{"wsgi.input": Sender(b"x" * size)}, CONTENT_LENGTH=str(size)
        )

    assert seen == {"10": True, "100000": True}


def test_without_places_in_the_settings_nobody_is_refused(settings: Any) -> None:
    settings.WORKING_PLACES = 0

    assert bounded(application) is application


def test_the_more_are_refused_the_longer_the_stretch_they_come_back_in() -> None:
    advice = RetryAdvice(least_s=4.0, most_s=60.0, window_s=10.0)
    for number in range(3600):
        # Forty each second are let in, and eighty refused.
        advice.note(1000.0 + number / 120, is_refused=number % 3 != 0)

    assert advice.seconds(1030.0, 0.0) == 1
    # Twice as many as were let in within the ten seconds that are known.
    assert advice.seconds(1030.0, 1.0) == 21
    assert advice.seconds(1060.0, 1.0) == 5


def test_many_who_came_in_one_moment_come_back_soon() -> None:
    advice = RetryAdvice(least_s=4.0, most_s=60.0, window_s=10.0)
    for number in range(100):
        advice.note(1000.0, is_refused=number >= 12)

    assert advice.seconds(1000.0, 1.0) == 5


@given(st.lists(st.tuples(st.floats(0, 100), st.booleans()), max_size=50), st.floats(0, 1))
def test_nobody_is_sent_away_for_longer_than_a_minute(
    seen: list[tuple[float, bool]], chance: float
) -> None:
    advice = RetryAdvice()
    for now_s, is_refused in seen:
        advice.note(now_s, is_refused=is_refused)

    assert 1 <= advice.seconds(100.0, chance) <= 61


def test_a_length_with_noughts_before_it_is_not_read_ahead() -> None:
    sizes: list[Any] = []

    class Body:
        def read(self, size: int = -1) -> bytes:
            sizes.append(size)
            return b""

    length = "1".zfill(20) + "0" * 10
    app = BoundedWork(_stub([]), WorkingPlaces(1, waiting=0, wait_s=0.0))

    _asked(app, "/api/v1/jobs/", CONTENT_LENGTH=length, **{"wsgi.input": Body()})

    assert sizes == []
