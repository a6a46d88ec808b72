"""Error pages: reason, advice and request id."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.db import OperationalError, connection
from django.test import Client, RequestFactory
from django.urls import reverse

from portal.middleware import errors
from tests import factories
from wms.core.models import User

BrowserOf = Callable[[User], Client]


def says(answer: Any, *texts: str) -> None:
    page = " ".join(answer.content.decode().split())
    for text in (*texts, answer["X-Request-ID"], "To the overview"):
        assert text in page, page[-900:]


@pytest.fixture
def _no_database(transactional_db: None) -> Iterator[None]:
    """Connections that lead nowhere."""
    kept = dict(connection.settings_dict)
    connection.close()
    connection.settings_dict.update(HOST="127.0.0.1", PORT="1")
    yield
    connection.close()
    connection.settings_dict.update(kept)


def test_an_address_that_names_nothing_is_told_with_the_id_of_the_request(alice: Client) -> None:
    answer = alice.get("/nowhere/")

    assert answer.status_code == 404
    says(answer, "There is nothing here", "Look for it in the lists")


def test_an_object_that_is_not_there_is_told_inside_of_the_portal(alice: Client) -> None:
    answer = alice.get(reverse("web:dag", args=[987654]))

    assert answer.status_code == 404
    says(answer, "There is no DAG 987654", 'aria-label="Main"')


def test_a_wrong_method_is_told_with_what_is_allowed(alice: Client) -> None:
    answer = alice.post(reverse("web:dags"))

    assert (answer.status_code, answer["Allow"]) == (405, "GET, HEAD")
    says(answer, "This address cannot be used so")


def test_a_program_gets_no_page_for_a_wrong_method(alice: Client) -> None:
    assert alice.post("/health/live").content == b""


def test_a_form_of_another_login_is_told(people: SimpleNamespace) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(people.alice)

    answer = client.post(reverse("web:preferences"), {"theme": "dark"})

    assert answer.status_code == 403
    says(answer, "This form is too old", "Load the page again")


def test_a_request_that_is_too_large_is_told(alice: Client, settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000

    answer = alice.post(reverse("web:columns"), {"list": "x" * 2000})

    assert answer.status_code == 413
    says(answer, "This is too large")


def test_a_refusal_of_the_domain_says_why(people: SimpleNamespace, browser_of: BrowserOf) -> None:
    dag = factories.dag(people.alice, node_count=1)

    answer = browser_of(people.bob).post(
        reverse("web:steer", args=[dag.pk, "hold"]), {"reason": "look"}
    )

    assert answer.status_code == 403
    says(answer, "bob may not steer DAG", "Ask somebody who may")


def test_a_value_that_is_refused_is_to_be_put_right_and_not_repeated(alice: Client) -> None:
    answer = alice.get(reverse("web:efficiency") + "?days=0")

    assert answer.status_code == 400
    says(answer, "This was refused", "days: must be a number from 1 to 366", "put right what is")


@pytest.mark.usefixtures("_no_database")
@pytest.mark.parametrize("address", ["/", "/dags/", "/login/", "/api/v1/dags/"])
def test_without_a_database_nothing_but_that_is_told(address: str) -> None:
    client = Client(raise_request_exception=False)
    client.cookies["sessionid"] = "a" * 32

    answer = client.get(address)

    if address == "/login/" and answer.status_code == 200:
        return  # it needs no database before a form is sent
    assert (answer.status_code, 5 <= int(answer["Retry-After"]) <= 15) == (503, True)
    assert b"Traceback" not in answer.content
    if address.startswith("/api/"):
        problem = answer.json()
        assert (problem["status"], problem["request_id"]) == (503, answer["X-Request-ID"])
    else:
        says(answer, "The portal cannot reach its database")


@pytest.mark.usefixtures("_no_database")
def test_a_fault_is_told_without_a_database() -> None:
    request = RequestFactory().get("/dags/")

    answer = errors.server_error(request)

    assert answer.status_code == 500
    assert b"Something went wrong on our side" in answer.content


@pytest.mark.usefixtures("_no_database")
def test_a_database_that_is_away_is_no_fault_of_ours() -> None:
    try:
        raise OperationalError("gone")
    except OperationalError:
        answer = errors.server_error(RequestFactory().get("/dags/"))

    assert answer.status_code == 503


def test_what_is_forbidden_is_told_to_programs_as_a_problem() -> None:
    answer = errors.forbidden(RequestFactory().get("/api/v1/dags/"), PermissionDenied())

    assert (answer.status_code, answer["Content-Type"]) == (403, "application/problem+json")


def test_the_answer_bears_the_id_that_a_proxy_gave(alice: Client) -> None:
    answer = alice.get("/nowhere/", headers={"X-Request-ID": "edge-0123456789"})

    assert answer["X-Request-ID"] == "edge-0123456789"
    says(answer)


@pytest.mark.parametrize("given", ["<script>", "a b", "x" * 65, "short"])
def test_an_id_that_is_none_is_replaced(alice: Client, given: str) -> None:
    answer = alice.get("/nowhere/", headers={"X-Request-ID": given})

    assert answer["X-Request-ID"] != given
    assert given.encode() not in answer.content
