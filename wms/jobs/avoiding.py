"""Which places a job keeps away from after one of them has failed it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from matching.needs import Needs
from matching.rescheduling import Avoids, without_host, without_site
from wms.core.conf import conf
from wms.jobs.models import Attempt, Job
from wms.sites.models import Site


def avoid_places(job_ids: Collection[int]) -> None:
    """Have jobs keep away from where their open attempts are, as the settings want it.

    No job is kept from the only place that it has: of a site only where another one is open to
    it, of a host only while jobs are at another one of the same site. The caller has locked them.
    """
    avoids = Avoids(conf().reschedule_avoids)
    if avoids is Avoids.NOTHING or not job_ids:
        return
    open_attempts = Attempt.objects.filter(job_id__in=job_ids, outcome="").select_related("job")
    narrow = _away_from_sites if avoids is Avoids.SITE else _away_from_hosts
    changed = []
    for job, needs in narrow(list(open_attempts)).items():
        if needs.as_dict() != job.needs:
            job.needs = needs.as_dict()
            changed.append(job)
    Job.objects.bulk_update(changed, ["needs"], batch_size=500)


def _away_from_sites(attempts: Collection[Attempt]) -> Mapping[Job, Needs]:
    open_sites = Site.objects.filter(is_enabled=True, queues__is_enabled=True)
    names = set(open_sites.values_list("name", flat=True))
    return {
        each.job: without_site(Needs.from_dict(each.job.needs), each.site_name, names)
        for each in attempts
    }


def _away_from_hosts(attempts: Collection[Attempt]) -> Mapping[Job, Needs]:
    at_sites = Attempt.objects.filter(
        outcome="", site_name__in={each.site_name for each in attempts}
    )
    hosts: dict[str, set[str]] = defaultdict(set)
    for site_name, host in at_sites.values_list("site_name", "host").distinct():
        hosts[site_name].add(host)
    return {
        each.job: without_host(Needs.from_dict(each.job.needs), each.host)
        for each in attempts
        if hosts[each.site_name] - {each.host}
    }
