"""Downtimes in the administration."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests import factories
from wms.core.models import AuditEntry
from wms.sites.downtimes.models import Downtime
from wms.sites.models import Site

LIST = "/admin/sites/downtime/"
FORM = {
    "start_0": "2100-01-01",
    "start_1": "08:00:00",
    "end_0": "2100-01-01",
    "end_1": "17:00:00",
    "lead_time_s": "3600",
    "reason": "new disks",
}


@pytest.fixture
def site(db: None) -> Site:
    return factories.site("Florida")


def test_a_downtime_is_entered_with_its_author(olga: Client, site: Site) -> None:
    answer = olga.post(f"{LIST}add/", FORM | {"site": site.pk})

    assert answer.status_code == 302, answer.context["adminform"].form.errors
    downtime = Downtime.objects.get()
    assert (downtime.site, downtime.author, downtime.lead_time_s) == (site, "olga", 3600)
    assert AuditEntry.objects.filter(actor="olga", action="add downtime").count() == 1
    assert "new disks" in olga.get(LIST).content.decode()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"end_1": "08:00:00"}, "end"),
        ({"start_0": "2000-01-01", "end_0": "2000-01-02"}, "end"),
        ({"reason": ""}, "reason"),
        ({"lead_time_s": "99999999"}, "lead_time_s"),
        ({"start_0": "soon"}, "start"),
    ],
)
def test_a_fault_is_shown_at_its_field(
    olga: Client, site: Site, changes: dict[str, Any], field: str
) -> None:
    answer = olga.post(f"{LIST}add/", FORM | {"site": site.pk} | changes)

    assert answer.status_code == 200
    assert list(answer.context["adminform"].form.errors) == [field]
    assert not Downtime.objects.exists()


def test_a_downtime_is_changed_at_its_site(olga: Client, site: Site) -> None:
    downtime, other = factories.downtime(site), factories.site("Other")
    address = f"{LIST}{downtime.pk}/change/"

    answer = olga.post(address, FORM | {"site": other.pk})

    assert answer.status_code == 302
    downtime.refresh_from_db()
    assert (downtime.site, downtime.lead_time_s, downtime.author) == (site, 3600, "system:test")


def test_chosen_downtimes_are_cancelled_and_stay_so(olga: Client, site: Site) -> None:
    downtime = factories.downtime(site)
    action = {"action": "cancel", "_selected_action": [downtime.pk]}

    first = olga.post(LIST, action, follow=True).content.decode()
    again = olga.post(LIST, action, follow=True).content.decode()
    change = olga.post(f"{LIST}{downtime.pk}/change/", FORM)

    assert "Cancelled: 1." in first
    assert "None was cancelled." in again
    assert "by olga" in change.content.decode()
    assert Downtime.objects.get().cancelled_by == "olga"
