"""Jobs of clusters at pilots: any site's pilot draws them, and gives them its values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.wms.jobs.clusters.samples import cycle, submit
from tests.wms.pilots.claiming import NOW, SYSTEM, ask, running_pilot
from wms.core.models import User
from wms.jobs.attempts.ending import PayloadEnd, end_attempt
from wms.jobs.models import Attempt, Job
from wms.sites.ads import publish_ads


@pytest.mark.parametrize("site", ["site-a", "site-b"])
def test_the_site_that_draws_a_job_gives_it_its_values(
    alice: User, make_site: Callable[..., Any], site: str
) -> None:
    pilots = {
        name: running_pilot(made.queues.get())
        for name, attributes in (("site-a", "Disks = 2"), ("site-b", "Disks = 5"))
        for made in [make_site(name, environment=f"ROOT=/{name}", attributes=attributes)]
    }
    text = (
        "executable = /bin/echo\narguments = $$(Disks) $$(Arch:any) $ENV(ROOT) $(Process)\nqueue\n"
    )
    cluster = submit(alice, text).cluster
    publish_ads({}, now=NOW)

    work = ask(pilots[site]).work

    assert work is not None, Job.objects.get(cluster_id=cluster.pk).state_reason
    disks = {"site-a": "2", "site-b": "5"}[site]
    assert list(work.job.arguments) == [disks, "any", f"/{site}", "0"]


def test_a_cluster_is_completed_by_the_reports_of_its_jobs(
    alice: User, make_site: Callable[..., Any]
) -> None:
    pilot = running_pilot(make_site("site-a").queues.get())
    cluster = submit(alice, "executable = /bin/true\nqueue 2\n").cluster
    for code in (0, 1):
        work = ask(pilot).work
        assert work is not None
        attempt = Attempt.objects.get(job=work.job)
        end_attempt(
            attempt.job_id, attempt.number, pilot_id=pilot.pk, end=PayloadEnd(exit_code=code),
            actor=SYSTEM, now=NOW,
        )  # fmt: skip

    cluster = cycle(cluster)

    assert (cluster.state, cluster.done_count, cluster.failed_count) == ("completed", 1, 1)
