from __future__ import annotations

import secrets
from typing import Any

import pytest
from django.test import Client

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
    assert b"The request is larger than allowed. Nothing was stored." in answer.content


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


def test_a_session_cookie_with_a_zero_byte_is_refused() -> None:
    answer = Client().get("/", headers={"cookie": 'sessionid="abc\\000def"'})

    assert answer.status_code == 400


def test_pages_and_answers_are_not_kept_by_caches(alice: User) -> None:
    client = Client()
    client.force_login(alice)

    for path in ("/dags/", "/api/v1/dags/", "/login/"):
        assert "no-store" in client.get(path).headers["Cache-Control"], path


def test_steering_takes_no_files(alice: User) -> None:
    client = Client()
    client.force_login(alice)

    answer = client.post("/api/v1/dags/1/hold/", {"reason": "x"})

    assert answer.status_code == 415


def test_json_that_is_nested_too_deeply_is_refused(alice: User) -> None:
    client = Client()
    client.force_login(alice)

    answer = client.post("/api/v1/dags/1/hold/", "[" * 100_000, content_type="application/json")

    assert answer.status_code == 400
