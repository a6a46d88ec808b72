"""No value in an address, a form or a body makes the portal fail, whatever it is.

Every address is asked with hostile values (`tests/portal/hostile.py`): in each part of its path, in
the parameters and fields that its view looks for, and in each value of its JSON body. Each place
has a sixth of the values, in turns: what reads them is shared by many.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from django.core.signals import got_request_exception
from django.db import transaction
from django.http import HttpRequest
from django.test import Client

from tests import factories
from tests.portal import hostile
from tests.portal.bodies import BODIES
from tests.portal.hostile import quoted
from tests.portal.outcomes import address
from tests.portal.permissions import POST, PUT, rule_of
from tests.portal.pilot_api.pilot_client import ENDED, NODE, OFFER
from tests.portal.routes import Route, routes
from tests.portal.world import World, small_world
from wms.pilots.models import Pilot

pytestmark = [pytest.mark.slow, pytest.mark.process]

_ROUTES = routes()
_POSTED = [route for route in _ROUTES if rule_of(POST, route)]
_PROGRAMS = ("api:", "pilot_api:")
_FORM = "application/x-www-form-urlencoded"
_JSON = "application/json"
#: The routes are shared out, so that workers take turns.
_GROUPS = 8


class Asker:
    """Sends requests as an administrator, takes their changes back, and notes what failed."""

    def __init__(self, world: World) -> None:
        self.failed: dict[str, str] = {}
        # Wrong passwords are counted by address, and longer than a test lasts.
        self._client = Client(raise_request_exception=False, REMOTE_ADDR="192.0.2.1")
        self._client.force_login(world.people.ada)
        self._raised = ""
        got_request_exception.connect(self._note)

    def close(self) -> None:
        got_request_exception.disconnect(self._note)

    def _note(self, sender: object, request: HttpRequest, **_: Any) -> None:
        kind, error, _trace = sys.exc_info()
        self._raised = f"{kind.__name__ if kind else ''}: {error!s:.200}"

    def ask(self, what: str, method: str, place: str, body: str = "", **options: Any) -> None:
        """A failure is noted under `what`; `health/ready` is unavailable in a test."""
        self._raised = ""
        with transaction.atomic():
            answer = self._client.generic(method, place, body, **options)
            if answer.streaming:
                b"".join(answer.streaming_content)
            transaction.set_rollback(True)
        if self._raised or (answer.status_code >= 500 and "health" not in place):
            told = f"{method} {place[:200]} {body[:200]} -> {answer.status_code} {self._raised}"
            self.failed.setdefault(what, told)


@pytest.fixture(scope="module")
def world(module_rows: None) -> World:
    return small_world()


@pytest.fixture
def asker(world: World, db: None) -> Iterator[Asker]:
    asking = Asker(world)
    yield asking
    asking.close()


def shares(chosen: Sequence[Route]) -> list[Any]:
    return [pytest.param(chosen[group::_GROUPS], id=str(group)) for group in range(_GROUPS)]


@pytest.mark.parametrize("chosen", shares([each for each in _ROUTES if each.parameters]))
def test_no_address_fails_with_a_hostile_path(
    world: World, asker: Asker, chosen: Sequence[Route]
) -> None:
    for turn, route in enumerate(chosen):
        usual = {name: world.path_value(route, name) for name in route.parameters}
        method = "POST" if rule_of(POST, route) else "GET"
        for name in route.parameters:
            for value in hostile.some([*hostile.UNSTORABLE, *map(quoted, hostile.NUMBERS)], turn):
                place = route.template % {**usual, name: value}
                asker.ask(f"{route.name} {name}={value[:30]}", method, place)

    assert not asker.failed, "\n".join(asker.failed.values())


@pytest.mark.parametrize("chosen", shares(_ROUTES))
def test_no_address_fails_with_a_hostile_query(
    world: World, asker: Asker, chosen: Sequence[Route], monkeypatch: pytest.MonkeyPatch
) -> None:
    for turn, route in enumerate(chosen):
        place = address(world, route)
        with hostile.names_read(monkeypatch) as names:
            asker.ask(route.name, "GET", place)
        for query in hostile.queries(sorted(names), turn):
            asker.ask(f"{route.name}?{query[:60]}", "GET", f"{place}?{query}")

    assert not asker.failed, "\n".join(asker.failed.values())


@pytest.mark.parametrize(
    "chosen", shares([each for each in _POSTED if not each.name.startswith(_PROGRAMS)])
)
def test_no_page_fails_with_a_hostile_form(
    world: World, asker: Asker, chosen: Sequence[Route], monkeypatch: pytest.MonkeyPatch
) -> None:
    for turn, route in enumerate(chosen):
        place, body = address(world, route), BODIES.get(route.name, dict)()
        texts = {name: quoted(str(each)) for name, each in body.items() if not _has_file(each)}
        with hostile.names_read(monkeypatch) as names:
            asker.ask(route.name, "POST", place, _form(texts), content_type=_FORM)
        for query in hostile.queries(sorted({*names, *texts}), turn):
            # Of two fields with one name the last one counts.
            form = f"{_form(texts)}&{query}"
            asker.ask(f"{route.name} {query[:60]}", "POST", place, form, content_type=_FORM)

    assert not asker.failed, "\n".join(asker.failed.values())


def _form(texts: Mapping[str, str]) -> str:
    return "&".join(f"{name}={value}" for name, value in texts.items())


def _has_file(value: Any) -> bool:
    return any(hasattr(each, "read") for each in (value if isinstance(value, list) else [value]))


@pytest.mark.parametrize("chosen", shares([each for each in _ROUTES if "api:" in each.name]))
def test_no_endpoint_fails_with_a_hostile_body(
    world: World, asker: Asker, chosen: Sequence[Route]
) -> None:
    for method, rules in (("POST", POST), ("PUT", PUT)):
        for turn, route in enumerate(each for each in chosen if rule_of(rules, each)):
            body = BODIES.get(route.name, dict)()
            if any(map(_has_file, body.values())):
                continue
            place = address(world, route)
            for text in hostile.bodies(body, turn):
                asker.ask(
                    f"{method} {route.name} {text[:80]}", method, place, text, content_type=_JSON
                )

    assert not asker.failed, "\n".join(asker.failed.values())


def _registration(pilot: Pilot) -> dict[str, Any]:
    return {"pilot": str(pilot.uuid), "secret": factories.SECRET, "token": "t" * 64, "node": NODE}


_CHECK = {"key": "k", "name": "n", "is_ok": True, "kind": "", "reason": "", "metrics": {"m": 1}}
_TOLD = {"job": 1, "attempt": 1, "attributes": {"A": 1}, "usage": {"wall_s": 1}}
_CLAIM = OFFER | {"claim": "a" * 32}
_MESSAGES: dict[str, Callable[[Pilot], dict[str, Any]]] = {
    "register": _registration,
    "unfit": lambda pilot: _registration(pilot) | {"reason": "no disk"},
    "checks": lambda _: {"checks": [_CHECK | {"seconds": 1}]},
    "heartbeat": lambda _: {"jobs": [_TOLD], "totals": {"cores": 1}, "load": {"load_1min": 1},
                            "is_draining": False, "sequence": 1},
    "claim": lambda _: _CLAIM,
    "report": lambda _: ENDED | {"claim": _CLAIM, "stopped_by": "", "usage": {"wall_s": 1}},
    "end": lambda _: {"reason": "idle", "detail": "", "totals": {"cores": 1}},
}  # fmt: skip


@pytest.mark.parametrize("name", _MESSAGES)
def test_no_message_of_a_pilot_makes_the_portal_fail(world: World, asker: Asker, name: str) -> None:
    route = next(each for each in _ROUTES if each.name == f"pilot_api:{name}")
    place, credential = address(world, route), f"Bearer {world.pilot.uuid}:{'t' * 64}"
    for text in hostile.bodies(_MESSAGES[name](world.pilot), list(_MESSAGES).index(name)):
        asker.ask(
            f"{name} {text[:80]}", "POST", place, text,
            content_type=_JSON, headers={"Authorization": credential},
        )  # fmt: skip

    assert not asker.failed, "\n".join(asker.failed.values())
