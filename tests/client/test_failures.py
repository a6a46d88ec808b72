"""Sentences and exit codes of the command when something is in the way."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from django.utils import timezone
from pilotage_client.errors import NoProfile, UsageError
from pilotage_client.profiles import Profile, config_file, find_profile, save_profile

from tests import factories
from tests.client.conftest import URL, Portal, Ran
from wms.core.models import ApiToken
from wms.core.tokens import create_token

Command = Callable[..., Ran]


def page(status: int = 200) -> httpx.Response:
    return httpx.Response(status, html="<h1>Log in</h1>", headers={"Server": "squid"})


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        (page(), 1),
        # That it is asked again, and how it ended.
        (page(502), 2),
        (page(403), 1),
        (httpx.Response(302, headers={"Location": "https://login.example.org/"}), 1),
        (httpx.Response(200, content=b"{", headers={"Content-Type": "application/json"}), 1),
    ],
)
def test_what_is_no_portal_is_told_with_its_address(
    pilotage: Command, portal: Portal, answer: httpx.Response, lines: int
) -> None:
    portal.before = lambda request: answer

    told = pilotage("sites")

    assert (told.code, told.out) == (6, "")
    assert URL in told.err
    assert len(told.err.splitlines()) == lines


@pytest.mark.parametrize(
    "error",
    [
        httpx.ConnectError("[Errno 111] Connection refused"),
        httpx.ConnectTimeout(""),
        httpx.ReadTimeout(""),
        httpx.ProxyError("407 Proxy Authentication Required"),
    ],
)
def test_a_portal_that_is_away_is_asked_some_times_and_then_told(
    pilotage: Command, portal: Portal, pauses: list[float], error: Exception
) -> None:
    def fail(request: httpx.Request) -> None:
        raise error

    portal.before = fail

    told = pilotage("sites")

    assert (told.code, told.out) == (6, "")
    assert URL in told.err
    assert "Errno" not in told.err
    assert len(pauses) == 5


def test_a_token_that_has_run_out_leads_to_login(
    bare_pilotage: Command, people: SimpleNamespace, monkeypatch: Any
) -> None:
    gone = timezone.now() - timedelta(days=1)
    token = create_token(
        people.alice, name="old", actor=factories.SYSTEM, expires_at=gone + timedelta(days=2)
    )
    monkeypatch.setenv("PILOTAGE_URL", URL)
    monkeypatch.setenv("PILOTAGE_TOKEN", token)
    ApiToken.objects.filter(user=people.alice).update(expires_at=gone)

    told = bare_pilotage("sites")

    assert told.code == 3
    assert "pilotage login" in told.err


def test_a_clock_that_is_wrong_is_told(pilotage: Command, portal: Portal) -> None:
    content = b'{"results": [], "next": null, "previous": null}'
    headers = {"Content-Type": "application/json", "Date": "Thu, 01 Jan 2026 00:00:00 GMT"}
    portal.before = lambda request: httpx.Response(200, headers=headers, content=content)

    told = pilotage("sites")

    assert told.code == 0
    assert "ahead of the portal's" in told.err


def test_the_order_is_parameters_environment_file(own_place: Path, monkeypatch: Any) -> None:
    save_profile(Profile("https://a.example.org", "plt_a", "a"))
    save_profile(Profile("https://b.example.org", "plt_b", "b"))

    assert (find_profile().url, find_profile().token) == ("https://b.example.org", "plt_b")
    assert find_profile(name="a").token == "plt_a"
    monkeypatch.setenv("PILOTAGE_PROFILE", "a")
    assert find_profile().token == "plt_a"
    monkeypatch.setenv("PILOTAGE_TOKEN", "plt_env")
    assert find_profile().token == "plt_env"
    assert find_profile(token="plt_given").token == "plt_given"
    with pytest.raises(NoProfile):
        find_profile(name="c")


def test_a_kept_token_goes_to_its_own_portal_only(own_place: Path) -> None:
    save_profile(Profile("https://a.example.org", "plt_a", "a"))

    with pytest.raises(NoProfile):
        find_profile(url="https://b.example.org")
    assert find_profile(url="https://a.example.org/api/v1/").token == "plt_a"


def test_a_file_with_a_token_that_others_may_read_is_refused(own_place: Path) -> None:
    save_profile(Profile("https://a.example.org", "plt_a", "a"))
    assert config_file().stat().st_mode & 0o777 == 0o600
    config_file().chmod(0o644)

    with pytest.raises(UsageError):
        find_profile()


@pytest.mark.parametrize(
    "text", ["x = [", "[profiles]\na = 1\n", "[profiles.a]\nurl = 'ftp://x'\n"]
)
def test_a_file_with_a_fault_is_refused(own_place: Path, text: str) -> None:
    config_file().parent.mkdir()
    config_file().write_text(text)

    with pytest.raises(UsageError):
        find_profile()
