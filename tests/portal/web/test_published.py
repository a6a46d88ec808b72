"""Page of a pilot with what checks of its node published, and what they could not."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django.asserts import assertContains, assertNotContains

from tests import factories
from wms.pilots.models import NodeCheck
from wms.pilots.program.checks import CheckResult, record_checks
from wms.pilots.program.published import Said

pytestmark = pytest.mark.django_db


def test_the_page_of_a_pilot_shows_attributes_and_variables_and_what_was_left_out(
    alice: Client,
) -> None:
    NodeCheck.objects.create(
        name="sw",
        script="#!/bin/sh\n",
        attributes={"Release": "string"},
        variables=["SW_DIR"],
    )
    pilot = factories.pilot()
    said = Said({"Release": "<i>2.5</i>", "Other": 1}, {"SW_DIR": "/cvmfs/sw"})
    record_checks(pilot, [CheckResult("0", "sw", True, "", "", {}, 0.1, said)], now=timezone.now())
    page = alice.get(reverse("web:pilot", args=[pilot.pk]))

    assertContains(page, "sw_Release")
    assertContains(page, "&lt;i&gt;2.5&lt;/i&gt;")
    assertContains(page, "/cvmfs/sw")
    assertContains(page, "Other is not an attribute that the check declares")


def test_the_page_of_a_pilot_that_published_nothing_has_no_table_for_it(
    alice: Client,
) -> None:
    page = alice.get(reverse("web:pilot", args=[factories.pilot().pk]))

    assertNotContains(page, "published-box")


def test_the_page_of_a_pilot_tells_power_and_time_with_their_sources(
    alice: Client,
) -> None:
    pilot = factories.pilot()

    def page(**told: object) -> str:
        type(pilot).objects.filter(pk=pilot.pk).update(**told)
        return alice.get(reverse("web:pilot", args=[pilot.pk])).content.decode()

    assert "<dd>1, as the queue is configured</dd>" in page()
    assert "tells no time" in page()
    node = {**pilot.node, "hostname": "wn1", "time_source": "slurm", "ends_at": 1_900_000_000}
    told = page(node=node, published={"benchmark": {"CpuPower": 1.25}})
    assert "<dd>1.25, measured</dd>" in told
    assert "2030-03-17" in told
    assert "sets no limit" in page(node={**node, "ends_at": None})
