"""What-if changes of jobs' needs and of what queues offer, parsed and applied in memory only.

Also counts of the waiting jobs that a site could run, as it is and with changes. Jobs and queues
are compared by `matching.task_queues.requirements.offer_refusal`, as for pilots.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from matching.task_queues.needs import MOST, BadNeeds, Needs
from matching.task_queues.requirements import offer_refusal
from wms.core.errors import Finding, InvalidInput
from wms.core.models import User
from wms.sites.frontends.entries import entry_offers
from wms.sites.models import Queue, Site
from wms.taskqueues.listing import Order, task_queue_page, visible_task_queues
from wms.taskqueues.task_queue_policy import task_queue_policy

#: Limit of TaskQueues, largest first, that are compared with a site's queues.
MAX_TASK_QUEUES = 500
_NUMBERS = ("cores", "memory_mb", "gpus")
_NUMBERS_OF_NEEDS = (*_NUMBERS, "disk_mb")
_MAX_TEXT_LENGTH = 64


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        raise ValueError("must be a whole number")
    return int(text)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _short(text: str) -> str:
    if len(text) > _MAX_TEXT_LENGTH:
        raise ValueError(f"has more than {_MAX_TEXT_LENGTH} characters")
    return text


#: Fields of needs that can be changed, and the parsers of their texts.
NEEDS: dict[str, Callable[[str], Any]] = {
    "cpu_time_s": _number,
    **dict.fromkeys(_NUMBERS_OF_NEEDS, _number),
    "sites": _words,
    "banned_sites": _words,
    "platforms": _words,
    "tags": _words,
    "setup": _short,
    "requirements": str,
}
#: Fields of queues that can be changed, and the parsers of their texts.
OFFERS: dict[str, Callable[[str], Any]] = {
    "wall_time_s": _number,
    **dict.fromkeys(_NUMBERS, _number),
    "platform": _short,
    "tags": _words,
    "required_tags": _words,
    "setup": _short,
}


@dataclass(frozen=True, slots=True)
class QueueChanges:
    """Changed offers of queues, by `SITE` for all of its queues, or by `SITE/QUEUE`."""

    offers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.offers)

    def applied(self, queue: Queue) -> Queue:
        """Queue with its changes; the given object is changed in memory."""
        site = queue.site.name
        changes = {**self.offers.get(site, {}), **self.offers.get(f"{site}/{queue.name}", {})}
        for name, value in changes.items():
            setattr(queue, name, value)
        return queue


def changed_needs(needs: Needs, texts: Mapping[str, str]) -> Needs:
    """Needs with changes; an empty text removes a need. Raises InvalidInput."""
    if not texts:
        return needs
    values = _parse_fields(texts, NEEDS, "needs")
    known = needs.as_dict()
    owner = known.pop("owner")
    if "cores" in values:
        known["max_cores"] = max(values["cores"], needs.max_cores)
    try:
        return Needs.of(owner, segments_s=task_queue_policy().cpu_segments_s, **known | values)
    except BadNeeds as error:
        raise InvalidInput.of(str(error), field="needs") from error


def queue_changes(texts: Mapping[str, Mapping[str, str]]) -> QueueChanges:
    """Queue changes parsed from texts. Raises InvalidInput, also for unknown queues."""
    known = _site_and_queue_names() if texts else set()
    faults = [
        Finding(f"There is no queue or site {name}.", field="queues")
        for name in texts
        if name not in known
    ]
    if faults:
        raise InvalidInput(faults)
    return QueueChanges(
        {name: _parse_fields(given, OFFERS, "queues") for name, given in texts.items()}
    )


def _site_and_queue_names() -> set[str]:
    pairs = Site.objects.values_list("name", "queues__name")
    return {name for site, queue in pairs for name in (site, f"{site}/{queue}")}


def _parse_fields(
    texts: Mapping[str, str], readers: Mapping[str, Callable[[str], Any]], field_name: str
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    faults = []
    for name, text in texts.items():
        try:
            values[name] = _parse_value(name, text.strip(), readers)
        except ValueError as error:
            faults.append(Finding(f"{name} {error}", field=field_name))
    if faults:
        raise InvalidInput(faults)
    return values


def _parse_value(name: str, text: str, readers: Mapping[str, Callable[[str], Any]]) -> Any:
    if name not in readers:
        raise ValueError(f"cannot be tried; these can: {', '.join(readers)}")
    if not text and readers[name] is _number:
        return 1 if name == "cores" else 0
    value = readers[name](text)
    if readers[name] is _number and value > MOST.get(name, MOST["cpu_time_s"]):
        raise ValueError(f"must be at most {MOST.get(name, MOST['cpu_time_s'])}")
    return value


@dataclass(frozen=True, slots=True)
class SiteJobs:
    """Number of waiting jobs, and of those that a queue of the site could run.

    `unseen` is true if there are more TaskQueues than the limit.
    """

    task_queues: int
    jobs: int
    fitting: int
    unseen: bool


def jobs_for_site(user: User, site_id: int, changes: QueueChanges) -> tuple[SiteJobs, SiteJobs]:
    """Waiting jobs that queues of a site could run, as they are and with changes."""
    queues = Queue.objects.filter(site_id=site_id).select_related("site", "owner", "owner_group")
    page = task_queue_page(
        visible_task_queues(user), order=Order.WAITING, after=None, limit=MAX_TASK_QUEUES
    )
    waiting = [(line.needs, line.waiting_jobs) for line in page.lines]
    unseen = page.following is not None
    before = list(queues)
    counted = _counted(before, waiting, unseen=unseen)
    if not changes:
        return counted, counted
    return counted, _counted(map(changes.applied, before), waiting, unseen=unseen)


def _counted(
    queues: Sequence[Queue] | map[Queue], waiting: Sequence[tuple[Needs, int]], *, unseen: bool
) -> SiteJobs:
    offers = [offer for _, offer in entry_offers(list(queues))]
    fitting = sum(
        jobs for needs, jobs in waiting if any(not offer_refusal(o, needs) for o in offers)
    )
    return SiteJobs(len(waiting), sum(jobs for _, jobs in waiting), fitting, unseen)
