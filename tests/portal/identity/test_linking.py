"""People link further identities by logging in with them, and unlink all but the last way in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import time_machine
from django.test import Client

from tests import factories
from tests.identity_provider.fixtures import PORTAL
from tests.identity_provider.server import Person, Provider
from wms.core.actors import Actor
from wms.core.identities import link_identity
from wms.core.identity_models import Identity
from wms.core.models import AuditEntry, User

pytestmark = pytest.mark.django_db
LINK, TAB = "/account/identities/", "/account/?tab=identities"
BEGIN = "/login/openid/iam/"
ELSEWHERE = "https://other.example.org/"


@pytest.fixture
def people(provider: Provider) -> SimpleNamespace:
    return factories.people()


@pytest.fixture
def alice(client: Client, people: SimpleNamespace) -> Client:
    client.force_login(people.alice)
    return client


def link(browser: Client, username: str, password: str = factories.PASSWORD) -> Any:
    """Answer of the portal to a person who links the identity of this name."""
    begun = browser.post(LINK, {"provider": "iam", "password": password})
    assert begun.status_code == 302, begun.content.decode()
    return go_on(browser, begun["Location"], username)


def go_on(browser: Client, address: str, username: str) -> Any:
    back = Person(username).agree(address, allow="Authorize")
    return browser.get(back.removeprefix(PORTAL))


def log_in(browser: Client, username: str, **asked: str) -> Any:
    return go_on(browser, browser.get(BEGIN, asked)["Location"], username)


def unlink(browser: Client, identity: Identity, password: str = factories.PASSWORD) -> Any:
    return browser.post(f"{LINK}{identity.pk}/unlink/", {"password": password})


def test_an_identity_is_linked_by_logging_in_with_it_and_opens_the_account(
    alice: Client, people: SimpleNamespace, provider: Provider
) -> None:
    subject = provider.person("alice-of-iam")

    answer = link(alice, "alice-of-iam")

    assert (answer.status_code, answer["Location"]) == (302, TAB)
    row = Identity.objects.get(user=people.alice)
    assert (row.subject, row.linked_by) == (subject, "alice")
    assert (row.last_used_from, row.issuer) == ("127.0.0.1", provider.issuer)
    entry = AuditEntry.objects.get(action="link identity")
    assert (entry.actor, entry.target, entry.facts["subject"]) == ("alice", "user alice", subject)
    page = alice.get(TAB).content.decode()
    assert f'id="unlink-{row.pk}"' in page
    other = Client()
    log_in(other, "alice-of-iam")
    assert other.session["_auth_user_id"] == str(people.alice.pk)
    assert link(alice, "alice-of-iam").status_code == 302
    assert AuditEntry.objects.filter(action="link identity").count() == 1


def test_nothing_is_begun_without_the_password_or_by_reading(
    alice: Client, provider: Provider
) -> None:
    wrong = alice.post(LINK, {"provider": "iam", "password": "no"})

    assert wrong.status_code == 403
    assert alice.get(LINK).status_code == 405
    assert alice.post(LINK, {"provider": "no", "password": factories.PASSWORD}).status_code == 404
    assert Client(enforce_csrf_checks=True).post(LINK, {"provider": "iam"}).status_code == 403
    assert "socialaccount_states" not in alice.session


def test_what_is_linked_to_another_account_is_refused(
    alice: Client, people: SimpleNamespace, provider: Provider
) -> None:
    subject = provider.person("bob-of-iam")
    link_identity(
        people.bob, provider.issuer, subject, actor=Actor.person(people.ada), reason="mail"
    )

    assert link(alice, "bob-of-iam").status_code == 409
    assert Identity.objects.get().user == people.bob
    assert alice.get("/jobs/").status_code == 200


def test_a_link_that_another_account_began_in_this_browser_is_not_ended(
    alice: Client, people: SimpleNamespace, provider: Provider
) -> None:
    provider.person("carla")
    begun = alice.post(LINK, {"provider": "iam", "password": factories.PASSWORD})
    kept = alice.session["socialaccount_states"]
    alice.force_login(people.bob)
    session = alice.session
    session["socialaccount_states"] = kept
    session.save()

    assert go_on(alice, begun["Location"], "carla").status_code == 400
    assert not Identity.objects.exists()


def test_who_has_a_password_unlinks_any_and_others_keep_the_last_way_in(
    alice: Client, people: SimpleNamespace, provider: Provider
) -> None:
    provider.person("dora")
    link(alice, "dora")
    dora = Identity.objects.get()
    assert unlink(alice, dora, "no").status_code == 403
    other = link_identity(people.alice, ELSEWHERE, "7b2e", actor=Actor.system("tests"))
    User.objects.filter(pk=people.alice.pk).update(password="!")
    alice.force_login(User.objects.get(pk=people.alice.pk))

    # By the other one nobody logs in: its issuer is no provider here.
    assert unlink(alice, dora).status_code == 403
    log_in(alice, "dora", fresh="1")
    assert unlink(alice, dora).status_code == 409
    assert unlink(alice, other).status_code == 302
    assert list(Identity.objects.all()) == [dora]

    people.alice.set_password(factories.PASSWORD)
    people.alice.save(update_fields=["password"])
    alice.force_login(people.alice)
    assert unlink(alice, dora).status_code == 302
    assert unlink(alice, dora).status_code == 404
    assert AuditEntry.objects.filter(action="unlink identity", actor="alice").count() == 2


def test_who_has_no_password_links_after_a_login_of_the_last_minutes(
    client: Client, provider: Provider
) -> None:
    for name in ("edda", "edda-of-cern"):
        provider.person(name)
    log_in(client, "edda", fresh="1", next=TAB)

    with time_machine.travel(datetime.now(UTC) + timedelta(minutes=11)):
        assert client.post(LINK, {"provider": "iam"}).status_code == 403
    assert link(client, "edda-of-cern", "").status_code == 302
    assert User.objects.get().identities.count() == 2
