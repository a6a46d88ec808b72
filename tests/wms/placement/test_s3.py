"""Transfers from and to an S3 store that checks signatures."""

from __future__ import annotations

import random

import pytest

from tests.s3.server import BUCKET
from tests.wms.placement.conftest import placed
from wms.core.actors import Actor
from wms.pilots.credentials.sealing import new_key
from wms.placement.credentials import NewCredential, set_credential

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

X = random.Random(12).randbytes(300_000)


@pytest.fixture
def store(configure, pool, settings, s3):
    settings.PILOTAGE = settings.PILOTAGE | {"CREDENTIAL_KEYS": new_key()}
    configure(S3_URL=s3.url)
    return s3


def keep(alice, user: str, secret: str) -> None:
    new = NewCredential(f"s3://{BUCKET}", user, secret)
    set_credential(new, owner=alice, actor=Actor.person(alice))


def test_objects_are_written_read_and_removed_with_signed_requests(
    transfer, submitted, alice, store
):
    keep(alice, store.key_id, store.secret)

    went = transfer("file:x", f"s3://{BUCKET}/d/a%20b+c", x=X)
    came = transfer(f"s3://{BUCKET}/d/a%20b+c", "file:y", f"size = {len(X)}")
    assert (went.state, came.state) == ("completed", "completed"), went.state_reason
    assert placed(came, "y") == store.content("d/a b+c") == X

    gone = submitted(f'[dap_type = "remove"; src_url = "s3://{BUCKET}/d/a%20b+c"]')
    assert gone.state == "completed", gone.state_reason
    assert store.content("d/a b+c") is None


def test_a_wrong_key_is_refused_and_without_a_store_nothing_is_asked(
    transfer, configure, alice, store
):
    keep(alice, store.key_id, "wrong")
    refused = transfer("file:x", f"s3://{BUCKET}/x", x=X)
    configure(S3_URL="")
    nowhere = transfer("file:x", f"s3://{BUCKET}/x", x=X)

    assert "403" in refused.state_reason
    assert "PILOTAGE_PLACEMENT_S3_URL" in nowhere.state_reason
