"""Which places a job keeps away from after one of them has failed it."""

from __future__ import annotations

from collections.abc import Collection

from matching.needs import Needs
from matching.rescheduling import Avoids, with_host, without_site
from wms.core.conf import conf
from wms.jobs.models import Attempt, Job
from wms.sites.models import Site


def avoid_places(job_ids: Collection[int]) -> None:
    """Have jobs keep away from where their open attempts are, as the settings want it.

    No job is kept from a site that is the only one open to it. The caller has locked them.
    """
    avoids = Avoids(conf().reschedule_avoids)
    if avoids is Avoids.NOTHING or not job_ids:
        return
    open_attempts = Attempt.objects.filter(job_id__in=job_ids, outcome="")
    attempts = list(open_attempts.select_related("job"))
    if avoids is Avoids.SITE:
        _avoid_sites(attempts)
    for attempt in attempts:
        attempt.job.avoided_hosts = with_host(attempt.job.avoided_hosts, attempt.host)
    changed = [attempt.job for attempt in attempts]
    Job.objects.bulk_update(changed, ["needs", "avoided_hosts"], batch_size=500)


def _avoid_sites(attempts: Collection[Attempt]) -> None:
    open_sites = Site.objects.filter(is_enabled=True, queues__is_enabled=True)
    names = set(open_sites.values_list("name", flat=True))
    for attempt in attempts:
        needs = Needs.from_dict(attempt.job.needs)
        attempt.job.needs = without_site(needs, attempt.site_name, names).as_dict()


def avoid_host(job: Job, host: str) -> None:
    """Have the payload that failed on this host be run again on another one."""
    if Avoids(conf().reschedule_avoids) is not Avoids.NOTHING:
        avoided = with_host(job.avoided_hosts, host)
        Job.objects.filter(pk=job.pk).update(avoided_hosts=avoided)
