"""Tokens of logins: made once by an ID token, renewed with a short overlap."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from wms.core.actors import Actor
from wms.core.errors import LoginRefused, TokenRevoked, TokenUnknown
from wms.core.identities import link_identity, unlink_identities
from wms.core.identity_models import Identity
from wms.core.login_tokens import LIFETIME, OVERLAP, issue_login_token, renew_login_token
from wms.core.models import ApiToken, User
from wms.core.tokens import IssuedToken, authenticate_token, revoke_tokens

NOW = datetime(2026, 11, 20, tzinfo=UTC)
ACTOR = Actor.system("tests")
FIRST, SECOND = "e30.first.c2ln", "e30.second.c2ln"


@pytest.fixture
def identity(alice: User) -> Identity:
    return link_identity(alice, "https://iam.example.org/", "7b2e", actor=ACTOR)


@pytest.fixture
def login(identity: Identity) -> IssuedToken:
    return issue_login_token(identity, id_token=FIRST, name="laptop", now=NOW)


def is_good(token: IssuedToken, now: datetime) -> bool:
    try:
        authenticate_token(token.text, now=now)
    except TokenUnknown:
        return False
    return True


def test_the_secret_before_a_renewal_is_good_for_a_minute(
    identity: Identity, login: IssuedToken
) -> None:
    renewed = renew_login_token(identity, login.row.prefix, id_token=SECOND, now=NOW)

    before, after = NOW + OVERLAP - timedelta(seconds=1), NOW + OVERLAP
    assert [is_good(login, before), is_good(renewed, before)] == [True, True]
    assert [is_good(login, after), is_good(renewed, after)] == [False, True]


def test_renewals_one_after_the_other_keep_the_secret_that_was_surely_told_and_no_longer(
    identity: Identity, login: IssuedToken
) -> None:
    lost = renew_login_token(identity, login.row.prefix, id_token=SECOND, now=NOW)
    later = NOW + timedelta(seconds=30)

    told = renew_login_token(identity, login.row.prefix, id_token=SECOND, now=later)

    assert [is_good(each, later) for each in (login, lost, told)] == [True, False, True]
    assert not is_good(login, NOW + OVERLAP)


def test_the_overlap_ends_with_the_former_token_and_with_a_revocation(
    identity: Identity, login: IssuedToken
) -> None:
    end = NOW + LIFETIME
    renewed = renew_login_token(
        identity, login.row.prefix, id_token=SECOND, now=end - timedelta(seconds=5)
    )

    assert not is_good(login, end)
    revoke_tokens([renewed.row.pk], actor=ACTOR, reason="lost")
    for each in (login, renewed):
        with pytest.raises(TokenRevoked):
            authenticate_token(each.text, now=end - timedelta(seconds=1))


def test_an_id_token_makes_one_login_however_often_it_is_sent(
    identity: Identity, login: IssuedToken
) -> None:
    again = issue_login_token(identity, id_token=FIRST, name="laptop", now=NOW)
    other = issue_login_token(identity, id_token=SECOND, name="laptop", now=NOW)

    assert ApiToken.objects.count() == 2
    assert (again.row.pk, other.row.pk != again.row.pk) == (login.row.pk, True)
    assert is_good(again, NOW)
    revoke_tokens([again.row.pk], actor=ACTOR, reason="lost")
    with pytest.raises(TokenRevoked):
        issue_login_token(identity, id_token=FIRST, name="laptop", now=NOW)
    with pytest.raises(TokenRevoked):
        issue_login_token(identity, id_token=f"{FIRST}=", name="laptop", now=NOW)
    assert ApiToken.objects.count() == 2


def test_an_id_token_that_renewed_a_login_makes_and_renews_no_other(
    identity: Identity, login: IssuedToken
) -> None:
    other = issue_login_token(identity, id_token=SECOND, name="desktop", now=NOW)
    third = "e30.third.c2ln"

    def renew(prefix: str, id_token: str) -> IssuedToken:
        return renew_login_token(identity, prefix, id_token=id_token, now=NOW)

    renew(login.row.prefix, third)
    assert is_good(renew(login.row.prefix, third), NOW)
    copied = issue_login_token(identity, id_token=third, name="elsewhere", now=NOW)
    assert copied.row.pk == login.row.pk
    for used in (SECOND, third):
        with pytest.raises(LoginRefused):
            renew(login.row.prefix if used == SECOND else other.row.prefix, used)
    revoke_tokens([login.row.pk], actor=ACTOR, reason="lost")
    with pytest.raises(TokenRevoked):
        issue_login_token(identity, id_token=third, name="elsewhere", now=NOW)
    assert ApiToken.objects.count() == 2


def test_an_id_token_of_a_link_that_ended_is_worth_nothing_by_the_next(
    alice: User, identity: Identity, login: IssuedToken
) -> None:
    unlink_identities([identity.pk], actor=ACTOR, reason="left")
    again = link_identity(alice, identity.issuer, identity.subject, actor=ACTOR)

    with pytest.raises(TokenRevoked):
        issue_login_token(again, id_token=FIRST, name="laptop", now=NOW)
    assert is_good(issue_login_token(again, id_token=SECOND, name="laptop", now=NOW), NOW)
