"""Lists as files: exactly what a page shows, in UTC, bounded loudly."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse

from portal.lists import exports as list_exports
from portal.lists import registry as lists
from portal.lists.registry import LISTS
from portal.personal.services import save_preferences
from tests import factories
from tests.archive_files import kept_archive
from wms.archives.models import ArchivedDag
from wms.bulk.services import Selection, freeze
from wms.core.actors import Actor
from wms.dags.models import Dag, Trial
from wms.dags.services.dags import hold_dags
from wms.remarks.services import write_log


@pytest.fixture
def people(db: None) -> SimpleNamespace:
    return factories.people()


@pytest.fixture
def alice(people: SimpleNamespace) -> Client:
    client = Client()
    client.force_login(people.alice)
    return client


def address(name: str, form: str) -> str:
    return reverse("api:list-export", kwargs={"list_name": name, "form": form})


def rows(answer: object) -> list[dict[str, str]]:
    text = b"".join(answer.streaming_content).decode()
    return list(csv.DictReader(io.StringIO(text)))


def test_a_file_has_the_rows_columns_and_order_of_the_page(
    alice: Client, people: SimpleNamespace
) -> None:
    dags = [factories.dag(people.alice, name=f"{n}.dag", node_count=1) for n in range(3)]
    hold_dags([dags[0].pk, dags[2].pk], actor=factories.SYSTEM, reason="disk full")

    page = alice.get(reverse("web:dags") + "?state=held").context
    answer = alice.get(dict(page["bar"].exports)["CSV"])

    found = rows(answer)
    assert [row["id"] for row in found] == [str(dag.pk) for dag in page["listing"].lines]
    assert list(found[0])[:3] == ["id", "name", "state"]
    assert "ended_at" not in found[0]
    assert {row["reason"] for row in found} == {"disk full"}
    assert answer["Content-Disposition"].startswith(
        'attachment; filename="pilotage-dags-state-held-20'
    )
    assert answer["X-Is-Cut"] == "false"


def test_the_columns_can_be_chosen_and_times_stay_in_utc(
    alice: Client, people: SimpleNamespace
) -> None:
    save_preferences({"time_zone": "Asia/Tokyo"}, actor=Actor.person(people.alice))
    factories.dag(people.alice, node_count=1)
    Dag.objects.update(created_at=datetime(2026, 11, 20, 12, tzinfo=UTC))

    [row] = rows(alice.get(address("dags", "csv"), {"columns": "created,owner"}))

    assert row["owner"] == "alice"
    assert row["submitted_at"] == "2026-11-20T12:00:00Z"
    assert "state" not in row


def test_json_tells_what_was_asked_before_the_lines(alice: Client, people: SimpleNamespace) -> None:
    factories.dag(people.alice, name="a.dag", node_count=1)
    factories.dag(people.bob, name="b.dag", node_count=1)

    answer = alice.get(address("dags", "json"), {"owner": "!bob", "columns": "owner"})

    told = json.loads(b"".join(answer.streaming_content))
    assert told["filters"] == {"owner": ["!bob"]}
    assert (told["list"], told["is_cut"]) == ("dags", False)
    assert [line["owner"] for line in told["lines"]] == ["alice"]


def test_an_empty_list_is_a_file_too(alice: Client) -> None:
    assert rows(alice.get(address("jobs", "csv"))) == []
    told = json.loads(b"".join(alice.get(address("jobs", "json")).streaming_content))
    assert told["lines"] == []


@pytest.mark.slow
def test_every_list_is_exported_with_every_column(alice: Client, people: SimpleNamespace) -> None:
    site = factories.site()
    factories.running_dag(people.alice, node_count=3)
    factories.run_job(factories.pilot(site.queues.get()))
    factories.downtime(site)
    freeze(Selection("dags", Dag.objects.all()), action="hold", actor=Actor.person(people.alice))
    write_log(actor=Actor.person(people.sam), text="a quiet night")
    Trial.objects.create(
        owner=people.alice, kind="check", request={"dags": ["a.dag"]}, archive="a", size_bytes=1
    )

    kept_archive(people.olga)
    ArchivedDag.objects.update(is_foreign=False, owner=people.alice)

    for name, each in LISTS.items():
        every = {"columns": ",".join(each.column_names())}
        found = rows(alice.get(address(name, "csv"), every))
        told = json.loads(b"".join(alice.get(address(name, "json"), every).streaming_content))

        assert (name, len(found)) == (name, len(told["lines"]))
        assert (name, bool(found)) == (name, name not in {"placements", "clusters", "schedules"})
        assert all(list(row) == list(told["lines"][0]) for row in found), name


def test_a_long_list_is_read_in_parts_and_none_is_lost(
    alice: Client, people: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "CHUNK", 2)
    for number in range(5):
        factories.dag(people.alice, name=f"{number}.dag", node_count=1)

    found = rows(alice.get(address("dags", "csv")))

    assert [row["name"] for row in found] == ["4", "3", "2", "1", "0"]


def test_a_file_that_has_not_all_lines_says_so_in_its_name_and_inside(
    alice: Client, people: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_exports, "MAX_LINES", 2)
    for number in range(3):
        factories.dag(people.alice, name=f"{number}.dag", node_count=1)

    answer = alice.get(address("dags", "json"))

    told = json.loads(b"".join(answer.streaming_content))
    assert told["is_cut"] is True
    assert [line["name"] for line in told["lines"]] == ["2", "1"]
    assert "-first-2-" in answer["Content-Disposition"]
    assert answer["X-Is-Cut"] == "true"


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\n", "\uff1d", "\uff20"])
def test_a_spreadsheet_takes_no_text_of_a_user_for_a_formula(
    alice: Client, people: SimpleNamespace, first: str
) -> None:
    dag = factories.dag(people.alice, node_count=1)
    Dag.objects.filter(pk=dag.pk).update(name=f"{first}HYPERLINK(1)")

    [row] = rows(alice.get(address("dags", "csv")))

    assert row["name"] == f"'{first}HYPERLINK(1)"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("state=lost", "state"),
        ("colour=red", "colour"),
        ("columns=state,colour", "columns"),
        ("created=soon", "created"),
    ],
)
def test_a_bad_question_is_refused_with_its_field(alice: Client, query: str, field: str) -> None:
    answer = alice.get(f"{address('dags', 'csv')}?{query}")

    assert answer.status_code == 400
    assert [finding["field"] for finding in answer.json()["findings"]] == [field]


def test_the_address_works_with_a_token(people: SimpleNamespace) -> None:
    factories.dag(people.alice, node_count=1)
    token = factories.token_for(people.alice)

    answer = Client().get(address("dags", "csv"), headers={"Authorization": f"Token {token}"})

    assert len(rows(answer)) == 1


def test_there_is_no_file_of_an_unknown_list(alice: Client) -> None:
    assert alice.get(address("cats", "csv")).status_code == 404
