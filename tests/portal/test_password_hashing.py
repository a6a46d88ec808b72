"""Passwords are hashed by Argon2, older hashes from the next login on."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher, identify_hasher
from django.test import Client

from portal import settings as ours
from portal.config import password_hashing
from tests import factories
from wms.core.errors import Busy
from wms.core.models import User

PASSWORD = "a purple staple"


@pytest.fixture(autouse=True)
def _own_hashers(settings: Any) -> None:
    settings.PASSWORD_HASHERS = ours.PASSWORD_HASHERS


@pytest.mark.django_db
def test_an_older_hash_is_taken_and_made_anew_at_login(client: Client) -> None:
    alice = factories.person("alice")
    old = PBKDF2PasswordHasher().encode(PASSWORD, "salt", iterations=10)
    User.objects.filter(pk=alice.pk).update(password=old)

    answer = client.post("/login/", {"username": "alice", "password": PASSWORD})

    assert answer.status_code == 302
    alice.refresh_from_db()
    assert alice.password.startswith("argon2$argon2id$v=19$m=65536,t=3,p=4$")
    assert not identify_hasher(alice.password).must_update(alice.password)
    assert client.post("/login/", {"username": "alice", "password": PASSWORD}).status_code == 302


def test_one_who_finds_no_place_in_time_is_told_to_come_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(password_hashing, "_PATIENCE_S", 0.01)
    taken = [password_hashing._PLACES.acquire() for _ in range(password_hashing._AT_ONCE)]
    try:
        with pytest.raises(Busy):
            password_hashing.Argon2().encode("secret", "salt-of-some-length")
    finally:
        for _ in taken:
            password_hashing._PLACES.release()

    assert password_hashing.Argon2().encode("secret", "salt-of-some-length")
