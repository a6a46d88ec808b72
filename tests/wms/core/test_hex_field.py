"""Keys of hexadecimal digits are stored shortly, and read as they were written."""

from __future__ import annotations

import secrets
from datetime import datetime

import pytest
from django.db import connection
from django.utils import timezone

from tests import factories
from wms.core.database.hex_field import key_of, stored_key
from wms.core.models import User
from wms.jobs.models import Attempt
from wms.pilots.protocol.claims import claim_job
from wms.sites.selectors import offered_resource


@pytest.mark.parametrize(
    "key", ["0" * 32, "f" * 32, "0123456789abcdef" * 2, "", "short", "A" * 32, "0" * 31, "x" * 64]
)
def test_any_key_is_read_as_it_was_written(key: str) -> None:
    assert key_of(stored_key(key)) == key


def test_a_key_of_32_digits_takes_23_characters() -> None:
    keys = {secrets.token_hex(16) for _ in range(20)}

    assert {len(stored_key(key)) for key in keys} == {23}
    assert len({stored_key(key) for key in keys}) == 20


@pytest.mark.django_db
@pytest.mark.parametrize("is_of_before", [False, True])
def test_a_claim_that_is_asked_for_again_is_given_the_same_attempt_whatever_its_key_is_stored_as(
    alice: User, is_of_before: bool
) -> None:
    factories.job(alice)
    factories.job(alice)
    worker = factories.pilot()
    now: datetime = timezone.now()
    offer, key = offered_resource(worker.queue), secrets.token_hex(16)
    first = claim_job(worker, offer, claim_key=key, now=now).work
    assert first is not None
    if is_of_before:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE jobs_attempt SET claim_key = %s, outcome = 'done'", [key])

    again = claim_job(worker, offer, claim_key=key, now=now).work

    assert again is None if is_of_before else again is not None and again.job == first.job
    assert Attempt.objects.get().claim_key == key
