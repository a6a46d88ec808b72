"""Sites and queues in the administration: checked on save, with the place of each fault."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client

from tests import factories
from wms.core.models import AuditEntry
from wms.sites.models import Queue, Site, SiteEvent
from wms.sites.services import ban_site

ADD = "/admin/sites/site/add/"
SITE = {
    "name": "Florida",
    "is_enabled": "on",
    "max_matches": "2",
    "matches_unit": "dags",
    "group_size": "50",
    "failure_threshold": "18",
    "requirements": "TARGET.ImageSize < 1000 && CurMatches < MaxMatches",
    "rank": "TARGET.Priority",
    "environment": "SiteWorkingArea=/work\nSiteName=Florida",
    "attributes": 'Is_USCMS_Site = True\nSiteKind = "tier 2"',
}
QUEUE = {
    "name": "short",
    "element": "host",
    "settings": "{}",
    "is_enabled": "on",
    "max_pilots": "10",
    "max_queued_pilots": "5",
    "cores": "1",
    "gpus": "0",
    "memory_mb": "2000",
    "wall_time_s": "3600",
    "cpu_power": "1",
    "platform": "",
    "tags": "[]",
    "fence": "auto",
    "network": "auto",
    "checks": "[]",
    "hold_after_failure_s": "1200",
    "attenuation": "3",
    "max_idle_pilots": "100",
    "curb_idle_pilots": "5",
    "max_held_pilots": "50",
    "max_submits": "100",
    "batch_size": "50",
    "max_removals": "5",
    "removal_margin": "0",
    "removal_wait_s": "300",
    "queued_lifetime_s": "604800",
}


def _errors(answer: HttpResponse) -> dict[str, list[str]]:
    assert answer.status_code == 200
    return {name: list(errors) for name, errors in answer.context["adminform"].form.errors.items()}


def test_a_site_is_stored_with_its_event_and_its_audit_entry(olga: Client) -> None:
    answer = olga.post(ADD, SITE)

    assert answer.status_code == 302, _errors(answer)
    site = Site.objects.get(name="Florida")
    assert site.rank == "TARGET.Priority"
    assert SiteEvent.objects.get(site=site).actor == "olga"
    assert AuditEntry.objects.filter(actor="olga", target="site Florida").count() == 1


@pytest.mark.parametrize(
    ("field", "text", "words"),
    [
        ("requirements", "TARGET.ImageSize < ", "not a ClassAd expression"),
        ("requirements", "CurMatches = 1", "line 1, column 12: "),
        ("requirements", "true &&\n(CurMatches == 1", "line 2, column 1: "),
        ("requirements", "CurMatches = 1", "to compare, write =="),
        ("requirements", "", "required"),
        ("rank", '"abc', "a quote is not closed"),
        ("attributes", "Good = 1\n\nBad = (1 + ", "line 3, column 7: "),
        ("attributes", "just words", "line 1: "),
        ("attributes", "CurMatches = 0", "CurMatches is set by Pilotage"),
        ("environment", "A=1\nnot an assignment", "line 2: "),
        ("name", "../etc", "Use letters"),
        ("max_matches", "-1", "greater than or equal to 0"),
        ("group_size", "0", "greater than or equal to 1"),
        ("matches_unit", "pilots", "not one of the available choices"),
    ],
)
def test_a_fault_is_shown_at_its_field_and_line(
    olga: Client, field: str, text: str, words: str
) -> None:
    errors = _errors(olga.post(ADD, SITE | {field: text}))

    assert list(errors) == [field]
    assert words in errors[field][0]
    assert not Site.objects.exists()


def test_all_faults_are_shown_at_once(olga: Client) -> None:
    errors = _errors(olga.post(ADD, SITE | {"rank": "1 +", "requirements": ")", "attributes": "x"}))

    assert set(errors) == {"rank", "requirements", "attributes"}


def test_a_change_tells_what_it_changed(olga: Client) -> None:
    site = factories.site("Florida")
    old = site.requirements

    answer = olga.post(f"/admin/sites/site/{site.pk}/change/", SITE)

    assert answer.status_code == 302
    facts = AuditEntry.objects.filter(actor="olga").latest("pk").facts
    assert facts["requirements"] == [old, SITE["requirements"]]
    assert "name" not in facts


def test_saving_without_a_change_leaves_no_trace(olga: Client) -> None:
    olga.post(ADD, SITE)
    site = Site.objects.get()
    before = AuditEntry.objects.count(), SiteEvent.objects.count()

    olga.post(f"/admin/sites/site/{site.pk}/change/", SITE)

    assert (AuditEntry.objects.count(), SiteEvent.objects.count()) == before


def test_the_published_ad_is_shown(olga: Client) -> None:
    site = factories.site("Florida")
    address = f"/admin/sites/site/{site.pk}/change/"

    assert "not published yet" in olga.get(address).content.decode()
    factories.turn()
    assert "Name = &quot;Florida&quot;" in olga.get(address).content.decode()


def test_how_a_site_stands_is_shown(olga: Client) -> None:
    site = factories.site("Florida")
    address = f"/admin/sites/site/{site.pk}/change/"

    before = olga.get(address).content.decode()
    factories.advertisement(site, sequence=7)
    ban_site("Florida", actor=factories.SYSTEM, reason="eats jobs")
    factories.turn()
    after = olga.get(address).content.decode()

    assert "not judged yet" in before
    assert "banned by system:test" in after
    assert "number 7 by" in after
    assert "0 failed, 0" in after


def test_a_queue_is_stored(olga: Client) -> None:
    site = factories.site("Florida", queues=())

    answer = olga.post("/admin/sites/queue/add/", QUEUE | {"site": str(site.pk)})

    assert answer.status_code == 302, _errors(answer)
    assert Queue.objects.get(site=site).name == "short"
    assert AuditEntry.objects.filter(actor="olga", target="queue Florida/short").exists()


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("settings", "{"),
        ("settings", "[]"),
        ("settings", '{"no_such_setting": 1}'),
        ("settings", '{"slots": "many"}'),
        ("tags", '{"a": 1}'),
        ("tags", "[1]"),
        ("cores", "0"),
        ("fence", "hedge"),
        ("network", "moon"),
        ("http_proxy", "http://me:secret@proxy:3128"),
        ("checks", '[{"time_limit_s": 5}]'),
        ("attenuation", "0.5"),
        ("element", "nonsense"),
    ],
)
def test_a_fault_of_a_queue_is_shown_at_its_field(olga: Client, field: str, text: str) -> None:
    site = factories.site("Florida", queues=())
    body: dict[str, Any] = QUEUE | {"site": str(site.pk), field: text}

    errors = _errors(olga.post("/admin/sites/queue/add/", body))

    assert list(errors) == [field]
    assert not Queue.objects.exists()


def test_two_queues_of_a_site_have_two_names(olga: Client) -> None:
    site = factories.site("Florida", queues=("short",))

    errors = _errors(olga.post("/admin/sites/queue/add/", QUEUE | {"site": str(site.pk)}))

    assert list(errors) == ["__all__"]


def test_nothing_is_deleted(olga: Client) -> None:
    site = factories.site("Florida")

    answer = olga.post(f"/admin/sites/site/{site.pk}/delete/", {"post": "yes"})

    assert answer.status_code == 403
    assert Site.objects.filter(pk=site.pk).exists()


def test_a_private_queue_needs_an_owner_and_the_field_says_so(
    olga: Client, people: SimpleNamespace
) -> None:
    site = factories.site("Florida", queues=())
    group = factories.accounting(people.alice)
    body = QUEUE | {"site": str(site.pk), "owner_group": str(group.pk)}

    errors = _errors(olga.post("/admin/sites/queue/add/", body))

    assert list(errors) == ["owner"]


@pytest.mark.parametrize("field", ["tags", "required_tags"])
def test_a_tag_is_named_once(olga: Client, field: str) -> None:
    site = factories.site("Florida", queues=())
    body = QUEUE | {"site": str(site.pk), "tags": '["a", "b"]', field: '["a", "b", "a"]'}

    errors = _errors(olga.post("/admin/sites/queue/add/", body))

    [fault] = errors.pop(field)
    assert (errors, fault.endswith(": a")) == ({}, True)


def test_states_and_moments_read_as_on_all_pages(olga: Client) -> None:
    factories.site("Florida")

    listed = olga.get("/admin/sites/site/").content.decode()
    created = olga.get("/admin/core/auditentry/").content.decode()

    assert "#check" in listed
    assert "<span>open</span>" in listed
    assert re.search(r">\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC<", created), "a time without its zone"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 2000 + "]" * 2000, "is nested too deeply"),
        ('{"a": "\\u0000"}', "a: Null characters are not allowed."),
        ('{"a": {"b": 1e999}}', "a.b: is not a finite number"),
    ],
)
def test_json_that_cannot_be_stored_is_a_fault_of_its_field(
    olga: Client, text: str, words: str
) -> None:
    site = factories.site()

    answer = olga.post("/admin/sites/queue/add/", QUEUE | {"site": site.pk, "settings": text})

    assert _errors(answer)["settings"] == [words]
