"""Stores of contents: the same of a folder and of a bucket of a real S3 server."""

from __future__ import annotations

import base64
import hashlib
import http.client
import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from django.utils import timezone

from tests.s3.server import S3Server
from wms.core.storage import s3_multipart, s3_store
from wms.core.storage.current import current_store, scratch_folder
from wms.core.storage.protocol import Growing, Link, ObjectLost, ObjectStore, StoreFailed
from wms.core.storage.s3_requests import Bucket
from wms.core.storage.s3_stream import opened

pytestmark = pytest.mark.process

MIB = 1024 * 1024
HASH = "ab" * 32
CONTENT = random.Random(1).randbytes(300_000)


@pytest.fixture(params=["folder", "bucket"])
def store(request: pytest.FixtureRequest) -> ObjectStore:
    if request.param == "bucket":
        request.getfixturevalue("bucket")
    return current_store()


def put(store: ObjectStore, key: str, content: bytes) -> None:
    path = scratch_folder() / "file"
    path.write_bytes(content)
    store.put(key, path)
    assert not path.exists()


def test_an_object_is_read_in_ranges_and_as_a_stream(store: ObjectStore) -> None:
    put(store, "ab/a b+c~ä", CONTENT)

    assert store.size_of("ab/a b+c~ä") == len(CONTENT)
    assert store.read("ab/a b+c~ä", 10, 20) == CONTENT[10:30]
    assert store.read("ab/a b+c~ä", len(CONTENT) - 5, 20) == CONTENT[-5:]
    assert store.read("ab/a b+c~ä", len(CONTENT) + 5, 20) == b""
    with store.open("ab/a b+c~ä") as stream:
        assert stream.seek(0, 2) == len(CONTENT)
        assert stream.seek(-100_000, 2) == len(CONTENT) - 100_000
        assert stream.read() == CONTENT[-100_000:]
        stream.seek(7)
        assert stream.read(5) == CONTENT[7:12]
        assert stream.read() == CONTENT[12:]


def test_what_is_not_there_is_told_and_deleted_without_a_fault(store: ObjectStore) -> None:
    put(store, "ab/empty", b"")
    put(store, "ab/other", b"x")

    store.delete(["ab/empty", "ab/none"])
    store.delete(["ab/never"])

    assert store.size_of("ab/empty") is None
    assert store.size_of("ab/other") == 1
    with pytest.raises(ObjectLost):
        store.read("ab/empty", 0, 1)
    with pytest.raises(ObjectLost):
        store.open("ab/empty")


def test_writers_of_the_same_object_at_once_leave_it_whole(store: ObjectStore) -> None:
    paths = [scratch_folder() / f"file-{number}" for number in range(4)]
    for path in paths:
        path.write_bytes(CONTENT)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda path: store.put("ab/same", path), paths))

    assert store.read("ab/same", 0, len(CONTENT) + 1) == CONTENT
    assert not any(path.exists() for path in paths)


def test_an_empty_object_is_one(store: ObjectStore) -> None:
    put(store, "ab/empty", b"")

    assert store.size_of("ab/empty") == 0
    assert store.read("ab/empty", 0, 10) == b""
    with store.open("ab/empty") as stream:
        assert stream.read() == b""


def test_objects_of_a_folder_are_listed_with_sizes_and_times(store: ObjectStore) -> None:
    for key in ("ab/1", "ab/2/3", "abc/4"):
        put(store, key, key.encode())

    found = {each.key: each for each in store.listed("ab")}

    assert {key: each.size_bytes for key, each in found.items()} == {"ab/1": 4, "ab/2/3": 6}
    assert abs(found["ab/1"].modified_at - timezone.now()) < timedelta(minutes=5)


FILES = [Growing("grown/1", 100, 64), Growing("grown/2", 0, 64)]


@pytest.mark.parametrize("file", FILES, ids=["parts", "one"])
def test_what_grows_is_read_where_it_was_written(store: ObjectStore, file: Growing) -> None:
    whole = b"".join(b"%07d\n" % number for number in range(60))
    at = 0
    for length in (1, 63, 64, 200, 7, 145):
        store.append(file, whole[at : at + length], at=at)
        at += length

    assert at == len(whole)
    assert store.read_grown(file, 0, 1000) == whole
    assert store.read_grown(file, 95, 120) == whole[95:215]
    # A process wrote more that did not count.
    store.append(file, b"other", at=100)
    assert store.read_grown(file, 90, 15) == whole[90:100] + b"other"

    store.remove_grown([(file, at)])
    with pytest.raises(ObjectLost):
        store.read_grown(file, 0, 1)
    assert list(store.listed("grown")) == []


def test_parts_in_the_middle_are_removed_and_never_their_neighbours(store: ObjectStore) -> None:
    file = Growing("grown/3", 128, 64)
    store.append(file, bytes(range(250)) * 4, at=0)

    store.remove_within(file, 128, 640)

    assert store.read_grown(file, 0, 128) == (bytes(range(250)) * 4)[:128]
    assert store.read_grown(file, 640, 360) == (bytes(range(250)) * 4)[640:]
    with pytest.raises(ObjectLost):
        store.read_grown(file, 200, 10)
    store.remove_grown([(file, 1000)])
    assert list(store.listed("grown")) == []


@pytest.mark.slow
def test_a_growing_file_becomes_an_object_and_stays(store: ObjectStore) -> None:
    file = Growing("uploads/1", 0, 5 * MIB)
    content = random.Random(2).randbytes(11 * MIB)
    for at in range(0, len(content), 4 * MIB):
        store.append(file, content[at : at + 4 * MIB], at=at, is_durable=True)

    assert not store.keep_grown(Growing("uploads/2", 0, 5 * MIB), "ab/1", size_bytes=1)
    assert store.keep_grown(file, "ab/1", size_bytes=len(content))
    store.remove_grown([(file, len(content))])

    with store.open("ab/1") as stream:
        assert stream.read() == content


@pytest.mark.slow
def test_a_large_object_is_written_by_parts_and_one_that_breaks_off_is_never_seen(
    bucket: str, s3: S3Server, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(s3_store, "PART_BYTES", 5 * MIB)
    content = random.Random(3).randbytes(11 * MIB)
    store = current_store()
    put(store, "ab/whole", content)
    assert hashlib.sha256(store.read("ab/whole", 0, 12 * MIB)).digest() == (
        hashlib.sha256(content).digest()
    )

    # A process begins to write, and is killed.
    begun = Bucket(s3.bucket_conf(bucket))
    request.addfinalizer(begun.close)
    parts = s3_multipart.Multipart(begun, f"ab/{HASH}").__enter__()
    parts.add(content[: 5 * MIB])
    assert store.size_of(f"ab/{HASH}") is None
    # And somebody else, who has the same bucket.
    s3_multipart.Multipart(begun, "films/long").__enter__()
    assert [each.key for each in store.listed("ab")] == ["ab/whole"]

    later = timezone.now() + timedelta(days=2)
    assert store.sweep(now=timezone.now()) == 0
    assert store.sweep(now=later) == 1
    assert [key for key, _ in s3_multipart.begun_before(begun, later)] == ["films/long"]


def test_more_files_than_parts_can_be_are_joined_in_two_steps(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    joins: list[tuple[str, ...]] = []

    class Noted:
        def __init__(self, bucket: Bucket, key: str) -> None:
            self.key, self.sources = key, []

        def __enter__(self) -> Noted:
            return self

        def __exit__(self, *_: object) -> None:
            joins.append((self.key, *self.sources))

        def copy(self, source: str) -> None:
            self.sources.append(source)

    monkeypatch.setattr(s3_store, "Multipart", Noted)
    monkeypatch.setattr(s3_store, "_MOST_PARTS", 2)
    monkeypatch.setattr(s3_store, "_JOINED_FIRST", 2)

    current_store()._join(["a", "b", "c"], "ab/1", "up/1.")  # type: ignore[attr-defined]

    assert joins == [
        ("up/1.joined-0", "a", "b"),
        ("up/1.joined-2", "c"),
        ("ab/1", "up/1.joined-0", "up/1.joined-2"),
    ]


def ask(link: Link, method: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
    parts = urlsplit(link.url)
    connection = http.client.HTTPConnection(parts.netloc)
    connection.request(method, f"{parts.path}?{parts.query}", body or None, link.headers | headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content


def test_a_link_reads_one_object_and_nothing_else(bucket: str, time_machine) -> None:
    store = current_store()
    put(store, "ab/1", b"one")
    put(store, "ab/2", b"two")
    link = store.read_link("ab/1")

    assert ask(link, "GET") == (200, b"one")
    assert ask(link, "PUT", b"x")[0] == 403
    assert ask(link, "DELETE")[0] == 403
    assert ask(Link(link.url.replace("ab/1", "ab/2"), {}), "GET")[0] == 403
    assert link.url not in repr(link)

    time_machine.move_to(timezone.now() - timedelta(minutes=6))
    assert ask(store.read_link("ab/1"), "GET")[0] == 403


def test_a_link_writes_what_was_announced_and_it_counts_once_it_was_looked_at(bucket: str) -> None:
    store = current_store()
    sha256 = hashlib.sha256(b"abc").hexdigest()
    link = store.write_link("sent/1", sha256=sha256, size_bytes=3)

    assert ask(link, "PUT", b"abd")[0] == 400
    assert store.size_of("sent/1") is None
    other = base64.b64encode(hashlib.sha256(b"abd").digest()).decode()
    assert ask(link, "PUT", b"abd", **{"x-amz-checksum-sha256": other})[0] == 403
    assert ask(link, "PUT", b"abcd", **{"Content-Length": "4"})[0] == 403
    assert ask(link, "PUT", b"abc")[0] == 200

    assert store.seen("sent/none", sha256=sha256, size_bytes=3) == ""
    mark = store.seen("sent/1", sha256=sha256, size_bytes=3)
    assert store.move("sent/1", "ab/1", mark=mark, size_bytes=3)
    assert store.read("ab/1", 0, 10) == b"abc"
    assert store.size_of("sent/1") is None


@pytest.mark.parametrize("size_bytes", [3, 4])
def test_what_is_not_what_was_announced_is_told(bucket: str, size_bytes: int) -> None:
    store = current_store()
    put(store, "sent/1", b"abd")

    sha256 = hashlib.sha256(b"abc").hexdigest()
    assert store.seen("sent/1", sha256=sha256, size_bytes=size_bytes) == ""


def test_what_is_written_anew_after_it_was_seen_becomes_nothing(bucket: str) -> None:
    store = current_store()
    put(store, "sent/1", b"abc")
    mark = store.seen("sent/1", sha256=hashlib.sha256(b"abc").hexdigest(), size_bytes=3)
    assert mark
    put(store, "sent/1", b"other")

    assert not store.move("sent/1", "ab/1", mark=mark, size_bytes=3)
    assert store.size_of("ab/1") is None


def test_what_was_sent_and_never_asked_for_is_swept(bucket: str) -> None:
    store = current_store()
    put(store, f"sent/1/{HASH}", b"abc")
    put(store, "sent/letter", b"of somebody else who has the same bucket")

    store.sweep(now=timezone.now() + timedelta(days=2))

    assert [each.key for each in store.listed("sent")] == ["sent/letter"]


def test_of_what_is_written_anew_while_it_is_looked_at_nothing_is_read(
    bucket: str, s3: S3Server
) -> None:
    store = current_store()
    put(store, "sent/1", b"abc")
    with closing(Bucket(s3.bucket_conf(bucket))) as own:
        tag = own.ask("HEAD", "sent/1")[1]["etag"]
        put(store, "sent/1", b"other")

        with pytest.raises(ObjectLost):
            opened(own, "sent/1", tag=tag)


@pytest.mark.parametrize(
    "changed", [{"secret": "wrong"}, {"bucket": "other"}, {"url": "http://127.0.0.1:9"}]
)
def test_a_store_that_refuses_or_is_away_is_told_without_secrets(
    s3: S3Server, changed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wms.core.storage.s3_requests._FIRST_PAUSE_S", 0)
    bucket = Bucket(s3.bucket_conf("any", **changed))

    with closing(bucket), pytest.raises(StoreFailed) as failed:
        bucket.ask("PUT", "ab/1", body=b"x")

    assert failed.value.status == 503
    assert s3.secret not in str(failed.value)
