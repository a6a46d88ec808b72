"""Log pages of growing logs: added lines, and missing bytes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests import factories
from tests.portal.web.markup import text_of
from wms.jobs.models import Stream
from wms.jobs.output.lines import WINDOW_BYTES
from wms.jobs.output.streams import append_to_stream
from wms.jobs.output.texts import PiecedText
from wms.pilots.agent.files.sandbox import bounded_log

pytestmark = pytest.mark.django_db


def _address(claimed: factories.Claimed) -> str:
    where = {"job_id": claimed.job.pk, "number": claimed.number, "kind": "stdout"}
    return reverse("web:attempt-log", kwargs=where)


def _print(claimed: factories.Claimed, content: bytes, *, left_out: int = 0) -> None:
    stream = Stream.objects.filter(attempt__job=claimed.job, kind="stdout").first()
    after = stream.size_bytes if stream else 0
    append_to_stream(
        claimed.job.pk, claimed.number, pilot_id=claimed.pilot.pk, kind="stdout", after=after,
        offset=after + left_out, content=content, now=timezone.now(),
    )  # fmt: skip


def _client() -> Client:
    client = Client()
    client.force_login(factories.person("bob"))
    return client


def _get(claimed: factories.Claimed, **query: object) -> HttpResponse:
    return _client().get(_address(claimed), query)


def _page(claimed: factories.Claimed, expected: int = 200, **query: object) -> str:
    answer = _get(claimed, **query)
    assert answer.status_code == expected
    return answer.content.decode()


def test_followers_are_sent_what_was_added_and_nothing_twice(claimed: factories.Claimed) -> None:
    _print(claimed, b"one\ntw")
    page, client, address = _get(claimed), _client(), _address(claimed)
    start, etag = page.context["window"].next_start, page.context["log"].etag

    same = client.get(address, {"part": 1, "from": start}, headers={"If-None-Match": etag})
    _print(claimed, b"o\nthree\n")
    more = client.get(address, {"part": 1, "from": start}, headers={"If-None-Match": etag})

    assert same.status_code == 304
    assert same.content == b""
    text = more.content.decode()
    assert 'id="L2"' in text
    assert '<span class="text">two</span>' in text
    assert '<span class="text">three</span>' in text
    assert "one" not in text
    assert more["X-Log-Next"] == more["X-Log-Size"] == "14"
    assert more["X-Log-Is-Growing"] == "1"


def test_followers_far_behind_are_sent_the_end(claimed: factories.Claimed) -> None:
    _print(claimed, b"line\n" * 40_000)

    part = _client().get(_address(claimed), {"part": 1, "from": 0})

    assert part["X-Log-Is-End"] == "1"
    assert 'id="L40000"' in part.content.decode()
    assert len(part.content) < 20 * WINDOW_BYTES


def test_followers_are_never_left_behind_by_very_short_lines(claimed: factories.Claimed) -> None:
    _print(claimed, b"\n" * 3000 + b"last\n")

    part = _client().get(_address(claimed), {"part": 1, "from": 0})

    assert '<span class="text">last</span>' in part.content.decode()
    assert part["X-Log-Next"] == part["X-Log-Size"]


@pytest.mark.slow
def test_a_job_is_followed_as_long_as_it_prints(claimed: factories.Claimed) -> None:
    for part in range(6):
        _print(claimed, b"".join(b"%07d\n" % n for n in range(part * 2**18, (part + 1) * 2**18)))
        size = (part + 1) * 2**21
        shown = _client().get(_address(claimed), {"part": 1, "from": size - 8})
        assert f'<span class="text">{size // 8 - 1:07}</span>' in shown.content.decode()

    page = _page(claimed)

    assert f'<span class="text">{6 * 2**18 - 1:07}</span>' in page
    note = text_of(page, "log-note")
    assert "2 MiB" in note
    assert "5242880 to 7340032" in note
    assert "last 5 MiB" in note
    assert '<span class="text">0000000</span>' in _page(claimed, **{"from": 0})


def test_what_is_not_here_is_told_where_it_lacks_and_behind_it_no_line_has_a_number(
    claimed: factories.Claimed,
) -> None:
    _print(claimed, b"one\ntwo\n")
    etag = _get(claimed).context["log"].etag
    _print(claimed, b"nine\nten\n", left_out=3000)
    followed = {"part": 1, "from": 8}
    part = _client().get(_address(claimed), followed, headers={"If-None-Match": etag})
    end, begin = _page(claimed), _page(claimed, **{"from": 0})

    gap = '<p class="gap" role="note">2.93 KiB are not here: bytes 8 to 3008</p>'
    assert (part["X-Log-Next"], part["X-Log-Size"]) == ("3017", "3017")
    assert "bytes 8 to 3008" in part["X-Log-Note"]
    for text in (part.content.decode(), end):
        assert re.search(re.escape(gap) + '<div class="line"><a [^>]*href="[?]at=3008"', text)
        assert "two" not in text
    assert begin.index('<span class="text">two</span>') < begin.index(gap)
    assert "nine" not in begin
    assert "are being counted" not in end + begin
    assert re.findall(r"\d+", text_of(end, "log-range")) == ["3008", "3017"]
    assert "byte 8" in _page(claimed, 404, line=3)
    whole = b"".join(_client().get(f"/jobs/{claimed.job.pk}/attempts/1/streams/stdout"))
    assert whole == b"one\ntwo\n\n[... 3000 bytes are not here ...]\nnine\nten\n"


@pytest.mark.slow
def test_a_long_output_keeps_its_places_when_its_end_has_come(
    claimed: factories.Claimed, tmp_path: Path
) -> None:
    file = tmp_path / "stdout"
    file.write_bytes(b"".join(b"%07d\n" % n for n in range(2**21)))
    claimed.send("stdout", "stdout", bounded_log(file).read_bytes())

    page = _page(claimed)

    assert "5242880 to 11534336" in text_of(page, "log-note")
    assert '<span class="text">2097151</span>' in page
    assert 'data-bytes="16777216"' in page
    at = _page(claimed, at=11534336)
    assert re.search('is-marked"><a [^>]*href="[?]at=11534336"[^>]* aria-current', at)
    assert '<span class="text">1441792</span>' in at


def test_nothing_is_read_for_a_follower_while_nothing_was_added(
    claimed: factories.Claimed, monkeypatch: pytest.MonkeyPatch
) -> None:
    _print(claimed, b"one\n")
    etag = _get(claimed).context["log"].etag
    monkeypatch.setattr(PiecedText, "read", None)

    part = _client().get(_address(claimed), {"part": 1, "from": 4}, headers={"If-None-Match": etag})

    assert part.status_code == 304


def test_a_follower_hears_that_the_job_has_ended(claimed: factories.Claimed) -> None:
    _print(claimed, b"one\n")
    etag = _get(claimed).context["log"].etag
    claimed.send("stdout", "stdout", b"one\ntwo\n")
    claimed.end()

    part = _client().get(_address(claimed), {"part": 1, "from": 4}, headers={"If-None-Match": etag})

    assert part["X-Log-Is-Growing"] == "0"
    assert '<span class="text">two</span>' in part.content.decode()
    assert "one" not in part.content.decode()
