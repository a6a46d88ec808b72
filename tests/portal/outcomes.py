"""Requests to any address of the portal in any role, with their outcomes as single letters.

The letters are those of `tests.portal.permissions`. What a request changes is taken back.
"""

from __future__ import annotations

import logging
from contextlib import nullcontext
from copy import deepcopy
from itertools import groupby
from typing import Any

import pytest
from django.db import transaction
from django.http import HttpResponseBase
from django.test import Client
from django.urls import reverse

from tests.portal.permissions import ROLES
from tests.portal.routes import Route
from tests.portal.world import World

#: Outcomes of requests that went no further: they cost little.
REFUSED = "Lfmn"
#: Of so many addresses one is tried with roles that are not next to others.
_TURNS = 3


@pytest.fixture
def unlogged_refusals(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody reads thousands of refusals, each written twice with its traceback."""
    caplog.set_level(logging.ERROR, "django.request")


@pytest.fixture
def blank_pages(monkeypatch: pytest.MonkeyPatch, unlogged_refusals: None) -> None:
    """Pages are left blank: who may see them is decided before they are written."""
    monkeypatch.setattr("django.template.backends.django.Template.render", lambda *_, **__: "")


@pytest.fixture
def plain_pages(monkeypatch: pytest.MonkeyPatch, unlogged_refusals: None) -> None:
    """Pages are written as for users: a test keeps a copy of the context of each template else."""
    monkeypatch.setattr(
        "django.template.base.Template._render",
        lambda template, context: template.nodelist.render(context),
    )


def tried_roles(rule: str, turn: int) -> list[str]:
    """Roles that a rule of permissions is tried with.

    Of neighbours with one outcome it is who is nearest to the others - the weakest of those who are
    let in, the strongest of those who are refused - and in every third turn one of the rest, each
    in its own: what decides about them is shared by many addresses.
    """
    further, is_none = divmod(turn, _TURNS)
    tried: list[str] = []
    for outcome_, neighbours in groupby(zip(rule, ROLES, strict=True), key=lambda each: each[0]):
        roles = [role for _, role in neighbours]
        tried.append(roles.pop(-1 if outcome_ in REFUSED else 0))
        if roles and not is_none:
            tried.append(roles[further % len(roles)])
    return tried


def address(world: World, route: Route) -> str:
    if route.name == "admin:<<path:object_id>/>":
        return f"{reverse('admin:index')}sites/site/{world.site.pk}/nothing/"
    if route.name.startswith("admin:<"):
        return f"{reverse('admin:index')}nothing/"
    return world.address(route)


def outcome(answer: HttpResponseBase) -> str:
    letters = {400: "b", 401: "L", 403: "f", 404: "n", 405: "m", 409: "c", 503: "u"}
    if _is_sent_to(answer, "web:login"):
        return "L"
    status = answer.status_code
    return "o" if status < 400 else letters.get(status, str(status))


def _is_sent_to(answer: HttpResponseBase, name: str) -> bool:
    return answer.status_code == 302 and answer["Location"].startswith(f"{reverse(name)}?next=")


def client_of(world: World, role: str) -> Client:
    client = Client(raise_request_exception=False)
    if role != "anonymous":
        client.force_login(getattr(world.people, role))
    return client


def send(client: Client, method: str, address: str, body: dict[str, Any]) -> str:
    """The outcome of a request, whose changes are taken back, those of the cookies too.

    One that only reads has none, and a savepoint takes as long as a query.
    """
    cookies = deepcopy(client.cookies)
    with nullcontext() if method == "GET" else transaction.atomic():
        if method == "PUT" and body:
            answer = client.put(address, body, content_type="application/json")
        elif method != "POST":
            answer = client.generic(method, address)
        elif address.startswith("/api/") and not any(hasattr(v, "read") for v in body.values()):
            answer = client.post(address, body, content_type="application/json")
        else:
            answer = client.post(address, body)
        if answer.status_code == 302 and answer["Location"] == reverse("admin:index"):
            answer = client.get(answer["Location"])
        if _is_sent_to(answer, "admin:login"):
            # It sends visitors on to the login, and tells the others that they lack the role.
            answer = client.get(answer["Location"])
        if answer.streaming:
            # Reading a file to its end closes it.
            b"".join(answer.streaming_content)
        if method != "GET":
            transaction.set_rollback(True)
    client.cookies = cookies
    return outcome(answer)
