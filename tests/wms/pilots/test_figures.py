"""Figures of queues' pilots: alive, started and ended lately, and software that checks found."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from tests import factories
from wms.pilots.agent.checks import builtin
from wms.pilots.figures import figures_by_queue
from wms.pilots.models import Pilot, PilotCheck

pytestmark = pytest.mark.django_db


def _check(pilot: Pilot, software: str, *, name: str = "gcc", is_ok: bool = True) -> None:
    metrics = {"software": software} if software else {}
    PilotCheck.objects.create(
        pilot=pilot, name=name, is_ok=is_ok, metrics=metrics, seconds=1.0, key=name
    )


def test_a_queue_without_pilots_has_no_figures() -> None:
    factories.site("site-a")

    assert figures_by_queue(timezone.now()) == {}


def test_pilots_are_counted_by_queue_and_by_what_they_did_lately() -> None:
    first, second = (factories.site(name).queues.get() for name in ("site-a", "site-b"))
    now = timezone.now()
    long_ago = now - timedelta(hours=3)
    pilots = [factories.pilot(first) for _ in range(6)]
    factories.queued_pilot(first)
    factories.queued_pilot(second)
    starts = [(20, 10), (40, 10), (60, 600), (80, 10), (1000, 9000), (100, 10)]
    for pilot, (waited_s, ago_s) in zip(pilots, starts, strict=True):
        at = now - timedelta(seconds=ago_s)
        created = at - timedelta(seconds=waited_s)
        Pilot.objects.filter(pk=pilot.pk).update(registered_at=at, created_at=created)
    ends = [("done", now), ("failed", now), ("failed", long_ago), ("removed", now)]
    for pilot, (state, at) in zip(pilots, ends, strict=False):
        Pilot.objects.filter(pk=pilot.pk).update(state=state, ended_at=at)
    Pilot.objects.filter(pk=pilots[5].pk).update(state="stalled")

    found = figures_by_queue(now)

    here, there = found[first.pk], found[second.pk]
    assert (here.running, here.queued, here.done, here.failed) == (2, 1, 1, 1)
    assert (here.starts, here.waited) == (4, timedelta(seconds=20 + 40 + 80 + 100))
    assert (there.running, there.queued, there.starts) == (0, 1, 0)


def test_software_is_what_good_checks_of_running_pilots_name() -> None:
    queue = factories.site("site-a").queues.get()
    running, gone = factories.pilot(queue), factories.pilot(queue)
    Pilot.objects.filter(pk=gone.pk).update(state="done", ended_at=timezone.now())
    _check(running, "gcc-13, root-6.32", name="a")
    _check(running, "gcc-13", name="b")
    _check(running, "broken", name="c", is_ok=False)
    _check(running, "", name="d")
    _check(gone, "old", name="a")

    assert figures_by_queue(timezone.now())[queue.pk].software == {"gcc-13", "root-6.32"}


def test_three_statements_are_enough(django_assert_num_queries) -> None:
    for number in range(3):
        factories.pilot(factories.site(f"site-{number}").queues.get())

    with django_assert_num_queries(3):
        figures_by_queue(timezone.now())


def test_the_built_in_check_names_the_directories_that_it_has_found(tmp_path: Path) -> None:
    (tmp_path / "release").touch()
    here, many = str(tmp_path), [str(tmp_path)] * 100

    found = builtin.software({"settings": {"directories": [here]}})
    cut = builtin.software({"settings": {"directories": many}})

    assert (found.reason, found.metrics) == ("", {"software": here})
    # No name is cut in two where the text of a metric ends.
    assert set(cut.metrics["software"].split(",")) == {here}
    assert len(cut.metrics["software"]) <= 200
    assert builtin.software({"settings": {}}).metrics == {}
