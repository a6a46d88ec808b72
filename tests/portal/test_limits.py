from __future__ import annotations

import secrets
from typing import Any

import pytest
from django.test import Client

from portal.limits import LOGIN_FAILURES
from wms.core.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice() -> User:
    """An account of a new name each time: failures are counted in a cache that tests share."""
    return User.objects.create_user(f"alice-{secrets.token_hex(4)}", password="right")


def post(client: Client, path: str, size_bytes: int) -> Any:
    return client.generic(
        "POST", path, b"x" * size_bytes, content_type="multipart/form-data; boundary=y"
    )


def test_a_stranger_cannot_send_a_large_body_to_a_page() -> None:
    answer = post(Client(enforce_csrf_checks=True), "/dags/submit/", 70_000)

    assert answer.status_code == 413
    assert answer.content == b"The request is larger than allowed.\n"


def test_a_user_can_send_large_files_up_to_the_limit(alice: User, settings: Any) -> None:
    settings.PILOTAGE = settings.PILOTAGE | {"MAX_UPLOAD_BYTES": 100_000}
    client = Client()
    client.force_login(alice)

    assert post(client, "/dags/submit/", 90_000).status_code != 413
    assert post(client, "/dags/submit/", 110_000).status_code == 413


@pytest.mark.parametrize(
    "path", ["/sites/%00/", "/jobs/1/attempts/1/output/a%00b", "/api/v1/sites/%00/"]
)
def test_an_address_with_a_zero_byte_names_nothing(alice: User, path: str) -> None:
    client = Client()
    client.force_login(alice)

    assert client.get(path).status_code == 404


@pytest.mark.parametrize("length", ["-1", "1e9", "٣", "9" * 400])
def test_an_absurd_length_is_refused(length: str) -> None:
    assert Client().post("/login/", CONTENT_LENGTH=length).status_code == 413


def test_guessing_a_password_locks_the_account_out_for_that_address_only(alice: User) -> None:
    client = Client(REMOTE_ADDR="192.0.2.1")
    wrong = {"username": alice.username, "password": "wrong"}
    right = {"username": alice.username, "password": "right"}
    for _ in range(LOGIN_FAILURES):
        assert client.post("/login/", wrong).status_code == 200

    assert client.post("/login/", right).status_code == 429
    assert client.post("/login/", wrong | {"username": f"not-{alice.username}"}).status_code == 200
    assert Client(REMOTE_ADDR="192.0.2.2").post("/login/", right).status_code == 302


def test_who_is_logged_in_is_not_concerned_by_the_guesses_of_others(alice: User) -> None:
    inside = Client(REMOTE_ADDR="192.0.2.1")
    inside.force_login(alice)
    wrong = {"username": alice.username, "password": "wrong"}
    for _ in range(LOGIN_FAILURES):
        Client(REMOTE_ADDR="192.0.2.1").post("/login/", wrong)

    assert inside.post("/logout/").status_code == 302
