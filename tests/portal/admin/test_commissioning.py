"""New sites: they take no DAG until a pilot has called in from them, or somebody opens them."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from portal.shared.site_lines import site_lines
from tests import factories
from tests.portal.admin.test_sites import ADD, QUEUE, SITE
from wms.core.actors import Actor
from wms.dags.negotiation.cycle import run_cycle
from wms.exchange.site_import import import_sites, preview_import
from wms.pilots.pressure.backoff import note_failure
from wms.pilots.pressure_models import ElementContact
from wms.sites.models import Queue, Site, SiteEvent
from wms.sites.services import commission_site
from wms.sites.standing import standing_of

_DOCUMENT = """\
format: pilotage-sites
version: 1
sites:
- name: {}
  queues:
  - name: short
    element: host
"""


def _new_site(olga: Client) -> Site:
    assert olga.post(ADD, SITE).status_code == 302
    site = Site.objects.get()
    answer = olga.post("/admin/sites/queue/add/", QUEUE | {"site": str(site.pk)})
    assert answer.status_code == 302
    return site


@pytest.mark.slow
def test_a_new_site_takes_no_dag_until_a_pilot_has_called_in(
    olga: Client, people: SimpleNamespace
) -> None:
    site = _new_site(olga)
    dag = factories.dag(people.alice)
    run_cycle(timezone.now())
    dag.refresh_from_db()
    assert (dag.state, standing_of(site, timezone.now()).kind) == ("idle", "commissioning")
    page = olga.get(reverse("web:site", args=[site.name])).content.decode()
    assert 'id="commissioning"' in page

    pilot = factories.pilot(site.queues.get())

    site.refresh_from_db()
    assert site.state == "open"
    assert site.state_by == f"pilot:{pilot.uuid}"
    assert standing_of(site, timezone.now()).kind == ""
    assert SiteEvent.objects.filter(site=site, event="commission").count() == 1
    factories.pilot(site.queues.get())
    assert SiteEvent.objects.filter(site=site, event="commission").count() == 1


def test_an_imported_site_is_commissioning_and_what_is_there_stays_open(
    people: SimpleNamespace,
) -> None:
    factories.site("Old")
    olga = Actor.person(people.olga)
    for name in ("Old", "Fresh"):
        text = _DOCUMENT.format(name)
        import_sites(text, token=preview_import(text, actor=olga).token, actor=olga)

    states = dict(Site.objects.values_list("name", "state"))

    assert states == {"Old": "open", "Fresh": "commissioning"}


def test_an_operator_opens_a_new_site_with_a_reason(olga: Client, people: SimpleNamespace) -> None:
    site = _new_site(olga)

    commission_site(site.name, actor=Actor.person(people.olga), reason="it worked elsewhere")

    site.refresh_from_db()
    assert (site.state, site.state_by, site.state_reason) == ("open", "olga", "it worked elsewhere")


def test_a_site_of_which_no_queue_answers_is_not_told_as_open(people: SimpleNamespace) -> None:
    site = factories.site("UW", queues=["short", "long"])
    now = timezone.now()
    for number, queue in enumerate(Queue.objects.filter(site=site), start=1):
        note_failure(queue, ElementContact.Kind.POLL, "no route to host", now=now, jitter=0)

        [line] = site_lines(people.sam, now=now + timedelta(seconds=1))

        assert line.is_unanswered == (number == 2)


def test_the_page_of_a_new_site_offers_to_open_it(olga: Client, people: SimpleNamespace) -> None:
    site = _new_site(olga)
    address = reverse("web:site", args=[site.name])
    assert "commission" in {offer.action.name for offer in olga.get(address).context["offers"]}

    olga.post(
        reverse("web:steer-site", args=[site.name, "commission"]),
        {"reason": "it worked elsewhere", "seen": "commissioning"},
    )

    site.refresh_from_db()
    assert site.state == "open"
    assert "commission" not in {offer.action.name for offer in olga.get(address).context["offers"]}
