"""Limits on the pilots of many queues in the administration."""

from __future__ import annotations

import pytest
from django.test import Client

from tests import factories
from wms.core.models import AuditEntry
from wms.pilots.pressure_models import PilotLimit

ADD = "/admin/pilots/pilotlimit/add/"


def test_a_limit_is_stored_and_deleted_with_audit_entries(olga: Client) -> None:
    site = factories.site("UW")

    olga.post(ADD, {"scope": "site", "site": site.pk, "max_pilots": "50"})
    limit = PilotLimit.objects.get()
    olga.post(f"/admin/pilots/pilotlimit/{limit.pk}/delete/", {"post": "yes"})

    assert (limit.site, limit.max_pilots) == (site, 50)
    assert not PilotLimit.objects.exists()
    target = "limit on the pilots of a site UW"
    assert AuditEntry.objects.filter(target=target, actor="olga").count() == 2


@pytest.mark.parametrize(
    ("scope", "number", "field"),
    [("whole", "5", "site"), ("site", "", "max_pilots"), ("moon", "5", "scope")],
)
def test_a_fault_is_shown_at_its_field(olga: Client, scope: str, number: str, field: str) -> None:
    site = factories.site("UW")

    answer = olga.post(ADD, {"scope": scope, "site": site.pk, "max_pilots": number})

    assert answer.status_code == 200
    assert field in answer.context["adminform"].form.errors
    assert not PilotLimit.objects.exists()


def test_each_place_has_one_limit(olga: Client) -> None:
    olga.post(ADD, {"scope": "whole", "max_pilots": "50"})

    answer = olga.post(ADD, {"scope": "whole", "max_pilots": "60"})

    assert answer.status_code == 200
    assert PilotLimit.objects.get().max_pilots == 50
