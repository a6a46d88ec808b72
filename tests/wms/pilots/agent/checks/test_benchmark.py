"""Benchmark of a node's core, which is off where the queue does not ask for it."""

from __future__ import annotations

import json
import time

import pytest

from wms.core.errors import InvalidInput
from wms.pilots.agent.checks.benchmark import benchmark
from wms.pilots.program.check_settings import check_queue_checks
from wms.pilots.program.manifest import manifest_content, store_manifest
from wms.sites.models import Queue, Site


def test_it_measures_a_power_in_the_time_that_it_is_given() -> None:
    began_s = time.process_time()

    found = benchmark({"settings": {"seconds": 0.1}})

    assert 0.1 <= time.process_time() - began_s < 2
    assert not found.reason
    assert 0.01 < found.attributes["CpuPower"] < 100
    assert found.attributes["CpuPower"] == pytest.approx(found.metrics["db12"] / 10, abs=0.01)


@pytest.mark.django_db
def test_pilots_carry_it_where_their_queue_tells_how_long() -> None:
    queue = Queue.objects.create(site=Site.objects.create(name="UW"), name="q", element="host")

    def carried() -> list[str]:
        manifest = json.loads(manifest_content(store_manifest(queue)))
        return [check["name"] for check in manifest["checks"]]

    assert "benchmark" not in carried()
    queue.checks = [{"name": "benchmark", "settings": {"seconds": 2}}]
    check_queue_checks(queue)
    assert "benchmark" in carried()
    for seconds in (0, 31, "2", True):
        queue.checks = [{"name": "benchmark", "settings": {"seconds": seconds}}]
        with pytest.raises(InvalidInput, match=r"settings\.seconds"):
            check_queue_checks(queue)
