"""Faults of an S3 store: answers that turn out as refusals, lost connections, silence."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tests.s3.faulty import faulty_store
from wms.core.storage.protocol import StoreFailed
from wms.core.storage.s3_requests import Bucket, parsed
from wms.core.storage.s3_store import S3Store

FAULT = b"<Error><Code>InternalError</Code></Error>"


def test_what_was_sent_stays_where_a_copy_fails_behind_a_good_status(tmp_path: Path) -> None:
    with faulty_store([(404, b""), (200, FAULT)]) as faulty, closing(Bucket(faulty.conf)) as bucket:
        with pytest.raises(StoreFailed):
            S3Store(bucket, tmp_path).move("sent/1", "ab/1", mark="m", size_bytes=3)

        assert [each.partition(" ")[0] for each in faulty.asked] == ["HEAD", "PUT"]


def test_an_answer_of_another_kind_is_a_failure_of_the_store() -> None:
    with pytest.raises(StoreFailed):
        parsed(b"<html>not XML")


def test_no_request_fails_because_the_store_has_ended_connections_that_were_kept() -> None:
    with faulty_store() as faulty, closing(Bucket(faulty.conf)) as bucket:
        faulty.requests_each = 1
        begun = [bucket.begin("ab/1", {}) for _ in range(6)]
        for connection, answer in begun:
            answer.read()
            bucket.end(connection, answer)

        assert bucket.ask("GET", "ab/1")[0] == 200
        # One that had ended was tried.
        assert faulty.connections == 7


def test_a_store_that_says_nothing_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wms.core.storage.s3_requests._STALL_S", 0.2)
    monkeypatch.setattr("wms.core.storage.s3_requests._PATIENCE_S", 0.1, raising=False)
    with faulty_store() as faulty, closing(Bucket(faulty.conf)) as bucket:
        faulty.is_silent = True

        with pytest.raises(StoreFailed):
            bucket.ask("GET", "ab/1")

        assert len(faulty.asked) == 1
