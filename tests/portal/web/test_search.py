"""Search over everything: by number, by the id of a pilot, by parts of names, within walls."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from tests import factories
from wms.accounting.models import AccountingGroup, Frontend
from wms.dags.models import Dag

SEARCH = reverse("web:search")


def _found(client: Client, text: str) -> dict[str, list[str]]:
    answer = client.get(SEARCH, {"q": text})
    assert answer.status_code == 200
    return {kind.title: [hit.name for hit in kind.hits] for kind in answer.context["found"]}


def test_a_part_of_a_name_is_found_in_every_kind(alice: Client, people: SimpleNamespace) -> None:
    factories.site("T2-Alpine", queues=["alps"])
    dag = factories.dag(people.bob, name="alp.dag")

    found = _found(alice, "ALP")

    assert found["Sites"] == ["T2-Alpine"]
    assert found["Queues"] == ["T2-Alpine/alps"]
    assert found["DAGs"] == [f"alp {dag.pk}"]
    assert list(found)[-1] == "Jobs"


def test_a_number_that_one_thing_has_leads_to_it(alice: Client, people: SimpleNamespace) -> None:
    with connection.cursor() as cursor:
        # No other kind has a number so high.
        cursor.execute("SELECT setval(pg_get_serial_sequence('dags_dag', 'id'), 3999999)")
    factories.dag(people.bob)

    answer = alice.get(SEARCH, {"q": " 4000000 "})

    assert answer.status_code == 302
    assert answer["Location"] == reverse("web:dag", args=[4_000_000])


def test_a_pilot_is_found_by_the_id_that_its_log_tells(
    alice: Client, people: SimpleNamespace
) -> None:
    pilot = factories.pilot()

    answer = alice.get(SEARCH, {"q": str(pilot.uuid)})

    assert answer["Location"] == reverse("web:pilot", args=[pilot.pk])


@pytest.mark.parametrize("text", ["", " ", "99999999999999999999", "x" * 5000, "4711"])
def test_what_finds_nothing_says_so(alice: Client, people: SimpleNamespace, text: str) -> None:
    answer = alice.get(SEARCH, {"q": text})

    assert answer.status_code == 200
    assert {kind.title for kind in answer.context["found"]} <= {"Jobs"}


def test_nothing_behind_walls_is_found(alice: Client, people: SimpleNamespace) -> None:
    frontend = Frontend.objects.create(name="icecube")
    group = AccountingGroup.objects.create(name="ice", frontend=frontend)
    dag = factories.dag(people.bob, name="secret.dag")
    Dag.objects.filter(pk=dag.pk).update(accounting_group=group)

    group.members.add(people.bob)

    assert "DAGs" not in _found(alice, "secret")
    assert "DAGs of" not in _found(alice, "bob")
    assert _found(alice, "alice")["DAGs of"] == ["alice"]


def test_long_answers_are_cut_and_lead_to_the_list(alice: Client, people: SimpleNamespace) -> None:
    for number in range(10):
        factories.dag(people.bob, name=f"many{number}.dag", node_count=1)

    found = alice.get(SEARCH, {"q": "many"}).context["found"]

    [dags] = [kind for kind in found if kind.title == "DAGs"]
    assert (len(dags.hits), dags.is_cut) == (8, True)
    listing = alice.get(dags.all_address).context["listing"]
    assert listing.chosen_total.value == 10
