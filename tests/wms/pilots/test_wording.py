"""Sentences that pilots and users read about claims and queues; other tests look at facts."""

from __future__ import annotations

import pytest

from matching.task_queues.needs import Needs
from matching.task_queues.resources import Resource
from wms.pilots.pressure.fitting import largest_first, no_fit_reasons
from wms.pilots.protocol.refusals import no_fit_refusal
from wms.taskqueues.selectors import Demand

FREE = Resource("UW", queue="UW/short", cpu_time_s=3600, cores=1, memory_mb=2000)


@pytest.mark.parametrize(
    ("host", "ending"),
    [("", ""), ("wn1", "; jobs that have failed on wn1 wait for other worker nodes")],
)
def test_a_claim_in_vain(host: str, ending: str) -> None:
    assert no_fit_refusal(FREE, host).reason == (
        "no waiting job fits what a pilot of UW/short has free: cores 1, memory 2000 MB, GPUs 0, "
        f"time 3600 s{ending}"
    )


@pytest.mark.parametrize(
    ("needs", "reason"),
    [
        (Needs.of("alice", cores=4), "needs 4 cores, offered are 1"),
        (
            Needs.of("alice", platforms=["linux-x86_64"]),
            "needs platform linux-x86_64, here is linux-aarch64",
        ),
    ],
)
def test_a_queue_that_no_job_fits(needs: Needs, reason: str) -> None:
    queue = Resource("a", cpu_time_s=1000, platform="linux-aarch64")

    assert no_fit_reasons(queue, largest_first([Demand(1, needs, 3)])) == [reason]
