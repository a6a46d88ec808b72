"""Credentials for transfers: sealed, shown to their endpoint alone, and in no record."""

from __future__ import annotations

import json

import pytest
from django.core import serializers

from tests.wms.placement.conftest import placed
from tests.wms.placement.servers.http import http_server
from wms.core.actors import Actor
from wms.core.errors import InvalidInput, NotFound, NotPermitted
from wms.core.key_rotation import KeyKind, renew_all
from wms.core.models import AuditEntry
from wms.jobs.models import Workspace, WorkspaceFile
from wms.pilots.credentials.sealing import new_key
from wms.placement import runner
from wms.placement.credential_models import PlacementCredential
from wms.placement.credentials import (
    NewCredential,
    credential_for,
    delete_credential,
    set_credential,
)
from wms.placement.models import PlacementAttempt, PlacementEvent
from wms.placement.modules.protocol import FAILED, ModuleFailed

pytestmark = pytest.mark.django_db

SECRET = "open sesame"


@pytest.fixture(autouse=True)
def keys(settings) -> str:
    key = new_key()
    settings.PILOTAGE = settings.PILOTAGE | {"CREDENTIAL_KEYS": key}
    return key


@pytest.fixture
def site():
    with http_server() as running:
        running.files["/x"] = b"content"
        yield running


def store(owner, endpoint, **more) -> PlacementCredential:
    given = more or {"user": "alice", "password": SECRET}
    new = NewCredential(endpoint, **given)
    return set_credential(new, owner=owner, actor=Actor.person(owner), reason="new disk")[0]


def test_a_transfer_shows_its_owners_credential_to_its_endpoint(transfer, alice, pool, site):
    site.password = f"alice:{SECRET}"
    store(alice, f"http://127.0.0.1:{site.port}")

    request = transfer(site.url("/x"), "file:x")

    assert placed(request, "x") == b"content"


def test_a_wrong_password_is_told_and_stands_nowhere(transfer, alice, pool, site):
    site.password = "alice:other"
    store(alice, f"http://127.0.0.1:{site.port}")

    request = transfer(site.url("/x"), "file:x")

    assert "refuses the one that is stored" in request.state_reason
    rows = [
        *PlacementCredential.objects.all(), *PlacementAttempt.objects.all(),
        *PlacementEvent.objects.all(), *AuditEntry.objects.all(), request,
    ]  # fmt: skip
    assert SECRET not in serializers.serialize("json", rows)
    assert AuditEntry.objects.get().reason == "new disk"


def test_a_credential_goes_to_no_other_endpoint_or_owner(transfer, alice, charlie, pool, site):
    with http_server() as other:
        other.files["/x"] = b"content"
        site.redirects = {"/to": other.url("/x")}
        store(alice, f"http://127.0.0.1:{site.port}", token="t" * 20)
        store(charlie, f"http://127.0.0.1:{other.port}")

        transfer(site.url("/to"), "file:x")

        assert site.credentials == ["Bearer " + "t" * 20]
        assert other.credentials == [""]


def test_a_credential_that_is_set_again_takes_the_place_of_the_first(alice):
    first = store(alice, "davs://s.example:8443/")
    second = store(alice, "davs://S.example:8443", token="abc")

    assert first.pk == second.pk
    found = credential_for(alice.pk, "davs", "s.example", 8443, limited_to=None)
    assert (found.token, found.user) == ("abc", "")
    assert "abc" not in repr(found)


def test_nobody_sets_or_deletes_credentials_of_others(alice, sam):
    stored = store(alice, "ftp://s.example")

    with pytest.raises(NotPermitted):
        set_credential(
            NewCredential("ftp://s.example", "a", "b"), owner=alice, actor=Actor.person(sam)
        )
    with pytest.raises(NotFound):
        delete_credential(stored.pk, owner=sam, actor=Actor.person(sam))
    delete_credential(stored.pk, owner=alice, actor=Actor.person(alice))
    assert credential_for(alice.pk, "ftp", "s.example", 21, limited_to=None) is None


@pytest.mark.parametrize(
    ("endpoint", "given", "field"),
    [
        ("file:///x", {"token": "t"}, "endpoint"),
        ("https://h/path", {"token": "t"}, "endpoint"),
        ("https://u:p@h", {"token": "t"}, "endpoint"),
        ("https://h:0", {"token": "t"}, "endpoint"),
        ("https://", {"token": "t"}, "endpoint"),
        ("https://h", {"token": "two words"}, "token"),
        ("https://h", {"token": "t", "user": "u"}, "token"),
        ("ftp://h", {"token": "t"}, "token"),
        ("ftp://h", {"user": "u\r\nDELE x", "password": "p"}, "user"),
        ("ftp://h", {"user": "u", "password": "p\n"}, "password"),
        ("ftp://h", {"user": "a:b", "password": "p"}, "user"),
    ],
)
def test_what_is_no_credential_is_refused_with_its_field(alice, endpoint, given, field):
    with pytest.raises(InvalidInput) as caught:
        store(alice, endpoint, **given)

    assert [each.field for each in caught.value.findings] == [field]


def test_credentials_are_sealed_anew_with_those_of_pilots(alice, keys, settings):
    store(alice, "ftp://s.example")
    before = PlacementCredential.objects.get().sealed
    settings.PILOTAGE = settings.PILOTAGE | {"CREDENTIAL_KEYS": f"{new_key()},{keys}"}

    results = renew_all({KeyKind.CREDENTIALS}, actor=Actor.system("test"))

    assert sum(each.renewed for each in results) == 1
    assert PlacementCredential.objects.get().sealed != before
    assert credential_for(alice.pk, "ftp", "s.example", 21, limited_to=None).secret == SECRET
    assert json.dumps(AuditEntry.objects.latest("pk").facts).count(SECRET) == 0


def test_what_a_limited_token_has_submitted_is_given_no_credential(transfer, alice, pool, site):
    site.password = f"alice:{SECRET}"
    store(alice, f"http://127.0.0.1:{site.port}")
    request = transfer(site.url("/x"), "file:x", attempts=0)
    Workspace.objects.filter(pk=request.workspace_id).update(limited_to=1)

    runner.run_due()

    attempt = request.attempts.get()
    assert (attempt.exit_code, attempt.size_bytes) == (FAILED, None)
    assert not WorkspaceFile.objects.filter(path="x").exists()
    with pytest.raises(ModuleFailed):
        credential_for(alice.pk, "http", "127.0.0.1", site.port, limited_to=1)
