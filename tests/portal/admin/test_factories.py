"""Administration of partners that call, or are called: tokens shown once, and where they belong."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from tests import factories
from tests.portal.admin.filling import filled
from wms.accounting.models import Frontend
from wms.core.models import User
from wms.factories.models import RemoteFactory
from wms.factories.tokens import is_token
from wms.pilots.factory_models import RemoteFrontend

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def olga(db: None) -> Client:
    factories.people()
    client = Client()
    client.force_login(User.objects.get(username="olga"))
    return client


def shown_token(content: bytes) -> str:
    """Token on a page; empty where there is none."""
    found = re.search(r'<code id="token">([^<]+)</code>', content.decode())
    return found.group(1) if found else ""


def test_a_frontend_that_calls_gets_a_token_that_is_shown_once(olga: Client) -> None:
    south = Frontend.objects.create(name="south")
    at, route = "/admin/pilots/remotefrontend/add/", "admin:pilots_remotefrontend_add"
    body = filled(olga, at, route) | {"frontend": south.pk, "url": "", "factory_name": ""}

    first = shown_token(olga.post(at, body).content)

    remote = RemoteFrontend.objects.get()
    assert (remote.is_caller, is_token(first, remote.token_sha256)) == (True, True)
    at = f"/admin/pilots/remotefrontend/{remote.pk}/change/"
    assert first not in olga.get(at).content.decode()
    # Without a reason nothing happens to it; with one it is another.
    own = {"frontend": south.pk, "is_enabled": "on", "token": "renew"}
    assert "reason" in olga.post(at, own).context["adminform"].form.errors
    second = shown_token(olga.post(at, own | {"reason": "lost"}).content)
    remote.refresh_from_db()
    assert (second != first, is_token(second, remote.token_sha256)) == (True, True)
    assert "calls this one" in olga.get("/frontends/south/").content.decode()

    # One that is called has its token at the other side.
    called = own | {"url": "https://south.example.org", "factory_name": "here", "reason": "turn"}
    assert "token" in olga.post(at, called).context["adminform"].form.errors
    assert olga.post(at, called | {"token": ""}).status_code == 302
    remote.refresh_from_db()
    assert (remote.is_caller, remote.token_sha256) == (False, "")


def test_a_factory_that_is_called_gets_no_token_here(olga: Client) -> None:
    at, route = "/admin/factories/remotefactory/add/", "admin:factories_remotefactory_add"
    body = filled(olga, at, route)
    address = {"url": "https://north.example.org", "frontend_name": "south"}
    for name in address:
        half = olga.post(at, body | {name: address[name]})
        assert "frontend_name" in half.context["adminform"].form.errors

    assert olga.post(at, body | address).status_code == 302

    factory = RemoteFactory.objects.get()
    assert (factory.url, factory.token_sha256) == (address["url"], "")
    RemoteFactory.objects.update(error="it cannot be reached: no route", failures=3)
    page = olga.get(f"/factories/{factory.name}/").content.decode()
    assert ("no route" in page, address["url"] in page) == (True, True)
    token_at = f"/api/v1/remote-factories/{factory.name}/token/?reason=new"
    assert olga.post(token_at).status_code == 409
