"""Transfers from and to an S3 store that checks signatures."""

from __future__ import annotations

import hashlib
import random
from contextlib import closing
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.s3.server import BUCKET
from tests.wms.pilots.agent.faulty_proxy import HANG_UP, PASS, FaultyProxy
from tests.wms.placement.conftest import placed
from wms.core.actors import Actor
from wms.core.storage.s3_requests import Bucket
from wms.pilots.credentials.sealing import new_key
from wms.placement.credentials import NewCredential, set_credential
from wms.placement.modules import s3, s3_parts
from wms.placement.submission import MAX_ATTEMPTS

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.process]

MIB = 1024 * 1024
X = random.Random(12).randbytes(300_000)


@pytest.fixture
def store(configure, pool, settings, request):
    settings.PILOTAGE = settings.PILOTAGE | {"CREDENTIAL_KEYS": new_key()}
    running = request.getfixturevalue("s3")
    configure(S3_URL=running.url)
    return running


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


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3, "LARGE_BYTES", MIB)
    monkeypatch.setattr(s3_parts, "PART_BYTES", 5 * MIB)


@pytest.fixture
def faulty(configure, store):
    """The store behind a proxy that fails as told."""
    proxy = FaultyProxy(store.url)
    configure(S3_URL=proxy.url)
    yield proxy
    proxy.stop()


def parts_sent(proxy: FaultyProxy) -> list[str]:
    queries = [parse_qs(urlsplit(path).query) for verb, path in proxy.seen if verb == "PUT"]
    return [query["partNumber"][0] for query in queries]


def begun_writes(store) -> int:
    with closing(Bucket(store.bucket_conf())) as bucket:
        listed = bucket.ask("GET", None, query={"uploads": ""})[2]
    return listed.count(b"<UploadId>")


def test_a_large_object_that_was_cut_in_the_middle_is_gone_on_with(
    transfer, alice, store, faulty, in_parts
):
    keep(alice, store.key_id, store.secret)
    content = random.Random(13).randbytes(16 * MIB)
    cuts = ["3"]

    def cut(method: str, path: str) -> str:
        if method == "PUT" and cuts and f"partNumber={cuts[0]}&" in path:
            cuts.clear()
            return HANG_UP
        return PASS

    faulty.fault = cut

    checksum = f'checksum = "{hashlib.sha256(content).hexdigest()}"'
    went = transfer("file:x", f"s3://{BUCKET}/large", checksum, attempts=2, x=content)

    assert went.state == "completed", went.state_reason
    assert parts_sent(faulty) == ["1", "2", "3", "3", "4"]
    assert store.content("large") == content
    assert begun_writes(store) == 0


def test_of_a_large_object_that_does_not_arrive_nothing_stays_in_the_store(
    transfer, alice, store, faulty, in_parts
):
    keep(alice, store.key_id, store.secret)
    faulty.fault = lambda method, path: 503 if "partNumber=2&" in path else PASS

    content = random.Random(14).randbytes(6 * MIB)
    refused = transfer("file:x", f"s3://{BUCKET}/none", attempts=MAX_ATTEMPTS, x=content)

    assert refused.state == "failed"
    assert store.content("none") is None
    assert begun_writes(store) == 0
