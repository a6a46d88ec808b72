"""Refusals by no endpoint in particular: they are problem details as all the others."""

from __future__ import annotations

import pytest
from django.test import Client, RequestFactory
from rest_framework.test import APIClient

from portal.middleware.errors import server_error


@pytest.mark.parametrize(
    "address",
    [
        "/api/",
        "/api/v1/",
        "/api/v1/nothing/",
        "/api/v1/task-queues/abc/",
        "/api/v1/jobs/-1/",
        "/api/v1/jobs/99999999999999999999999/",
        "/api/v1/pilots/7/",
        "/api/v1/running-limits/x/",
        "/api/v1/sites/No%00where/",
        "/api/v1/sites/a%20b/",
    ],
)
def test_an_address_that_names_nothing_is_a_problem(alice: APIClient, address: str) -> None:
    answer = alice.get(address)

    assert answer.status_code == 404
    assert answer["Content-Type"] == "application/problem+json"
    problem = answer.json()
    assert (problem["status"], problem["title"]) == (404, "Not Found")
    assert problem["findings"] == []


def test_a_request_for_another_host_is_a_problem(alice: APIClient) -> None:
    answer = alice.get("/api/v1/jobs/", headers={"Host": "a b"})

    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"


def test_a_fault_of_ours_is_a_problem() -> None:
    answer = server_error(RequestFactory().get("/api/v1/jobs/"))

    assert answer.status_code == 500
    assert answer["Content-Type"] == "application/problem+json"


def test_people_get_a_page(client: Client, db: None) -> None:
    answer = client.get("/nowhere/")

    assert answer.status_code == 404
    assert b"There is nothing here" in answer.content
