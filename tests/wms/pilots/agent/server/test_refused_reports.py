"""Refused reports: a real pilot, and a server that cannot take the report of one job."""

from __future__ import annotations

import pytest

from tests.wms.pilots.agent.conftest import World, wait_until
from tests.wms.pilots.agent.faulty_proxy import PASS
from wms.jobs.models import Attempt, Job


def report_of(job: Job) -> str:
    return f"/pilot/v1/jobs/{job.pk}/1/report"


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_report_that_is_not_taken_holds_up_neither_the_slot_nor_reports_of_others(
    world: World, status: int
) -> None:
    stuck = world.submit("#!/bin/sh\necho 42 >result\n", outputs=("result",))
    world.server.fault = lambda method, path: status if path == report_of(stuck) else PASS
    agent = world.start()
    wait_until(lambda: ("POST", report_of(stuck)) in world.server.seen, "its end is reported")
    others = [world.submit("#!/bin/sh\ntrue\n") for _ in range(3)]

    for each in others:
        world.wait_for_state(each, "done")
    assert Attempt.objects.get(job=stuck).outcome == ""
    world.server.fault = lambda method, path: PASS

    assert agent.wait() == 0
    assert world.output(world.wait_for_state(stuck, "done"), "result") == b"42\n"
    assert {each.number for each in Attempt.objects.all()} == {1}
    assert world.server.count("PUT", f"jobs/{stuck.pk}/1/files/output/result") == 1


def test_a_report_that_is_refused_costs_its_job_an_attempt_and_the_pilot_nothing(
    world: World,
) -> None:
    refused = world.submit("#!/bin/sh\ntrue\n")
    world.server.fault = lambda method, path: (
        413 if path == report_of(refused) and world.server.count(method, path) == 1 else PASS
    )
    agent = world.start()
    wait_until(lambda: Attempt.objects.filter(outcome="not_run").exists(), "it is given back")
    other = world.submit("#!/bin/sh\ntrue\n")

    world.wait_for_state(other, "done")
    assert agent.wait() == 0
    assert "refused" in Attempt.objects.get(job=refused, number=1).reason
