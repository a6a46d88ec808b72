"""Wallboards: who makes and revokes an address, what it opens, and what a screen shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace

import pytest
import time_machine
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests import factories
from tests.portal.walled_world import MARK, walled_world
from wms.core.actors import Actor
from wms.core.errors import InvalidInput, NotPermitted, ReasonRequired
from wms.core.models import ApiToken, AuditEntry, ControlLoop, Role, TokenKind, User
from wms.core.tokens import issue_token, revoke_tokens, visible_tokens
from wms.core.wallboards import make_wallboard, revoke_wallboards, visible_wallboards
from wms.dags.lifecycle import apply_to_dags
from wms.remarks.services import acknowledge

SCREEN = "/wallboard/"


def board_of(user: User, **how: object) -> tuple[ApiToken, str]:
    values = {"name": "control room", "days": 30, "reason": "shifts", "now": timezone.now()} | how
    issued = make_wallboard(actor=Actor.person(user), **values)  # type: ignore[arg-type]
    return issued.row, issued.text


def test_a_shifter_makes_an_address_that_is_shown_once_and_revokes_it(
    people: SimpleNamespace, browser_of: Callable[[User], Client]
) -> None:
    sam, olga, at = browser_of(people.sam), browser_of(people.olga), reverse("web:wallboards")
    sent = {"name": "control room", "days": "30", "reason": "night shifts"}

    made = sam.post(at, sent)
    address = made.context["made"]["address"]
    shown = Client().get(address)

    assert (made.status_code, shown.status_code) == (200, 200)
    row = ApiToken.objects.get(kind=TokenKind.WALLBOARD)
    assert row.secret_sha256 not in address
    assert address not in sam.get(at).content.decode()
    assert (shown["Referrer-Policy"], shown["Cache-Control"]) == ("no-referrer", "no-store")
    revoking = reverse("web:revoke-wallboard", args=[row.pk])
    assert olga.post(revoking, {"reason": ""}).status_code == 400
    assert olga.post(revoking, {"reason": "the screen was sold"}).status_code == 302
    assert olga.post(revoking, {"reason": "again"}).status_code == 409
    assert Client().get(address).status_code == 401
    audited = AuditEntry.objects.filter(target=f"user sam, wallboard {row.prefix}").order_by("pk")
    assert [(each.action, each.actor, each.reason) for each in audited] == [
        ("make wallboard", "sam", "night shifts"),
        ("revoke wallboard", "olga", "the screen was sold"),
    ]


def test_what_cannot_be_made_is_refused_and_changes_nothing(people: SimpleNamespace) -> None:
    for user, how, error in (
        (people.alice, {}, NotPermitted), (people.sam, {"reason": " "}, ReasonRequired),
        (people.sam, {"days": 0}, InvalidInput), (people.sam, {"days": 367}, InvalidInput),
        (people.sam, {"name": " "}, InvalidInput),
    ):  # fmt: skip
        with pytest.raises(error):
            board_of(user, **how)
    assert not ApiToken.objects.exists()
    row, _ = board_of(people.sam)
    with pytest.raises(NotPermitted):
        revoke_wallboards([row.pk], actor=Actor.person(people.alice), reason="no")
    assert not visible_wallboards(people.alice).exists()


def test_its_token_opens_nothing_else_and_no_other_token_opens_it(people: SimpleNamespace) -> None:
    sam = Actor.person(people.sam)
    row, text = board_of(people.sam)
    other = issue_token(people.sam, name="read", actor=sam, scopes=["read"]).text
    client = Client()

    assert client.get(SCREEN, {"token": text}).status_code == 200
    assert client.get(SCREEN, {"token": other}).status_code == 401
    assert client.get(SCREEN).status_code == 401
    assert client.post(SCREEN, {"token": text}).status_code == 405
    for path in ("/api/v1/dags/", "/api/v1/downtimes.ics"):
        assert client.get(path, {"token": text}).status_code == 401
        assert client.get(path, HTTP_AUTHORIZATION=f"Token {text}").status_code == 401
    assert not visible_tokens(people.ada).filter(pk=row.pk).exists()
    assert revoke_tokens([row.pk], actor=sam).skipped == [row.pk]
    with time_machine.travel(timezone.now() + timedelta(days=31)):
        assert client.get(SCREEN, {"token": text}).status_code == 401
    User.objects.filter(pk=people.sam.pk).update(is_active=False)
    assert client.get(SCREEN, {"token": text}).status_code == 401


def test_a_screen_shows_unacknowledged_failures_sites_in_trouble_and_no_link(
    people: SimpleNamespace,
) -> None:
    first, second, known = (factories.dag(people.alice, name=f"{n}.dag") for n in "abc")
    for dag, reason in ((first, "disk full"), (second, "no network"), (known, "broken")):
        apply_to_dags("fail", [dag.pk], actor=factories.SYSTEM, reason=reason)
    acknowledge("dag", [known.pk], actor=Actor.person(people.sam), reason="known")
    factories.site("UW")
    ControlLoop.objects.create(name="dag-auditor", period_s=86400)
    ControlLoop.objects.create(name="negotiator", period_s=5, known_since="2026-01-01T00:00Z")
    _, text = board_of(people.sam)

    page = Client().get(SCREEN, {"token": text})
    part = Client().get(SCREEN, {"token": text}, HTTP_HX_REQUEST="true", HTTP_HX_TARGET="live")

    wall = page.context["wall"]
    assert [item.name for item in wall.failures] == [f"a {first.pk}", f"b {second.pk}"]
    assert {tile.state for tile in wall.dags} == {"idle", "running", "held", "halted"}
    for shown in (page, part):
        links = re.findall(r'<a [^>]*href="([^"]*)"', shown.content.decode())
        assert set(links) <= {"#content"}
    assert part["X-Refresh-Every"] == "15"
    assert [loop.name for loop in page.context["board"].sick_loops] == ["negotiator"]
    assert 'id="wall-old"' in part.content.decode()


def test_a_screen_sees_what_its_maker_may_see_now(db: None) -> None:
    world = walled_world()
    maker = world.people["user"]
    User.objects.filter(pk=maker.pk).update(role=Role.SHIFTER)
    maker.refresh_from_db()
    _, text = board_of(maker)
    open_board = Client().get(SCREEN, {"token": text})
    User.objects.filter(pk=maker.pk).update(role=Role.USER)

    walled = Client().get(SCREEN, {"token": text})

    assert open_board.status_code == walled.status_code == 200
    assert MARK not in walled.content.decode()
