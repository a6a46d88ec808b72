"""Audit pages: visible entries, filters, before and after."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from tests import factories
from tests.audit_trail import unguarded
from wms.core.actors import Actor
from wms.core.audit import object_of, record_action, visible_entries
from wms.core.models import AuditEntry, User
from wms.dags.services.dags import hold_dags
from wms.sites.services import ban_site

AUDIT = reverse("web:audit")
BrowserOf = Callable[[User], Client]


def targets(client: Client, query: str = "") -> list[str]:
    """What the list shows, from a filter that is no user's own."""
    answer = client.get(f"{AUDIT}?saved=none&{query}")
    assert answer.status_code == 200, answer.content
    return [entry.target for entry in answer.context["listing"].lines]


@pytest.fixture
def trail(people: SimpleNamespace) -> None:
    """What Sam did to a DAG and Olga to what is configured, and an account that was changed."""
    with unguarded():
        AuditEntry.objects.all().delete()
    sam, olga, ada = (Actor.person(getattr(people, name)) for name in ("sam", "olga", "ada"))
    record_action("hold DAG", target="DAG 12", actor=sam, reason="the disk is full")
    record_action("mark node done", target="DAG 12, node A", actor=sam, reason="by hand")
    record_action("ban site", target="site UW", actor=sam, reason="eats jobs")
    record_action("change queue", target="queue UW/short", actor=olga, facts={"cores": [1, 8]})
    record_action("change matchmaking policy", target="matchmaking policy", actor=olga)
    record_action("change account", target="user alice", actor=ada, facts={"role": ["a", "b"]})
    record_action("create token", target="user bob, token ab12", actor=Actor.person(people.bob))


@pytest.mark.parametrize(
    ("target", "kind", "key"),
    [
        ("DAG 12", "dag", "12"),
        ("DAG 12, node A", "dag", "12"),
        ("job 5", "job", "5"),
        ("placement request 7", "placement", "7"),
        ("pilot 9", "pilot", "9"),
        ("failure group 3", "failure", "3"),
        ("site UW", "site", "UW"),
        ("queue UW/short", "queue", "UW/short"),
        ("user alice, token ab12", "account", "alice"),
        ("filter 4 (mine)", "personal", "4"),
        ("matchmaking policy", "configuration", "matchmaking policy"),
    ],
)
def test_what_an_entry_is_about_follows_from_its_target(target: str, kind: str, key: str) -> None:
    about = object_of(target)

    assert (about.kind, about.key) == (kind, key)


@pytest.mark.parametrize(
    ("who", "seen"),
    [
        ("olga", 7),
        ("ada", 7),
        ("vera", 3),  # the DAG twice, the site
        ("alice", 4),  # and her own account
        ("bob", 4),  # and the token that he made
        ("sam", 3),
    ],
)
def test_people_see_their_part(
    people: SimpleNamespace, browser_of: BrowserOf, trail: None, who: str, seen: int
) -> None:
    assert len(targets(browser_of(getattr(people, who)))) == seen


def test_nobody_opens_an_entry_that_is_not_theirs_to_read(
    people: SimpleNamespace, browser_of: BrowserOf, trail: None
) -> None:
    address = reverse("web:audit-entry", args=[AuditEntry.objects.get(action="change account").pk])

    assert browser_of(people.bob).get(address).status_code == 404
    assert browser_of(people.alice).get(address).status_code == 200


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("object=dag:12", ["DAG 12, node A", "DAG 12"]),
        ("object=site:UW", ["queue UW/short", "site UW"]),
        ("actor=sam", ["site UW", "DAG 12, node A", "DAG 12"]),
        ("kind=queue,site", ["queue UW/short", "site UW"]),
        ("action=hold DAG", ["DAG 12"]),
        ("reason=disk", ["DAG 12"]),
        ("reason=disk&created=1h", ["DAG 12"]),
        ("reason=disk&created=..2020-01-01", []),
        ("request=abc", []),
    ],
)
def test_a_part_of_the_trail_is_found_by_its_filter(
    people: SimpleNamespace, browser_of: BrowserOf, trail: None, query: str, found: list[str]
) -> None:
    assert targets(browser_of(people.olga), query) == found


@pytest.mark.slow
def test_each_count_of_a_kind_is_the_length_of_the_list_behind_its_link(
    people: SimpleNamespace, browser_of: BrowserOf, trail: None
) -> None:
    olga = browser_of(people.olga)
    listing = olga.get(f"{AUDIT}?saved=none").context["listing"]

    counts = {facet.state: facet.count.value for facet in listing.facets if facet.count.value}
    assert counts == {"dag": 2, "site": 1, "queue": 1, "configuration": 1, "account": 2}
    for facet in listing.facets:
        shown = olga.get(AUDIT + facet.query).context["listing"].lines
        assert len(shown) == facet.count.value
    assert {group.name for group in listing.groups} == {"action", "actor"}


def test_a_filter_that_names_no_object_shows_its_fault(alice: Client) -> None:
    answer = alice.get(f"{AUDIT}?object=dag12")

    assert answer.status_code == 200
    assert b"Give KIND:KEY, such as dag:12 or site:UW" in answer.content


def test_an_entry_shows_what_was_before_and_after_and_leads_to_its_object(
    people: SimpleNamespace, browser_of: BrowserOf, trail: None
) -> None:
    pk = AuditEntry.objects.get(action="change queue").pk

    page = browser_of(people.olga).get(reverse("web:audit-entry", args=[pk])).content.decode()

    assert "<del>1</del>" in page
    assert "<ins>8</ins>" in page
    assert 'href="/sites/UW/queues/short/"' in page


def test_what_is_done_on_a_page_is_found_under_its_request(
    people: SimpleNamespace, browser_of: BrowserOf
) -> None:
    dag = factories.dag(people.alice, node_count=1)
    address = reverse("web:steer", args=[dag.pk, "hold"])

    answer = browser_of(people.sam).post(address, {"reason": "the disk is full"})

    entry = AuditEntry.objects.get(action="hold DAG")
    assert entry.request_id == answer["X-Request-ID"] != ""
    olga = browser_of(people.olga)
    assert targets(olga, f"request={entry.request_id}") == [f"DAG {dag.pk}"]


@pytest.mark.parametrize("kind", ["dag", "job", "site", "pilot"])
def test_the_page_of_an_object_leads_to_its_part(
    people: SimpleNamespace, browser_of: BrowserOf, kind: str
) -> None:
    dag = factories.running_dag(people.alice, node_count=1)
    pilot = factories.pilot(dag.site.queues.get())
    job = factories.run_job(pilot)
    assert job is not None
    key = {"dag": dag.pk, "job": job.pk, "site": dag.site.name, "pilot": pilot.pk}[kind]

    page = browser_of(people.vera).get(reverse(f"web:{kind}", args=[key])).content.decode()

    assert f'href="/audit/?object={kind}%3A{key}"' in page


def test_the_list_is_sent_as_csv_with_its_changes(
    people: SimpleNamespace, browser_of: BrowserOf, trail: None
) -> None:
    answer = browser_of(people.olga).get("/api/v1/lists/audit.csv?object=queue:UW/short")

    lines = b"".join(answer.streaming_content).decode().splitlines()
    assert lines[0] == "id,at,actor,action,target,kind,key,reason,facts"
    assert '{""cores"": [1, 8]}' in lines[1]


def test_the_trail_of_an_object_is_found_by_an_index(people: SimpleNamespace) -> None:
    hold_dags([factories.dag(people.alice, node_count=1).pk], actor=factories.SYSTEM, reason="look")
    ban_site(factories.site().name, actor=factories.SYSTEM, reason="look")
    AuditEntry.objects.bulk_create(
        AuditEntry(
            actor="x", action="x", target=f"DAG {key}", object_kind="dag", object_key=str(key)
        )
        for key in range(1000, 4000)
    )
    part = visible_entries(people.vera).filter(object_kind="dag", object_key="12")

    with connection.cursor() as cursor:
        cursor.execute("ANALYZE core_auditentry")
        plan = part.order_by("-pk")[:50].explain()

    assert "audit_by_object" in plan
