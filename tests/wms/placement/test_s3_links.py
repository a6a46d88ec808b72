"""Links to objects of an S3 store: the same as those of Amazon's own library."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import pytest

from wms.placement.conf import placement_conf
from wms.placement.modules.protocol import Credential, ModuleFailed
from wms.placement.modules.s3_links import LONGEST_S, Link, link_to

# The library is loaded for a second.
pytestmark = pytest.mark.slow

NOW = datetime(2026, 11, 27, 20, 1, 2, tzinfo=UTC)
KEY = Credential(user="AKIAIOSFODNN7EXAMPLE", secret="wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")


def of_amazon(method: str, key: str, lifetime_s: int) -> str:
    boto3 = pytest.importorskip("boto3", reason="boto3 is not installed")
    from botocore.config import Config

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = boto3.client(
            "s3",
            endpoint_url=placement_conf().s3_url,
            region_name="eu-north-1",
            aws_access_key_id=KEY.user,
            aws_secret_access_key=KEY.secret,
            config=Config(signature_version="s3v4", s3={"addressing_style": "path"}),
        )
        name = {"GET": "get_object", "PUT": "put_object"}[method]
        params = {"Bucket": "runs", "Key": key}
        url: str = client.generate_presigned_url(name, Params=params, ExpiresIn=lifetime_s)
        return url


@pytest.mark.parametrize("store", ["https://s3.example.org", "http://10.0.0.7:9000"])
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_links_are_those_of_amazons_library(configure, time_machine, store, method) -> None:
    configure(S3_URL=store, S3_REGION="eu-north-1")
    time_machine.move_to(NOW, tick=False)

    made = link_to(Link(method, "s3://Runs/d/a%20b+c~%C3%A4", 60), KEY, placement_conf(), now=NOW)

    ours, theirs = urlsplit(made), urlsplit(of_amazon(method, "d/a b+c~ä", 60))
    assert (ours.scheme, ours.netloc, ours.path) == (theirs.scheme, theirs.netloc, theirs.path)
    assert parse_qs(ours.query) == parse_qs(theirs.query)


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
