"""Links to objects of an S3 store: taken by a store, and signed as Amazon prescribes."""

from __future__ import annotations

import http.client
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.utils import timezone

from tests.s3.server import BUCKET, S3Server
from wms.core.storage.s3_signing import LONGEST_S
from wms.placement.conf import placement_conf
from wms.placement.modules.protocol import Credential, ModuleFailed
from wms.placement.modules.s3_links import Link, link_to

NOW = datetime(2026, 11, 27, 20, 1, 2, tzinfo=UTC)
KEY = Credential(user="AKIAIOSFODNN7EXAMPLE", secret="wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")


@pytest.fixture
def store(configure: Any, s3: S3Server) -> S3Server:
    configure(S3_URL=s3.url)
    return s3


def ask(url: str, method: str, body: bytes | None = None) -> tuple[int, bytes]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc)
    connection.request(method, f"{parts.path}?{parts.query}", body)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content


@pytest.mark.process
def test_a_store_takes_links_for_their_method_and_time(store: S3Server) -> None:
    key = Credential(store.key_id, store.secret)
    place = f"s3://{BUCKET.capitalize()}/d/a%20b+c~%C3%A4"
    now = timezone.now()

    def link(method: str, made_at: datetime = now) -> str:
        return link_to(Link(method, place, 60), key, placement_conf(), now=made_at)

    assert ask(link("PUT"), "PUT", b"one")[0] == 200
    assert ask(link("GET"), "GET") == (200, b"one")
    assert ask(link("GET"), "PUT", b"two")[0] == 403
    assert ask(link("GET", now - timedelta(minutes=2)), "GET")[0] == 403
    assert store.content("d/a b+c~ä") == b"one"


def test_a_link_is_signed_as_amazon_prescribes(configure: Any) -> None:
    configure(S3_URL="https://s3.example.org", S3_REGION="eu-north-1")

    made = link_to(Link("GET", "s3://Runs/d/a%20b+c~%C3%A4", 60), KEY, placement_conf(), now=NOW)

    # Made by Amazon's own library (botocore 1.44).
    assert urlsplit(made).path == "/runs/d/a%20b%2Bc~%C3%A4"
    signature = "861104d1d7ece40bc2d541a4e415991eecb8e0da582b8bbd9069d2eccfdac896"
    assert parse_qs(urlsplit(made).query)["X-Amz-Signature"] == [signature]


def test_links_live_as_long_as_stores_take_and_without_a_key_are_plain(configure) -> None:
    configure(S3_URL="https://s3.example.org/top")
    link = Link("GET", "s3://runs/a", 10**9)

    signed = link_to(link, KEY, placement_conf(), now=NOW)

    assert parse_qs(urlsplit(signed).query)["X-Amz-Expires"] == [str(LONGEST_S)]
    assert KEY.secret not in signed
    assert link_to(link, None, placement_conf(), now=NOW) == "https://s3.example.org/top/runs/a"


def test_without_a_store_there_are_no_links(configure) -> None:
    configure(S3_URL="")

    with pytest.raises(ModuleFailed):
        link_to(Link("GET", "s3://runs/a", 60), KEY, placement_conf(), now=NOW)
