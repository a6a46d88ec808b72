"""Who asks for more heavy work at once than there are places is told so, by pages and API."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from django.core.signals import request_finished
from django.db import close_old_connections, connection
from django.http import StreamingHttpResponse
from django.test import Client

from portal.middleware.download_slots import sent_from_a_slot
from tests import factories
from wms.core.models import Role, User
from wms.failures.models import FailureRule
from wms.failures.rules import locked_rule_book

pytestmark = pytest.mark.django_db


@pytest.fixture
def olga(settings: Any) -> User:
    settings.PILOTAGE = {**settings.PILOTAGE, "MAX_HEAVY_REQUESTS_PER_USER": 0}
    return factories.person("olga", Role.OPERATOR)


def _ask(user: User, method: str, path: str, data: Any, kind: str) -> Any:
    client = Client()
    client.force_login(user)
    return client.generic(method, path, data, content_type=kind)


_JSON, _YAML, _FORM = "application/json", "application/yaml", "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("method", "path", "data", "kind"),
    [
        ("POST", "dags/", "", "multipart/form-data; boundary=x"),
        ("POST", "dags/check/", "", "multipart/form-data; boundary=x"),
        ("GET", "dags/{dag}/exports/dot/", "", _JSON),
        ("GET", "lists/jobs.csv", "", _JSON),
        ("POST", "explain/", '{"ad": "Rank = 1"}', _JSON),
        ("POST", "explain/", '{"dag": {dag}}', _JSON),
        ("POST", "bulk/", '{"list": "dags", "action": "hold", "dry_run": true, "ids": [{dag}]}',
         _JSON),
        ("POST", "sites.yaml?dry_run=true", "format: x", _YAML),
    ],
)  # fmt: skip
def test_the_api_says_when_to_ask_again(
    olga: User, method: str, path: str, data: str, kind: str
) -> None:
    number = str(factories.dag(olga).pk)
    token = {"HTTP_AUTHORIZATION": f"Token {factories.token_for(olga)}"}

    answer = Client().generic(
        method,
        "/api/v1/" + path.replace("{dag}", number),
        data.replace("{dag}", number),
        content_type=kind,
        **token,
    )

    assert answer.status_code == 429, answer.content
    assert "Other requests" in answer.content.decode()
    assert answer.json()["type"] == "/problems/busy/"


@pytest.mark.parametrize(
    ("method", "path", "data"),
    [
        ("POST", "/dags/submit/", "name=x"),
        ("GET", "/dags/{dag}/exports/dot/", ""),
        ("GET", "/dags/{dag}/rescue/", ""),
        ("GET", "/matches/explain/?dag={dag}", ""),
        ("POST", "/bulk/new/", "list=dags&action=hold&pick={dag}"),
        ("POST", "/errors/rules/new/", "position=1&name=A&pattern=x&version=1"),
    ],
)
def test_a_page_says_that_too_much_was_asked_at_once(
    olga: User, method: str, path: str, data: str
) -> None:
    number = str(factories.dag(olga).pk)
    locked_rule_book()

    answer = _ask(olga, method, path.replace("{dag}", number), data.replace("{dag}", number), _FORM)

    assert answer.status_code == 429, answer.content
    assert "Other requests" in answer.content.decode()
    assert not FailureRule.objects.filter(name="A").exists()


def test_forms_are_shown_without_a_place(olga: User) -> None:
    for path in ("/dags/submit/", "/matches/explain/", "/errors/rules/new/"):
        assert _ask(olga, "GET", path, "", _FORM).status_code == 200


@pytest.fixture
def no_unread_answers() -> None:
    """No place is held by answers of other tests, which do so, unread, until they are collected."""
    gc.collect()


def _places_held() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
        )
        return int(cursor.fetchone()[0])


@pytest.mark.usefixtures("no_unread_answers")
def test_a_download_holds_its_place_until_it_is_sent_or_given_up() -> None:
    alice = factories.person("alice", Role.USER)

    def make() -> StreamingHttpResponse:
        return StreamingHttpResponse(iter([b"a", b"b"]))

    read = sent_from_a_slot(alice, make)
    assert _places_held() == 2
    assert b"".join(read.streaming_content) == b"ab"
    assert _places_held() == 0

    given_up = sent_from_a_slot(alice, make)
    # As Django's own client does: the connection is that of the test.
    request_finished.disconnect(close_old_connections)
    try:
        given_up.close()
    finally:
        request_finished.connect(close_old_connections)
    assert _places_held() == 0


@pytest.mark.usefixtures("no_unread_answers")
def test_what_goes_wrong_before_or_while_it_is_sent_holds_no_place() -> None:
    alice = factories.person("alice", Role.USER)

    def broken() -> Any:
        yield b"a"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        sent_from_a_slot(alice, lambda: 1 / 0)  # type: ignore[arg-type, return-value]
    response = sent_from_a_slot(alice, lambda: StreamingHttpResponse(broken()))
    with pytest.raises(ZeroDivisionError):
        list(response.streaming_content)

    assert _places_held() == 0
