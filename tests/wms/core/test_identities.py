"""Identities while two do something at once: one account for each, and one way in for a person."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone

from tests import factories
from wms.core.actors import Actor
from wms.core.errors import Conflict, LoginRefused
from wms.core.identities import link_identity, link_own_identity, unlink_identities
from wms.core.identity_models import Identity
from wms.core.login_tokens import issue_login_token
from wms.core.models import ApiToken, AuditEntry, User

ISSUER = "https://iam.example.org/"
ACTOR = Actor.system("tests")
pytestmark = pytest.mark.django_db(transaction=True)


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """Outcomes of calls that begin together: what each returned, or the Conflict that it raised."""
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        barrier.wait()
        try:
            return call()
        except Conflict as error:
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def test_of_two_people_who_link_one_identity_one_gets_it() -> None:
    first, second = factories.person("alice"), factories.person("bob")

    def link(user: User) -> Any:
        return link_own_identity(user.pk, ISSUER, "7b2e", now=timezone.now())

    done = at_once(lambda: link(first), lambda: link(second))

    assert sorted(isinstance(each, Conflict) for each in done) == [False, True]
    assert AuditEntry.objects.filter(action="link identity").count() == 1
    assert Identity.objects.get().linked_by == Identity.objects.get().user.username


def test_who_unlinks_both_ways_in_at_once_keeps_one() -> None:
    alice = factories.person("alice")
    User.objects.filter(pk=alice.pk).update(password="!")
    rows = [link_identity(alice, ISSUER, name, actor=ACTOR) for name in ("one", "two")]
    actor = Actor.person(User.objects.get(pk=alice.pk))

    def unlink(row: Identity) -> Any:
        return unlink_identities([row.pk], actor=actor, login_issuers={ISSUER})

    done = at_once(lambda: unlink(rows[0]), lambda: unlink(rows[1]))

    assert sorted(isinstance(each, Conflict) for each in done) == [False, True]
    assert Identity.objects.count() == 1


def test_a_login_and_its_repetition_at_once_are_one_and_end_with_the_link() -> None:
    alice, now = factories.person("alice"), timezone.now()
    identity = link_identity(alice, ISSUER, "7b2e", actor=ACTOR)

    def log_in() -> Any:
        return issue_login_token(identity, id_token="e30.first.c2ln", name="laptop", now=now)

    at_once(log_in, log_in)

    row = ApiToken.objects.get()
    unlink_identities([identity.pk], actor=ACTOR, reason="left")
    row.refresh_from_db()
    assert row.revoked_at is not None
    with pytest.raises(LoginRefused):
        log_in()


def test_who_unlinks_while_a_login_ends_waits_for_it_and_ends_its_token() -> None:
    alice, now = factories.person("alice"), timezone.now()
    identity = link_identity(alice, ISSUER, "7b2e", actor=ACTOR)

    def unlink() -> Any:
        try:
            return unlink_identities([identity.pk], actor=ACTOR, reason="left").changed
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            issue_login_token(identity, id_token="e30.first.c2ln", name="laptop", now=now)
            unlinked = pool.submit(unlink)
            while not unlinked.done() and not _somebody_waits():
                pass
        assert unlinked.result() == [identity.pk]

    assert ApiToken.objects.get().revoked_at is not None


def _somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
        return bool(cursor.fetchone()[0])
