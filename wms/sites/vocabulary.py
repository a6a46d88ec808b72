"""Vocabulary of jobs' needs: names of sites, queues, platforms, tags and ad attributes today.

Also warnings about words that none of them offers, the longest time that a pilot has for a job, and
the attributes that some site's ad had when it was published last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from matching.task_queues.needs import Needs
from matching.task_queues.undefined_attributes import unknown_attributes
from wms.sites.models import Queue, Site, SiteAd
from wms.sites.selectors import fresh_cpu_time_s, fresh_time_s

_ATTRIBUTE = re.compile(r"^\s*([A-Za-z_][A-Za-z0-9_]*)\s*=", re.MULTILINE)
#: Messages for unknown terms, by field of the needs.
_SENTENCES = {
    "sites": "there is no site {word} today",
    "banned_sites": "there is no site {word} today",
    "queues": "no site has a queue {word} today",
    "platforms": "no queue offers the platform {word} today",
    "submit_pools": "no queue is in the submit pool {word} today",
    "middlewares": "no queue gets its pilots by {word} today",
    "tags": "no queue offers the tag {word} today",
    "setup": "no queue belongs to the setup {word} today",
}


class UnknownTerm(NamedTuple):
    """A term in a job's needs that no site or queue offers today: its field and a message."""

    field: str
    message: str


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Terms that sites and queues offer today, by field of a job's needs."""

    by_field: Mapping[str, frozenset[str]]
    #: The time that a job may have of a fresh pilot, where that is longest, of the clock and of a
    #: core of power 1.0; none without a queue.
    longest_s: int | None = None
    longest_cpu_s: int | None = None

    def unknown(self, needs: Needs) -> tuple[UnknownTerm, ...]:
        """Terms of these needs that are not in the vocabulary. They may be tomorrow.

        Attributes of their requirements that no pilot ever has are among them.
        """
        words = [
            UnknownTerm(field, sentence.format(word=word))
            for field, sentence in _SENTENCES.items()
            for word in _words(needs, field)
            if word not in self.by_field[field]
        ]
        attributes = unknown_attributes(needs.requirements)
        return (*words, *(UnknownTerm("requirements", message) for message in attributes))


def _words(needs: Needs, field: str) -> tuple[str, ...]:
    value = getattr(needs, field)
    if isinstance(value, str):
        return (value,) if value else ()
    return tuple(value)


def current_vocabulary() -> Vocabulary:
    """Terms that enabled sites and queues offer. Two queries."""
    sites = dict(Site.objects.values_list("name", "is_enabled"))
    return _offered(sites, Queue.objects.select_related("site"))


def advertised_names() -> frozenset[str]:
    """The attributes that some site's ad had when it was published last, in lower case. A query."""
    texts = SiteAd.objects.values_list("text", flat=True)
    return frozenset(name.lower() for text in texts for name in _ATTRIBUTE.findall(text))


def unknown_terms(queues: Iterable[Queue], needs: Needs) -> tuple[UnknownTerm, ...]:
    """Terms of these needs that none of the queues, which are all there are, offers.

    They have been read with their sites. A query if the needs name a site without a queue.
    """
    offers = list(queues)
    sites = {queue.site.name: queue.site.is_enabled for queue in offers}
    others = {*needs.sites, *needs.banned_sites} - sites.keys()
    if others:
        found = Site.objects.filter(name__in=others).values_list("name", "is_enabled")
        sites |= dict(found)
    return _offered(sites, offers).unknown(needs)


def _offered(sites: Mapping[str, bool], queues: Iterable[Queue]) -> Vocabulary:
    offers = [queue for queue in queues if queue.is_enabled and queue.site.is_enabled]
    return Vocabulary(
        {
            "sites": frozenset(name for name, is_enabled in sites.items() if is_enabled),
            "banned_sites": frozenset(sites),
            "queues": frozenset(str(queue) for queue in offers),
            "platforms": frozenset(queue.platform for queue in offers),
            "submit_pools": frozenset(queue.submit_pool for queue in offers),
            "middlewares": frozenset(queue.element for queue in offers),
            "tags": frozenset(tag for queue in offers for tag in queue.tags),
            "setup": frozenset(queue.setup for queue in offers),
        },
        longest_s=max(map(fresh_time_s, offers), default=None),
        longest_cpu_s=max(map(fresh_cpu_time_s, offers), default=None),
    )
