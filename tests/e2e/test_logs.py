"""Log of a running job in the browser: following, line links, wrapping."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from portal.web.logs.viewer import FOLLOW_S
from tests import factories
from tests.e2e.conftest import NARROW, Complaints
from wms.core.models import User
from wms.jobs.models import Attempt, Stream
from wms.jobs.output.streams import append_to_stream

Login = Callable[[User], None]
_TURN_MS = 1000 * FOLLOW_S + 100


@pytest.fixture
def claimed(live_server: LiveServer) -> factories.Claimed:
    """Alice's job, which runs in a pilot and has printed 500 lines."""
    people = factories.people()
    worker = factories.pilot(factories.site().queues.get())
    factories.job(people.alice)
    made = factories.claim(worker)
    assert made is not None
    made.start()
    _print(made, b"".join(b"step %d of many\n" % n for n in range(1, 501)))
    return made


def _print(claimed: factories.Claimed, content: bytes, kind: str = "stdout") -> None:
    sent = Stream.objects.filter(attempt__job=claimed.job, kind=kind).first()
    append_to_stream(
        claimed.job.pk, claimed.number, pilot_id=claimed.pilot.pk, kind=kind,
        offset=sent.size_bytes if sent else 0, content=content, now=timezone.now(),
    )  # fmt: skip


def _address(live_server: LiveServer, claimed: factories.Claimed, kind: str = "stdout") -> str:
    where = {"job_id": claimed.job.pk, "number": 1, "kind": kind}
    return live_server.url + reverse("web:attempt-log", kwargs=where)


def _is_at_end(page: Page) -> bool:
    return bool(
        page.locator("#log").evaluate(
            "box => box.scrollHeight - box.scrollTop - box.clientHeight < 24"
        )
    )


def test_an_empty_log_and_a_tail_are_followed_until_the_reader_scrolls_up(
    page: Page, live_server: LiveServer, claimed: factories.Claimed, login: Login,
    complaints: Complaints,
) -> None:  # fmt: skip
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "part=1" in request.url else 0)
    login(factories.person("alice"))
    page.clock.install()
    page.goto(_address(live_server, claimed, "stderr"))
    expect(page.get_by_text("Nothing of stderr has come yet")).to_be_visible()
    _print(claimed, b"hello\n", "stderr")
    page.clock.run_for(_TURN_MS)
    expect(page.locator("#L1")).to_be_in_viewport()
    expect(page.get_by_text("Nothing of stderr has come yet")).to_have_count(0)

    page.goto(live_server.url + reverse("web:job", args=[claimed.job.pk]))
    page.locator("#stdout-lines").click()
    expect(page.locator("#L500")).to_be_in_viewport()
    expect(page.locator("#log-state")).to_have_text("Following")

    _print(claimed, b"step 501 of many\nstep 5")
    page.clock.run_for(_TURN_MS)
    expect(page.locator("#L502")).to_be_in_viewport()
    _print(claimed, b"02 of many\n")
    page.clock.run_for(_TURN_MS)
    expect(page.locator("#L502 .text")).to_have_text("step 502 of many")
    assert page.locator("#L502").count() == 1
    assert _is_at_end(page)

    page.locator("#log").evaluate("box => { box.scrollTop = 0 }")
    expect(page.locator("#log-state")).to_have_text("Not following")
    _print(claimed, b"step 503 of many\n")
    asked.clear()
    page.clock.run_for(5 * _TURN_MS)
    assert asked == []
    expect(page.locator("#L503")).to_have_count(0)

    page.get_by_role("button", name="Follow").click()
    expect(page.locator("#L503")).to_be_in_viewport()
    claimed.send("stdout", "stdout", b"".join(b"step %d of many\n" % n for n in range(1, 505)))
    claimed.end()
    page.clock.run_for(_TURN_MS)
    expect(page.locator("#L504")).to_be_in_viewport()
    expect(page.locator("#log-state")).to_have_text("Ended")
    expect(page.locator("#log-follow")).to_be_hidden()


def test_fresh_output_is_asked_for_a_line_chosen_and_lines_are_wrapped_or_not(
    page: Page, live_server: LiveServer, claimed: factories.Claimed, login: Login,
    complaints: Complaints,
) -> None:  # fmt: skip
    _print(claimed, b"w" * 1500 + b"\n")
    login(factories.person("alice"))
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    page.goto(_address(live_server, claimed))
    page.get_by_role("button", name="Ask for fresh output").click()
    expect(page.get_by_text("The pilot will be asked with its next heartbeat.")).to_be_visible()
    expect(page.locator("#L501")).to_be_in_viewport()
    assert Attempt.objects.get().peek_until is not None

    page.locator("#L495 .no").click()
    expect(page.locator("#L495")).to_be_in_viewport()
    page.locator("#L498 .no").click(modifiers=["Shift"])
    expect(page.locator(".is-marked")).to_have_count(4)

    box = page.locator("#log")
    assert box.evaluate("box => box.scrollWidth <= box.clientWidth")
    page.get_by_role("link", name="Do not wrap lines").click()
    assert box.evaluate("box => box.scrollWidth > box.clientWidth")
    assert "wrap=0" in page.url
    page.reload()
    assert box.evaluate("box => box.scrollWidth > box.clientWidth")
