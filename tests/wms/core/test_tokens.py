from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from wms.core.actors import Actor
from wms.core.errors import NotAuthenticated, TokenExpired, TokenRevoked
from wms.core.models import ApiToken, AuditEntry, User
from wms.core.tokens import authenticate_token, create_token

NOW = datetime(2026, 11, 20, tzinfo=UTC)


@pytest.fixture
def token(alice: User) -> str:
    return create_token(alice, name="laptop", actor=Actor.person(alice))


def test_a_token_names_its_user_and_is_not_stored(token: str, alice: User) -> None:
    assert authenticate_token(token, now=NOW) == alice

    row = ApiToken.objects.get()
    assert row.secret_sha256 not in token
    assert token.split("_", 2)[2] not in {row.secret_sha256, row.prefix, row.name}
    assert row.last_used_at == NOW
    assert AuditEntry.objects.get().target == f"user alice, token {row.prefix}"


@pytest.mark.parametrize("change", ["", "x", "plt_", "plt__", "no_1_2", "plt_zz_zz"])
def test_anything_else_is_refused(token: str, change: str) -> None:
    with pytest.raises(NotAuthenticated):
        authenticate_token(change, now=NOW)
    with pytest.raises(NotAuthenticated):
        authenticate_token(token + "x", now=NOW)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"revoked_at": NOW}, TokenRevoked),
        ({"expires_at": NOW - timedelta(seconds=1)}, TokenExpired),
    ],
)
def test_a_revoked_or_expired_token_is_refused(
    token: str, change: dict[str, datetime], error: type[NotAuthenticated]
) -> None:
    ApiToken.objects.update(**change)

    with pytest.raises(error):
        authenticate_token(token, now=NOW)


def test_the_token_of_a_user_who_is_switched_off_is_refused(token: str, alice: User) -> None:
    User.objects.update(is_active=False)

    with pytest.raises(NotAuthenticated, match="switched off"):
        authenticate_token(token, now=NOW)
