"""Who makes and revokes whose tokens."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests import factories
from wms.core.actors import Actor
from wms.core.errors import NotPermitted, ReasonRequired
from wms.core.models import ApiToken, AuditEntry
from wms.core.tokens import authenticate_token, issue_token, revoke_tokens, visible_tokens

pytestmark = pytest.mark.django_db


def test_everybody_manages_their_own_tokens() -> None:
    alice = Actor.person(factories.person("alice"))

    issued = issue_token(alice.user, name="laptop", actor=alice)
    applied = revoke_tokens([issued.row.pk], actor=alice, reason="lost")

    assert applied.changed == [issued.row.pk]
    entry = AuditEntry.objects.get(action="revoke token")
    assert (entry.actor, entry.reason) == ("alice", "lost")


@pytest.mark.parametrize("name", ["bob", "sam", "olga"])
def test_nobody_below_an_administrator_manages_the_tokens_of_others(name: str) -> None:
    alice, other = factories.person("alice"), Actor.person(factories.person(name))
    factories.token_for(alice)
    ids = list(ApiToken.objects.values_list("pk", flat=True))

    with pytest.raises(NotPermitted):
        issue_token(alice, name="stolen", actor=other)
    with pytest.raises(NotPermitted):
        revoke_tokens(ids, actor=other)

    assert list(ApiToken.objects.values_list("pk", "revoked_at")) == [(ids[0], None)]


def test_one_foreign_token_spoils_the_whole_request() -> None:
    alice, bob = factories.person("alice"), factories.person("bob")
    factories.token_for(alice)
    factories.token_for(bob)

    with pytest.raises(NotPermitted):
        revoke_tokens(ApiToken.objects.values_list("pk", flat=True), actor=Actor.person(alice))

    assert not ApiToken.objects.exclude(revoked_at=None).exists()


def test_revoking_again_changes_nothing() -> None:
    alice = Actor.person(factories.person("alice"))
    issued = issue_token(alice.user, name="laptop", actor=alice)
    revoke_tokens([issued.row.pk], actor=alice)

    again = revoke_tokens([issued.row.pk, 10**15], actor=alice)

    assert (again.changed, again.skipped) == ([], [issued.row.pk, 10**15])
    assert AuditEntry.objects.filter(action="revoke token").count() == 1


def test_whoever_ends_the_token_of_another_says_why() -> None:
    factories.token_for(factories.person("alice"))
    [token] = ApiToken.objects.all()

    for actor in (Actor.person(factories.person("ada")), factories.SYSTEM):
        with pytest.raises(ReasonRequired):
            revoke_tokens([token.pk], actor=actor)

    assert not ApiToken.objects.exclude(revoked_at=None).exists()


def test_administrators_see_all_tokens_and_others_their_own() -> None:
    alice, ada = factories.person("alice"), factories.person("ada")
    factories.token_for(alice)
    factories.token_for(ada)

    assert {token.user for token in visible_tokens(ada)} == {alice, ada}
    assert {token.user for token in visible_tokens(alice)} == {alice}


def test_use_is_noted_once_a_minute_however_often_it_is_used(
    django_assert_num_queries: Any,
) -> None:
    text = factories.token_for(factories.person("alice"))
    now = timezone.now()
    authenticate_token(text, now=now)

    with django_assert_num_queries(1):
        authenticate_token(text, now=now + timedelta(seconds=59))
    with django_assert_num_queries(2):
        authenticate_token(text, now=now + timedelta(seconds=61))
