"""Advertising at the API: the three formats, renewals, refusals, and what came of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from django.http import HttpResponse
from rest_framework.test import APIClient

from tests import factories

OLD = 'Name = "UW"\nUpdateSequenceNumber = {}\nHas_CVMFS = True\nRequirements = TARGET.Cores == 1\n'


@pytest.fixture
def olga(people: SimpleNamespace, as_user) -> APIClient:
    factories.site("UW")
    return as_user(people.olga)


def send(client: APIClient, text: str | bytes, kind: str = "text/plain") -> HttpResponse:
    return client.generic("POST", "/api/v1/ads/", text, content_type=kind)


def merged(client: APIClient) -> dict[str, tuple[str, str]]:
    answer = client.get("/api/v1/ads/UW/").json()
    return {each["name"]: (each["expression"], each["source"]) for each in answer["attributes"]}


def test_a_first_ad_is_stored_and_a_renewal_too(olga: APIClient) -> None:
    first = send(olga, OLD.format(5) + "ClassAdLifetime = 60")
    second = send(olga, OLD.format(6))

    assert (first.status_code, second.status_code) == (201, 200)
    body = first.json()
    assert (body["name"], body["sequence"], body["lifetime_s"]) == ("UW", 5, 60)
    assert body["advertised_by"] == "olga"
    assert body["received_at"] < body["expires_at"]
    assert second.json()["lifetime_s"] == 900


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('Name = "UW"\nQ = 1 + 1', "text/plain"),
        ('[ Name = "UW"; Q = 1 + 1 ]', "text/plain; charset=utf-8"),
        (r'{"Name": "UW", "Q": "\/Expr(1 + 1)\/"}', "application/json"),
        ('\ufeffName = "UW"\r\nQ = 1 + 1\r\n', "text/plain"),
    ],
)
def test_every_format_is_taken(olga: APIClient, text: str, kind: str) -> None:
    assert send(olga, text, kind).status_code == 201
    assert merged(olga)["Q"] == ("1 + 1", "advertised")


def test_the_merged_ad_tells_where_each_attribute_comes_from(olga: APIClient) -> None:
    send(olga, OLD.format(5))

    ad = merged(olga)

    assert ad["Has_CVMFS"] == ("True", "advertised")
    assert ad["Requirements"][1] == "both"
    assert ad["MaxMatches"] == ("100", "configured")
    assert ad["CurMatches"] == ("0", "computed")
    assert ad["SiteEnvironment"] == ('"SiteWorkingArea=/tmp"', "configured")


def test_an_ad_with_a_fault_is_refused_with_line_and_attribute(olga: APIClient) -> None:
    answer = send(olga, 'Name = "UW"\n\nRank = 1 +\n')

    assert answer.status_code == 400
    [finding] = answer.json()["findings"]
    assert (finding["field"], finding["line"]) == ("Rank", 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (OLD.format(5) + "CurMatches = 0", "Pilotage counts what is bound"),
        ("", "the ad is empty"),
        ("\0", "expected `Name = expression`"),
        (b'Name = "UW"\nA = "\xff"', "is not UTF-8"),
        ("(" * 60_000, "expected `Name = expression`"),
        ("[A=" + "(" * 60_000, "nested more than 100 deep"),
        ('{"A":' + "[" * 60_000, "nested more than 100 deep"),
    ],
)
def test_bad_input_is_told(olga: APIClient, text: str | bytes, message: str) -> None:
    for kind in ("text/plain", "application/json"):
        answer = send(olga, text, kind)

        assert answer.status_code == 400, answer.content
        assert message in answer.json()["detail"]


def test_a_number_that_is_not_larger_is_a_conflict(olga: APIClient) -> None:
    send(olga, OLD.format(5))

    answer = send(olga, OLD.format(5) + "More = 1")

    assert answer.status_code == 409
    assert "not larger than 5" in answer.json()["detail"]
    assert "More" not in merged(olga)


def test_an_ad_that_is_too_large_is_refused(olga: APIClient) -> None:
    assert send(olga, OLD.format(5) + "#" * 65_536).status_code == 413


def test_other_kinds_of_bodies_are_not_taken(olga: APIClient) -> None:
    assert send(olga, "<c/>", "application/xml").status_code == 415


def test_an_invalidated_ad_is_gone_and_cannot_come_back(olga: APIClient) -> None:
    send(olga, OLD.format(5))

    gone = olga.delete("/api/v1/ads/UW/")
    again = olga.delete("/api/v1/ads/UW/")

    assert (gone.status_code, again.status_code) == (204, 404)
    assert "Has_CVMFS" not in merged(olga)
    assert send(olga, OLD.format(5)).status_code == 409
    assert send(olga, OLD.format(6)).status_code == 201


def test_only_operators_advertise_and_everybody_reads(
    olga: APIClient, people: SimpleNamespace, as_user
) -> None:
    sam = as_user(people.sam)

    assert send(sam, OLD.format(5)).status_code == 403
    assert sam.delete("/api/v1/ads/UW/").status_code == 403
    assert merged(sam)["Name"] == ('"UW"', "configured")
    assert sam.get("/api/v1/ads/Nowhere/").status_code == 404


def test_a_site_tells_what_it_advertises(olga: APIClient) -> None:
    before: dict[str, Any] = olga.get("/api/v1/sites/UW/").json()
    send(olga, OLD.format(5))
    after = olga.get("/api/v1/sites/UW/").json()

    assert before["advertisement"] is None
    assert after["advertisement"]["sequence"] == 5
    assert after["standing"] == {"kind": "", "reason": "", "allowance": None}
