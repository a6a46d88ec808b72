"""Log pages: windows of lines, search, escapes, missing logs."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests import factories
from tests.portal.web.markup import text_of
from tests.stored_files import blob_path, stream_path
from wms.dags.models import ScriptRun
from wms.jobs.attempts.rescheduling import reschedule_jobs
from wms.jobs.content.blobs import store_bytes
from wms.jobs.models import Attempt, AttemptFile, Stream
from wms.jobs.output import lines
from wms.jobs.output.lines import WINDOW_BYTES
from wms.jobs.output.streams import append_to_stream
from wms.jobs.output.texts import StoredText
from wms.pilots.protocol.logs import append_to_log

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _time_to_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, lines are counted before a page is made."""
    monkeypatch.setattr("portal.shared.readable_logs._COUNTING_S", 60.0)


def _address(claimed: factories.Claimed, kind: str = "stdout") -> str:
    where = {"job_id": claimed.job.pk, "number": claimed.number, "kind": kind}
    return reverse("web:attempt-log", kwargs=where)


def _print(claimed: factories.Claimed, content: bytes, *, kind: str = "stdout") -> None:
    size = Stream.objects.filter(attempt__job=claimed.job, kind=kind).first()
    append_to_stream(
        claimed.job.pk, claimed.number, pilot_id=claimed.pilot.pk, kind=kind,
        offset=size.size_bytes if size else 0, content=content, now=timezone.now(),
    )  # fmt: skip


def _client(name: str = "bob") -> Client:
    client = Client()
    client.force_login(factories.person(name))
    return client


def _get(claimed: factories.Claimed, **query: object) -> HttpResponse:
    return _client().get(_address(claimed), query)


def _page(claimed: factories.Claimed, expected: int = 200, **query: object) -> str:
    answer = _get(claimed, **query)
    assert answer.status_code == expected
    return answer.content.decode()


def _long_file(claimed: factories.Claimed, count: int) -> Path:
    """What an attempt sent at its end: so many lines, each with its number."""
    content = b"".join(b"line %d %s\n" % (n, b"." * (n % 80)) for n in range(1, count + 1))
    blob = store_bytes(content)
    attempt = Attempt.objects.get(job=claimed.job)
    AttemptFile.objects.create(attempt=attempt, kind="stdout", path="stdout", blob=blob)
    return blob_path(blob.sha256)


def test_a_log_is_opened_at_its_end_with_the_right_numbers(claimed: factories.Claimed) -> None:
    _long_file(claimed, 30_000)

    page = _page(claimed)

    assert text_of(page, "L30000").startswith("30000 ")
    assert '<span class="text">line 30000 ' in page
    assert 'id="L1"' not in page
    assert "Earlier</a>" in page
    assert "Later</a>" not in page


def test_no_more_is_read_of_a_large_log_than_a_window_once_its_lines_are_counted(
    claimed: factories.Claimed, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _long_file(claimed, 300_000)
    _page(claimed)
    reads: list[int] = []
    read = StoredText.read

    def noted(text: StoredText, start: int, length: int) -> bytes:
        content = read(text, start, length)
        reads.append(len(content))
        return content

    monkeypatch.setattr(StoredText, "read", noted)
    _page(claimed)

    assert path.stat().st_size > 40 * WINDOW_BYTES
    assert max(reads) <= lines.BLOCK_BYTES
    assert sum(reads) <= WINDOW_BYTES + 2 * lines.BLOCK_BYTES


def test_a_line_has_an_address_that_marks_it(claimed: factories.Claimed) -> None:
    _long_file(claimed, 30_000)

    page = _page(claimed, line=15_000)
    several = _page(claimed, line="15000-15002")

    marked = '<div class="line is-marked" id="L15000"><a class="no" href="?line=15000"'
    assert marked in page
    assert page.count("is-marked") == 1
    assert several.count("is-marked") == 3
    assert 'id="L14980"' in page


def test_a_line_keeps_its_number_while_the_log_grows(claimed: factories.Claimed) -> None:
    _print(claimed, b"first\nsecond\nthird\n")
    before = _page(claimed, line=2)

    _print(claimed, b"more\n" * 20_000)

    for page in (before, _page(claimed, line=2)):
        assert 'is-marked" id="L2"' in page
        assert '<span class="text">second</span>' in page


@pytest.mark.parametrize(
    ("query", "status", "fault"),
    [
        ({"line": "4"}, 404, "There is no line 4."),
        ({"line": "soon"}, 400, "Give the number of a line."),
        ({"line": "0"}, 400, "Give the number of a line."),
        ({"from": "-1"}, 400, "from must be the number of a byte."),
        ({"at": "9" * 40}, 400, "at must be the number of a byte."),
        ({"q": "x" * 300}, 400, "at most 200 characters"),
    ],
)
def test_a_place_that_is_none_is_told_beside_the_end(
    claimed: factories.Claimed, query: dict[str, str], status: int, fault: str
) -> None:
    _print(claimed, b"one\ntwo\nthree\n")

    page = _page(claimed, status, **query)

    assert fault in page
    assert "three" in page


def test_earlier_windows_are_led_to_up_to_the_beginning(claimed: factories.Claimed) -> None:
    _long_file(claimed, 4000)
    client, address, seen = _client(), _address(claimed), []
    page = client.get(address)

    while not page.context["window"].is_first:
        seen.append(page.context["shown"].first)
        page = client.get(address + page.context["earlier"])

    assert seen == sorted(seen, reverse=True)
    assert page.context["shown"].first == 1
    assert 'id="log-later"' in page.content.decode()


def test_what_programs_wrote_can_do_no_harm(claimed: factories.Claimed) -> None:
    _print(
        claimed,
        b"<script>alert(1)</script>\n\x1b[31mred\x1b[0m \x1b]0;title\x07\x1b[2Jplain\n"
        b"\x00zero \xff \xe2\x80\xaeturned\n10%\r50%\r100%\r\n\x1b[38;5;31mpalette\n"
        b'"><img src=x onerror=y>\x1b[1;999999999999m\n',
    )

    page = _page(claimed)

    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert '<span class="ansi-red">red</span> plain</span>' in page
    assert '<i class="ctl">^@</i>zero \ufffd ' in page
    assert '<i class="ctl">U+202E</i>turned' in page
    assert "2 times</i> 100%</span>" in page
    assert '<span class="text">palette</span>' in page
    assert "\x1b" not in page
    assert "\x00" not in page


def test_a_very_long_line_is_cut_and_says_so(claimed: factories.Claimed) -> None:
    _print(claimed, b"y" * 5000 + b"\nnext\n")

    page = _page(claimed)

    assert "y" * 2000 + ' <i class="cut-note">3000 ' in page
    assert '<span class="text">next</span>' in page


def test_words_are_found_latest_first_and_lead_to_their_lines(claimed: factories.Claimed) -> None:
    _long_file(claimed, 20_000)

    found = _page(claimed, q="LINE 1999")
    none = _page(claimed, q="<nowhere>")

    assert found.index('href="?line=19999#log"') < found.index('href="?line=1999#log"')
    assert "11 lines" in text_of(found, "search")
    assert 'id="search-on"' not in found
    assert "&lt;nowhere&gt;" in none
    assert "0 lines" in none


def test_a_search_that_stops_says_where_and_leads_on(
    claimed: factories.Claimed, monkeypatch: pytest.MonkeyPatch
) -> None:
    _long_file(claimed, 300_000)
    monkeypatch.setattr("portal.web.logs.viewer.SEARCH_BYTES", 1)

    client, address = _client(), _address(claimed)
    page = client.get(address, {"q": "line 299999"})
    rest = client.get(address + page.context["found"].further.partition("#")[0])

    stopped = page.context["found"].search.stopped_at
    assert f"Stopped at byte {stopped}" in page.content.decode()
    assert rest.context["found"].search.stopped_at == stopped - 2**20


def test_numbers_that_took_too_long_are_counted_by_later_requests(
    claimed: factories.Claimed, monkeypatch: pytest.MonkeyPatch
) -> None:
    _long_file(claimed, 300_001)
    monkeypatch.setattr("portal.shared.readable_logs._COUNTING_S", -1.0)

    uncounted = _get(claimed)
    monkeypatch.setattr("portal.shared.readable_logs._COUNTING_S", 10.0)
    start = uncounted.context["window"].start
    counted = _client().get(_address(claimed), {"part": 1, "count": 1, "from": start})

    page = uncounted.content.decode()
    first = uncounted.context["window"].lines[0]
    assert 'id="log-counted"' in page
    assert f'<a class="no" href="?at={first.start}"' in page
    assert first.content.startswith(b"line %d " % int(counted["X-Log-First"]))
    assert f'is-marked" id="L{counted["X-Log-First"]}"' in _page(claimed, at=first.start)


def test_who_may_steer_a_running_job_asks_for_fresh_output(claimed: factories.Claimed) -> None:
    _print(claimed, b"one\n")
    address, ask = _address(claimed), reverse("web:steer-job", args=[claimed.job.pk, "peek"])

    pages = {name: _client(name).get(address).content.decode() for name in ("alice", "bob")}
    answer = _client("alice").post(ask, {"log": "stdout", "attempt": "1"})

    assert {name: ask in page for name, page in pages.items()} == {"alice": True, "bob": False}
    assert answer["Location"] == address
    assert Attempt.objects.get().peek_until is not None
    claimed.end()
    assert ask not in _client("alice").get(address).content.decode()


def _missing(page: str) -> str:
    found = re.search(r'class="empty"[^>]*><p>([^<]+)<', page)
    assert found
    return found[1]


def test_a_log_without_text_tells_why(claimed: factories.Claimed) -> None:
    attempt = Attempt.objects.filter(job=claimed.job)
    open_page = _page(claimed)
    attempt.update(started_at=None)
    unstarted = _page(claimed)
    attempt.update(outcome="lost", ended_at=timezone.now())
    never = _page(claimed)
    attempt.update(started_at=timezone.now())
    silent = _page(claimed)
    attempt.update(ended_at=timezone.now() - timedelta(days=40))
    removed = _page(claimed)

    assert "30 days" in removed
    assert len({_missing(page) for page in (open_page, unstarted, never, silent, removed)}) == 5


def test_an_empty_log_and_a_lost_one_are_told_apart(claimed: factories.Claimed) -> None:
    claimed.send("stdout", "stdout", b"")
    assert 'id="log-empty"' in _page(claimed)

    _print(claimed, b"text\n", kind="stderr")
    stream_path(Attempt.objects.get().pk, "stderr").unlink()

    lost = _client().get(_address(claimed, "stderr"))
    assert lost.status_code == 404
    assert 'id="log-empty"' not in lost.content.decode()


def test_every_attempt_and_both_streams_are_led_to(claimed: factories.Claimed) -> None:
    _print(claimed, b"first try\n")
    reschedule_jobs([claimed.job.pk], actor=factories.SYSTEM, reason="lost", outcome="lost")
    again = factories.claim(claimed.pilot)
    assert again is not None

    page = _page(claimed)

    assert _address(again.start()) in page
    assert _address(claimed, "stderr") in page
    assert "first try" in page
    assert "not sent" in text_of(page, "log-note")


@pytest.mark.parametrize("name", ["attempts/1/logs/output/", "attempts/9/logs/stdout/"])
def test_there_is_no_log_of_what_there_is_not(claimed: factories.Claimed, name: str) -> None:
    assert _client().get(f"/jobs/{claimed.job.pk}/{name}").status_code == 404


def test_pilots_scripts_and_files_have_the_same_viewer(claimed: factories.Claimed) -> None:
    append_to_log(claimed.pilot.pk, offset=0, content=b"registered\n", now=timezone.now())
    dag = factories.running_dag(factories.person("alice"))
    run = ScriptRun.objects.create(
        dag=dag, node=dag.nodes.all()[0], kind="pre", retry_number=0, executable="a",
        state="ended", exit_code=0, output=store_bytes(b"prepared\n"),
    )  # fmt: skip
    pages: dict[str, Any] = {
        "registered": reverse("web:pilot-log", args=[claimed.pilot.pk]),
        "prepared": reverse("web:script-log", args=[dag.pk, run.pk]),
        "#!/bin/sh": reverse("web:dag-file-log", args=[dag.pk, "run.sh"]),
    }

    for text, address in pages.items():
        answer = _client().get(address)
        page = answer.content.decode()
        assert f'tabindex="-1">1</a><span class="text">{text}' in page
        assert 'id="log-download"' in page
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert "script-src" in answer["Content-Security-Policy"]


@pytest.mark.parametrize(("exit_code", "shape"), [(0, "check"), (3, "cross")])
def test_how_it_ended_is_told_by_word_and_shape(db: None, exit_code: int, shape: str) -> None:
    dag = factories.running_dag(factories.person("alice"))
    run = ScriptRun.objects.create(
        dag=dag, node=dag.nodes.all()[0], kind="pre", retry_number=0, executable="a",
        state="ended", exit_code=exit_code, output=store_bytes(b"prepared\n"),
    )  # fmt: skip

    page = _client().get(reverse("web:script-log", args=[dag.pk, run.pk])).content.decode()

    told = page[page.index('id="log-state"') :]
    assert f"#{shape}" in told[:500]
    assert f"<span>exit code {exit_code}</span>" in told[:500]


def test_a_script_that_runs_or_printed_nothing_tells_so(claimed: factories.Claimed) -> None:
    dag = factories.running_dag(factories.person("alice"))
    run = ScriptRun.objects.create(
        dag=dag, node=dag.nodes.all()[0], kind="pre", retry_number=0, executable="a"
    )
    address = reverse("web:script-log", args=[dag.pk, run.pk])

    waiting = _client().get(address).content.decode()
    ScriptRun.objects.update(state="ended", exit_code=0)

    ended = _client().get(address).content.decode()
    assert 'data-is-growing="1"' in waiting
    assert 'aria-label="No text"' in ended
