"""The administration for site administrators: their own sites, and nothing of others."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.test import Client

from tests import factories
from tests.portal.admin.conftest import AsPerson
from wms.core.models import AuditEntry
from wms.jobs.limits import save_limit
from wms.jobs.models import RunningLimit
from wms.sites.models import Site
from wms.sites.services import save_site


@pytest.fixture
def sites(people: SimpleNamespace) -> SimpleNamespace:
    """Tina's site, and one of others, each with a limit and a downtime."""
    own, other = factories.site("UW"), factories.site("Florida")
    save_site(own, actor=factories.SYSTEM, administrators=[people.tina])
    for site in (own, other):
        factories.downtime(site)
        save_limit(
            RunningLimit(site=site, job_type=f"of{site.name}", maximum=1), actor=factories.SYSTEM
        )
    return SimpleNamespace(own=own, other=other)


@pytest.fixture
def tina(as_person: AsPerson, sites: SimpleNamespace) -> Client:
    return as_person("tina")


def _addresses(site: Site) -> list[str]:
    rows = {
        "sites/site": site.pk,
        "sites/queue": site.queues.get().pk,
        "sites/downtime": site.downtimes.get().pk,
        "jobs/runninglimit": site.running_limits.get().pk,
    }
    return [
        f"/admin/{name}/{pk}/{page}/" for name, pk in rows.items() for page in ("change", "history")
    ]


@pytest.mark.slow
def test_own_objects_are_there_and_those_of_others_are_not(
    tina: Client, sites: SimpleNamespace
) -> None:
    own = {address: tina.get(address).status_code for address in _addresses(sites.own)}
    others = {address: tina.get(address).status_code for address in _addresses(sites.other)}

    assert set(own.values()) == {200}, own
    assert set(others.values()) == {404}, others


def test_nothing_of_another_site_can_be_sent(tina: Client, sites: SimpleNamespace) -> None:
    for address in _addresses(sites.other):
        assert tina.post(address, {"max_matches": "77"}).status_code == 404

    assert not AuditEntry.objects.filter(actor="tina").exists()


@pytest.mark.parametrize("name", ["sites/site", "sites/queue", "jobs/runninglimit"])
def test_lists_show_own_sites_only(tina: Client, sites: SimpleNamespace, name: str) -> None:
    page = tina.get(f"/admin/{name}/").content.decode()

    assert "UW" in page
    assert "Florida" not in page


def test_what_operators_decide_is_shown_and_not_offered(
    tina: Client, sites: SimpleNamespace
) -> None:
    site = tina.get(f"/admin/sites/site/{sites.own.pk}/change/").content.decode()
    queue = tina.get(f"/admin/sites/queue/{sites.own.queues.get().pk}/change/").content.decode()

    assert 'name="max_matches"' in site
    assert 'name="administrators"' not in site
    assert 'name="max_pilots"' in queue
    for field in ("site", "element", "settings", "is_private", "owner", "owner_group", "fence",
                  "network", "shared_folders", "payload_accounts"):  # fmt: skip
        assert f'name="{field}"' not in queue


def test_no_site_and_no_queue_is_made(tina: Client) -> None:
    assert tina.get("/admin/sites/site/add/").status_code == 403
    assert tina.get("/admin/sites/queue/add/").status_code == 403


def test_a_limit_is_made_for_the_own_site_only(tina: Client, sites: SimpleNamespace) -> None:
    body = {"job_type": "New", "owner_group": "", "maximum": "3", "note": ""}

    for site in ("", sites.other.pk):
        answer = tina.post("/admin/jobs/runninglimit/add/", body | {"site": site})
        assert list(answer.context["adminform"].form.errors) == ["site"]
    answer = tina.post("/admin/jobs/runninglimit/add/", body | {"site": sites.own.pk})

    assert answer.status_code == 302
    assert RunningLimit.objects.get(job_type="New").site == sites.own


def test_downtimes_of_others_are_not_cancelled(tina: Client, sites: SimpleNamespace) -> None:
    chosen = [site.downtimes.get().pk for site in (sites.own, sites.other)]

    tina.post("/admin/sites/downtime/", {"action": "cancel", "_selected_action": chosen})

    assert sites.own.downtimes.get().cancelled_by == "tina"
    assert sites.other.downtimes.get().cancelled_at is None


@pytest.mark.parametrize(
    "address",
    ["/admin/core/user/", "/admin/accounting/accountinggroup/", "/admin/core/auditentry/",
     "/admin/dags/matchmakingpolicy/1/change/", "/admin/taskqueues/taskqueuepolicy/1/change/"],
)  # fmt: skip
def test_what_is_common_to_all_sites_stays_closed(tina: Client, address: str) -> None:
    assert tina.get(address).status_code == 403


def test_the_first_page_shows_what_is_open(tina: Client) -> None:
    page = tina.get("/admin/").content.decode()

    assert "Queues" in page
    assert "Concurrency limits" not in page


def test_who_is_named_by_no_site_is_not_let_in(as_person: AsPerson, people: object) -> None:
    answer = as_person("tom").get("/admin/", follow=True)

    assert answer.status_code == 403


def test_an_operator_names_administrators(
    olga: Client, people: SimpleNamespace, sites: SimpleNamespace
) -> None:
    address = f"/admin/sites/site/{sites.other.pk}/change/"
    form = olga.get(address).context["adminform"].form
    body = {name: form.get_initial_for_field(field, name) for name, field in form.fields.items()}
    body |= {"administrators": [people.tom.pk], "is_enabled": "on", "reason": "runs it"}

    answer = olga.post(address, body)

    assert answer.status_code == 302, answer.context["adminform"].form.errors
    assert list(sites.other.administrators.all()) == [people.tom]
    entry = AuditEntry.objects.latest("pk")
    assert entry.facts == {"administrators": [[], ["tom"]]}
    assert entry.reason == "runs it"
    assert entry.request_id
