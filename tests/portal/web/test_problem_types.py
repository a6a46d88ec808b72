"""Pages of the types of problems: one for each code that an error of the domain has."""

from __future__ import annotations

import pytest
from django.test import Client

from portal.shared.problem_types import _OF_STATUS, PROBLEM_TYPES
from wms.core.errors import PilotageError


def _errors(base: type[PilotageError]) -> list[type[PilotageError]]:
    return [base, *(found for each in base.__subclasses__() for found in _errors(each))]


def test_each_error_of_the_domain_has_its_type_and_page() -> None:
    missing = {each.__name__: each.code for each in _errors(PilotageError)
               if each.code not in PROBLEM_TYPES}  # fmt: skip

    assert missing == {}
    assert set(_OF_STATUS.values()) <= PROBLEM_TYPES.keys()
    assert {PROBLEM_TYPES[code].status for code in _OF_STATUS.values()} == _OF_STATUS.keys()


@pytest.mark.parametrize("code", PROBLEM_TYPES)
def test_anybody_may_read_what_a_type_means(client: Client, db: None, code: str) -> None:
    page = client.get(f"/problems/{code}/")

    assert page.status_code == 200
    assert PROBLEM_TYPES[code].address in page.content.decode()


def test_all_types_are_listed(client: Client, db: None) -> None:
    page = client.get("/problems/").content.decode()

    assert [code for code in PROBLEM_TYPES if f"/problems/{code}/" not in page] == []


def test_an_unknown_type_is_not_found(client: Client, db: None) -> None:
    assert client.get("/problems/nothing/").status_code == 404
