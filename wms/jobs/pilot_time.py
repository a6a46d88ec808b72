"""Jobs that their pilots' time was too short for, and whether a longer pilot may be had."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from matching.needs import Needs
from matching.resources import offer_refusal
from wms.jobs.models import Job
from wms.sites.selectors import enabled_queues, fresh_time_s, offered_resource

#: A job that may run longer than any pilot asks for this part of the longest one's time: fresh
#: pilots have that much, however long their checks take.
_PART_OF_LONGEST = 0.9


def needs_of_more_time(job: Job, ran_s: float, now: datetime) -> Needs | None:
    """The job's needs with more time than it had, of a queue that is open to it; else None.

    It asks for as long as it may run, where a queue's pilots live that long.
    """
    needs = Needs.from_dict(job.needs)
    anywhere = replace(needs, cpu_time_s=0)
    queues = enabled_queues(now)
    open_to_it = [each for each in queues if not offer_refusal(offered_resource(each), anywhere)]
    longest_s = max(map(fresh_time_s, open_to_it), default=0)
    asked_s = min(job.wall_limit_s, int(longest_s * _PART_OF_LONGEST))
    return replace(needs, cpu_time_s=asked_s) if asked_s > ran_s else None
