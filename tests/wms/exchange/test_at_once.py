"""Two who import at once: the second is told what was changed, and nothing is half done."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from django.db import connection, transaction

from tests import factories
from wms.exchange.site_import import PlanChanged, import_sites, preview_import
from wms.sites.models import Site
from wms.sites.services import save_site

TEXT = "format: pilotage-sites\nversion: 1\nsites:\n- name: Old\n- name: New\n"


def _somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            " AND datname = current_database()"
        )
        return cursor.fetchone() is not None


def _in_background(act: Callable[[], None]) -> threading.Thread:
    def run() -> None:
        try:
            act()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


@pytest.mark.django_db(transaction=True)
def test_a_site_that_somebody_else_makes_meanwhile_is_a_conflict_and_nothing_is_stored() -> None:
    token = preview_import(TEXT, actor=factories.SYSTEM).token
    is_made, may_go_on = threading.Event(), threading.Event()

    def make_the_same() -> None:
        with transaction.atomic():
            save_site(Site(name="New"), actor=factories.SYSTEM)
            is_made.set()
            while not (may_go_on.is_set() or _somebody_waits()):
                may_go_on.wait(0.05)

    other = _in_background(make_the_same)
    is_made.wait(30)
    try:
        with pytest.raises(PlanChanged) as caught:
            import_sites(TEXT, token=token, actor=factories.SYSTEM)
    finally:
        may_go_on.set()
        other.join()

    outcomes = {step.title: step.outcome for step in caught.value.plan.steps}
    assert outcomes["New"] == "refused"
    assert list(Site.objects.values_list("name", flat=True)) == ["New"]
