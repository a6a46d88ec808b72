"""What cannot be stored is refused at the door, and what was wrong is told by its name."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import DataError
from django.test import Client, RequestFactory
from hypothesis import given
from hypothesis import strategies as st

from portal.middleware.errors import server_error
from portal.middleware.storable import MAX_FAULTS_OF_JSON, MAX_INT8, faults_of_json
from tests import factories
from tests.portal.pilot_api.pilot_client import ENDED, PilotClient
from wms.accounting.models import AccountingGroup

NOT_UTF8 = ["%FF", "%ED%A0%80", "%C0%80", "a%E2%82"]


@pytest.fixture
def people(db: None) -> SimpleNamespace:
    return factories.people()


@pytest.fixture
def olga(people: SimpleNamespace, client: Client) -> Client:
    client.force_login(people.olga)
    return client


@pytest.mark.parametrize(("value", "fault"), [
    ("%00", "Null characters are not allowed."), *((each, "is not UTF-8") for each in NOT_UTF8),
])  # fmt: skip
def test_a_parameter_that_is_no_text_is_told_by_its_name(
    olga: Client, value: str, fault: str
) -> None:
    answer = olga.get(f"/api/v1/sites.yaml?site={value}")

    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"
    [finding] = answer.json()["findings"]
    assert (finding["field"], finding["message"]) == ("site", fault)


@pytest.mark.parametrize("page", ["/jobs/", "/admin/sites/site/", "/login/", "/history/"])
def test_so_it_is_by_pages(olga: Client, page: str) -> None:
    answer = olga.get(f"{page}?x=1&q=%FF")

    assert answer.status_code == 400
    assert "q: " in answer.content.decode()


def test_so_it_is_where_the_name_itself_is_no_text(olga: Client) -> None:
    [finding] = olga.get("/api/v1/jobs/?%ff=1").json()["findings"]

    assert finding["field"] == "\N{REPLACEMENT CHARACTER}"


def test_text_of_all_languages_is_taken(olga: Client) -> None:
    assert olga.get("/api/v1/sites/?name=%C3%BC%E2%82%AC%F0%9F%98%80").status_code == 200


@pytest.mark.parametrize("charset", ["hex", "latin-1", "utf-16", "nonsense"])
@pytest.mark.parametrize("address", ["/jobs/", "/api/v1/jobs/"])
def test_another_encoding_than_utf8_is_refused(olga: Client, address: str, charset: str) -> None:
    answer = olga.get(address, CONTENT_TYPE=f"text/plain; charset={charset}")

    assert answer.status_code == 400
    assert "Content-Type: " in answer.content.decode()


@pytest.mark.parametrize("form", ["reason=a%00b", "reason=%FF"])
def test_a_field_of_a_form_that_is_no_text_is_told_by_its_name(olga: Client, form: str) -> None:
    site = factories.site()
    kind = "application/x-www-form-urlencoded"

    answer = olga.post(f"/sites/{site.name}/steer/ban/", form, content_type=kind)

    assert answer.status_code == 400
    assert "reason: " in answer.content.decode()
    site.refresh_from_db()
    assert site.state == "open"


def _at_the_page(browser: Client, parts: dict[str, Any]) -> Any:
    return browser.post("/dags/submit/", parts)


def _at_the_api(browser: Client, parts: dict[str, Any]) -> Any:
    return browser.post("/api/v1/dags/", parts)


@pytest.mark.parametrize("send", [_at_the_page, _at_the_api])
def test_a_part_of_a_submission_that_is_no_text_is_told_by_its_name(
    olga: Client, send: Callable[[Client, dict[str, Any]], Any]
) -> None:
    answer = send(olga, {"dag": SimpleUploadedFile("a.dag", b""), "resume": "a\0b"})

    assert answer.status_code == 400
    assert "resume: " in answer.content.decode()


@pytest.mark.parametrize("name", ["a\0b.sub", "a\x07.sub", "../x", "x" * 5000, ""])
def test_a_file_of_a_submission_under_a_name_that_is_none_is_refused(
    olga: Client, name: str
) -> None:
    parts = (
        f'--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\nx\r\n--b--'
    )

    answer = olga.post(
        "/api/v1/dags/", parts.encode(), content_type="multipart/form-data; boundary=b"
    )

    assert answer.status_code == 400


@pytest.mark.parametrize("content", [b"JOB A a.sub\0\n", b"JOB A a.sub\nRETRY A \xff\n"])
@pytest.mark.parametrize("part", ["dag", "description"])
def test_a_text_of_a_submission_that_is_none_is_told_with_its_file(
    olga: Client, part: str, content: bytes
) -> None:
    parts = {
        "dag": SimpleUploadedFile("a.dag", b"JOB A a.sub\n"),
        "file": SimpleUploadedFile("a.sub", factories.SUBMIT_FILE.encode()),
        part: SimpleUploadedFile("bad", content),
    }

    answer = olga.post("/api/v1/dags/", parts)

    assert answer.status_code == 400
    assert "bad" in {each["file"] for each in answer.json()["findings"]}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ('{"reason": "a\\u0000b"}', "reason"),
        ('{"reason": "\\ud800"}', "reason"),
        ('{"reason": "x", "more": [1, {"deep": 9223372036854775808}]}', "more.1.deep"),
        ('{"reason": "x", "more": 1e999}', "more"),
        ('{"reason": "x", "\\u0000": 1}', ""),
    ],
)
def test_a_value_in_json_that_cannot_be_stored_is_told_by_its_place(
    olga: Client, body: str, field: str
) -> None:
    site = factories.site()

    answer = olga.post(f"/api/v1/sites/{site.name}/ban/", body, content_type="application/json")

    assert answer.status_code == 400
    assert [each["field"] for each in answer.json()["findings"]] == [field]


@pytest.mark.parametrize("number", [str(MAX_INT8 + 1), "1" * 20, "1" * 5000])
@pytest.mark.parametrize("address", ["/jobs/{}/", "/api/v1/jobs/{}/", "/dags/{}/", "/pilots/{}/"])
def test_a_number_that_is_no_id_names_nothing(olga: Client, address: str, number: str) -> None:
    assert olga.get(address.format(number)).status_code == 404


@pytest.mark.parametrize("job", [str(MAX_INT8 + 1), "1" * 20])
def test_a_pilot_that_names_such_a_job_is_told_that_there_is_none(db: None, job: str) -> None:
    pilot = PilotClient(factories.pilot(), token="t" * 64)

    assert pilot.post(f"jobs/{job}/1/report", ENDED).status_code == 404


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text() | st.integers(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.slow
@given(JSON)
def test_faults_are_found_where_json_would_not_come_back_from_the_database(value: Any) -> None:
    leaves = [*_leaves(value)]
    is_cut = any("\0" in each or _has_half(each) for each in leaves if isinstance(each, str))
    is_large = any(not -(2**63) <= each < 2**63 for each in leaves if isinstance(each, int))
    is_odd = any(not math.isfinite(each) for each in leaves if isinstance(each, float))

    assert bool(faults_of_json(value)) == (is_cut or is_large or is_odd)


def _leaves(value: Any) -> Iterator[Any]:
    """All values, and the names of all members."""
    if isinstance(value, dict):
        yield from value
        value = [*value.values()]
    if not isinstance(value, list):
        yield value
        return
    for each in value:
        yield from _leaves(each)


def _has_half(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)


def test_json_as_deep_as_it_can_be_read_is_looked_through_without_recursion() -> None:
    deep: Any = "a\0b"
    for _ in range(100_000):
        deep = [deep]

    assert len(faults_of_json(deep)) == 1


def test_of_very_many_faults_of_json_the_first_are_told() -> None:
    found = faults_of_json({"rows": [["a\0b"]] * 100_000})

    assert [each.field for each in found[:2]] == ["rows.0.0", "rows.1.0"]
    assert len(found) == MAX_FAULTS_OF_JSON


@pytest.mark.slow
def test_large_json_is_looked_through_without_a_copy_of_it() -> None:
    large = {"rows": [1] * 200_000}
    tracemalloc.start()

    assert faults_of_json(large) == []

    most_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most_bytes < 100_000


@pytest.mark.parametrize("address", ["/jobs/", "/api/v1/jobs/", "/pilot/v1/claim"])
def test_a_value_that_the_database_refuses_all_the_same_is_no_fault_of_the_portal(
    db: None, address: str
) -> None:
    """The last resort: it is answered as what it is, and logged as a check that is missing."""
    try:
        AccountingGroup.objects.create(name="x" * 1000)
    except DataError:
        answer = server_error(RequestFactory().get(address))

    assert answer.status_code == 400
    assert b"cannot be stored" in answer.content
