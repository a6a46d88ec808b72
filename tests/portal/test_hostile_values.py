"""No value in an address, a form or a body makes the portal fail, whatever it is.

Every address is asked with hostile values (`tests/portal/hostile.py`): in each part of its path, in
the parameters and fields that its view looks for, and in each value of its JSON body. They are sent
together, and each place has some of the values, in turns, for what reads them is shared by many;
where the code that reads a parameter is met for the first time, it has one that is sent alone. What
fails is tried in parts, so that the message names the one that does it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from copy import deepcopy
from typing import Any

import pytest
from django.core.signals import got_request_exception
from django.db import connection, transaction
from django.http import HttpRequest
from django.test import Client
from psycopg.pq import TransactionStatus

from tests import factories
from tests.portal import hostile
from tests.portal.bodies import BODIES
from tests.portal.hostile import quoted
from tests.portal.outcomes import address, plain_pages, unlogged_refusals
from tests.portal.permissions import POST, PUT, rule_of
from tests.portal.pilot_api.pilot_client import ENDED, NODE, OFFER
from tests.portal.routes import routes
from tests.portal.world import World, small_world
from wms.pilots.models import Pilot

pytestmark = [pytest.mark.slow, pytest.mark.process, pytest.mark.usefixtures("plain_pages")]

__all__ = ["plain_pages", "unlogged_refusals"]

_ROUTES = routes()
_POSTED = [route for route in _ROUTES if rule_of(POST, route)]
_PROGRAMS = ("api:", "pilot_api:", "factory_api:")
_FORM = "application/x-www-form-urlencoded"
_JSON = "application/json"


class Asker:
    """Sends requests as an administrator, takes their changes back, and notes what failed."""

    def __init__(self, world: World) -> None:
        self.failed: dict[str, str] = {}
        self._readers: set[str] = set()
        # Wrong passwords are counted by address, and longer than a test lasts.
        self._client = Client(raise_request_exception=False, REMOTE_ADDR="192.0.2.1")
        self._client.force_login(world.people.ada)
        self._raised = ""
        self._begun = transaction.savepoint()
        got_request_exception.connect(self._note)

    def close(self) -> None:
        got_request_exception.disconnect(self._note)

    def _note(self, sender: object, request: HttpRequest, **_: Any) -> None:
        kind, error, _trace = sys.exc_info()
        self._raised = f"{kind.__name__ if kind else ''}: {error!s:.200}"

    def ask(self, what: str, method: str, place: str, body: str = "", **options: Any) -> bool:
        """Whether all is well. A failure is noted under `what`; `health/ready` is unavailable."""
        self._raised, cookies = "", deepcopy(self._client.cookies)
        # What only reads leaves nothing to be taken back but a failed statement.
        with nullcontext() if method == "GET" else transaction.atomic():
            answer = self._client.generic(method, place, body, **options)
            if answer.streaming:
                b"".join(answer.streaming_content)
            if method != "GET":
                transaction.set_rollback(True)
        if connection.connection.info.transaction_status is TransactionStatus.INERROR:
            transaction.savepoint_rollback(self._begun)
        # Who was logged out is so no more.
        self._client.cookies = cookies
        is_well = not self._raised and (answer.status_code < 500 or "health" in place)
        if not is_well:
            told = f"{method} {place[:200]} {body[:200]} -> {answer.status_code} {self._raised}"
            self.failed.setdefault(what, told)
        return is_well

    def ask_with(
        self,
        name: str,
        given: Sequence[tuple[str, str]],
        send: Callable[[str, str], bool],
    ) -> None:
        """Send parameters together, and those that fail together one by one."""
        if not send(name, hostile.encoded(given)):
            for each, text in given:
                send(f"{name} {each}={text[:60]}", hostile.encoded([(each, text)]))

    def ask_for_names(
        self, name: str, reads: hostile.Reads, turn: int, send: Callable[[str, str], bool]
    ) -> None:
        """Send hostile values of what is read, of what is met first alone too, and hostile names.

        Alone, because what is wrong elsewhere often keeps a value from getting far. Where nothing
        is met first, values are sent in every second turn.
        """
        names, readers = sorted(reads), {reads[each]: each for each in sorted(reads)}
        fresh = sorted(readers.keys() - self._readers)
        for reader in fresh:
            send(f"{name} {readers[reader]}", hostile.encoded([(readers[reader], hostile.DEEP)]))
        if names and (fresh or turn % 2):
            self.ask_with(name, hostile.pairs(names, turn), send)
        if fresh:
            self.ask_with(name, hostile.pairs(names, turn + 7), send)
        send(f"{name} names", f"{hostile.NAMES[turn % len(hostile.NAMES)]}=1")
        self._readers.update(fresh)


@pytest.fixture(scope="module")
def world(module_rows: None) -> World:
    return small_world()


@pytest.fixture
def asker(world: World, db: None) -> Iterator[Asker]:
    asking = Asker(world)
    yield asking
    asking.close()


def test_no_address_fails_with_a_hostile_path(world: World, asker: Asker) -> None:
    """A number in an address is read by one converter: what is no number leads nowhere."""
    turn = 0
    for route in _ROUTES:
        usual = {name: world.path_value(route, name) for name in route.parameters}
        method = "POST" if rule_of(POST, route) else "GET"
        for name in sorted(route.parameters):
            values = [quoted(hostile.NUMBERS[turn % len(hostile.NUMBERS)])]
            if not isinstance(usual[name], int) or name == "object_id":
                values.append(hostile.UNSTORABLE[turn % len(hostile.UNSTORABLE)])
            turn += 1
            for value in values:
                place = route.template % {**usual, name: value}
                asker.ask(f"{route.name} {name}={value[:30]}", method, place)

    assert not asker.failed, "\n".join(asker.failed.values())


def test_no_address_fails_with_a_hostile_query(
    world: World, asker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for turn, route in enumerate(_ROUTES):
        place = address(world, route)

        def send(what: str, query: str, place: str = place) -> bool:
            return asker.ask(f"{what}?{query[:60]}", "GET", f"{place}?{query}")

        with hostile.names_read(monkeypatch) as reads:
            asker.ask(route.name, "GET", place)
        asker.ask_for_names(route.name, reads, turn, send)

    assert not asker.failed, "\n".join(asker.failed.values())


def test_no_page_fails_with_a_hostile_form(
    world: World, asker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = [route for route in _POSTED if not route.name.startswith(_PROGRAMS)]
    for turn, route in enumerate(pages):
        place, body = address(world, route), BODIES.get(route.name, dict)()
        texts = {name: str(each) for name, each in body.items() if not _has_file(each)}
        usual = hostile.encoded(texts.items())

        def send(what: str, form: str, place: str = place, usual: str = usual) -> bool:
            # Of two fields with one name the last one counts.
            return asker.ask(
                f"{what} {form[:60]}", "POST", place, f"{usual}&{form}", content_type=_FORM
            )

        with hostile.names_read(monkeypatch) as reads:
            asker.ask(route.name, "POST", place, usual, content_type=_FORM)
        asker.ask_for_names(route.name, {each: each for each in texts} | reads, turn, send)
        for name in sorted(reads)[:1]:
            send(f"{route.name} unstorable", f"{name}={hostile.UNSTORABLE[0]}")

    assert not asker.failed, "\n".join(asker.failed.values())


def _has_file(value: Any) -> bool:
    return any(hasattr(each, "read") for each in (value if isinstance(value, list) else [value]))


def test_no_endpoint_fails_with_a_hostile_body(world: World, asker: Asker) -> None:
    for method, rules in (("POST", POST), ("PUT", PUT)):
        for turn, route in enumerate(each for each in _ROUTES if "api:" in each.name):
            body = BODIES.get(route.name, dict)()
            if not rule_of(rules, route) or any(map(_has_file, body.values())):
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
