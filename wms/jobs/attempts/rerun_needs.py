"""Needs of jobs that run again, changed: hosts and sites to avoid, or more of a pilot's time."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from matching.task_queues.needs import MOST, Needs
from matching.task_queues.requirements import offer_refusal
from matching.task_queues.rescheduling import Avoids, with_host, without_site
from wms.core.conf import conf
from wms.jobs.models import Attempt, Job
from wms.sites.frontends.entries import EntriesByGroup, entry_offers
from wms.sites.models import Queue
from wms.sites.selectors import enabled_queues, fresh_time_s

#: A job that may run longer than any pilot asks for this part of the longest one's time: fresh
#: pilots have that much, however long their checks take.
_PART_OF_LONGEST = 0.9


def avoid_places(job_ids: Collection[int]) -> None:
    """Have jobs avoid the host or site of their open attempts, as the settings say.

    A site that is the only one open to a job is not avoided. The caller has locked the jobs.
    """
    avoids = Avoids(conf().reschedule_avoids)
    if avoids is Avoids.NOTHING or not job_ids:
        return
    open_attempts = Attempt.objects.filter(job_id__in=job_ids, outcome="")
    attempts = list(open_attempts.select_related("job__description"))
    if avoids is Avoids.SITE:
        _avoid_sites(attempts)
    for attempt in attempts:
        attempt.job.give(avoided_hosts=with_host(attempt.job.avoided_hosts, attempt.host))
    changed = [attempt.job for attempt in attempts]
    Job.objects.bulk_update(changed, ["own"], batch_size=500)


def _avoid_sites(attempts: Collection[Attempt]) -> None:
    queues = Queue.objects.filter(is_enabled=True, site__is_enabled=True).select_related("site")
    entries = EntriesByGroup(list(queues))
    for attempt in attempts:
        needs = Needs.from_dict(attempt.job.needs)
        names = entries.sites(needs)
        attempt.job.give(needs=without_site(needs, attempt.site_name, names).as_dict())


def avoid_host(job: Job, host: str) -> None:
    """Have the job avoid the host on which its payload failed, unless the settings avoid none."""
    if Avoids(conf().reschedule_avoids) is not Avoids.NOTHING:
        job.give(avoided_hosts=with_host(job.avoided_hosts, host))
        job.save(update_fields=["own"])


def needs_of_more_time(job: Job, ran_s: float, now: datetime) -> Needs | None:
    """The job's needs with more time than it had; None where no queue open to it has more.

    They ask for the job's time limit, or for most of the time of the longest pilot.
    """
    needs = Needs.from_dict(job.needs)
    anywhere = replace(needs, cpu_time_s=0)
    offers = entry_offers(list(enabled_queues(now)))
    usable = [entry.queue for entry, offer in offers if not offer_refusal(offer, anywhere)]
    longest = max(usable, key=fresh_time_s, default=None)
    if longest is None:
        return None
    asked_s = min(job.wall_limit_s, int(fresh_time_s(longest) * _PART_OF_LONGEST))
    # Needs are told for a core of power 1.0.
    work_s = min(int(asked_s * longest.cpu_power), MOST["cpu_time_s"])
    return replace(needs, cpu_time_s=work_s) if asked_s > ran_s else None
