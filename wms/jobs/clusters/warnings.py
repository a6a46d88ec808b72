"""Warnings about a submitted cluster: needs that nothing meets today, commands without effect.

Also the reason why none of some queues can run a job with given needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from typing import Any

from django.utils import timezone

from matching.negotiation.unmatched_reasons import grouped_reasons
from matching.task_queues.needs import Needs
from matching.task_queues.requirements import offer_refusal
from matching.task_queues.resources import Resource
from wms.core.errors import Finding
from wms.jobs.clusters.finding_places import Places
from wms.jobs.clusters.undefined_names import macros_in
from wms.jobs.description.commands import SYNONYMS, command_warning, value_warning
from wms.jobs.description.needs import written_name
from wms.jobs.description.submit_file import SubmitFile
from wms.jobs.specs import JobSpec, different_needs
from wms.sites.frontends.entries import entry_offers
from wms.sites.selectors import enabled_queues
from wms.sites.vocabulary import current_vocabulary

#: Commands that mean something for a cluster, and nothing for the jobs of a node.
_OF_CLUSTERS = frozenset(
    {"accounting_group", "batch_name", "job_batch_name", "max_idle", "max_materialize"}
)
#: Different needs that are compared with all queues.
_MAX_NEEDS = 50


def cluster_warnings(
    description: SubmitFile, specs: Sequence[JobSpec], places: Places
) -> list[Finding]:
    """Warnings about a description and these jobs of it. A few queries."""
    needs = different_needs(specs)[:_MAX_NEEDS]
    return [
        *map(places.located, description.warnings),
        *_of_commands(description, places),
        *_of_needs(needs, places),
    ]


def _of_commands(description: SubmitFile, places: Places) -> Iterator[Finding]:
    commands = {*description.commands}.union(*(queue.commands for queue in description.queues))
    for name in sorted(commands - SYNONYMS.keys() - _OF_CLUSTERS - macros_in(description)):
        if message := command_warning(name):
            yield places.of_command(message, [name])
    for given in (description.commands, *(queue.commands for queue in description.queues)):
        for name in given:
            if message := value_warning(name, description.commands | given):
                yield places.of_command(message, [name])


def _of_needs(different: Sequence[Needs], places: Places) -> Iterator[Finding]:
    vocabulary = current_vocabulary()
    queues = list(enabled_queues(timezone.now()))
    offers = {str(entry): offer for entry, offer in entry_offers(queues)}
    for needs in different:
        for term in vocabulary.unknown(needs):
            name = written_name(term.field)
            yield places.of_command(f"{name}: {term.message}", [name])
        if why := no_queue_reason(offers, needs):
            names = [_written(name) for name in _at_fault(offers, needs)]
            yield places.of_command(f"no queue can run it today: {why}", names)


def _written(field: str) -> str:
    return "accounting_group" if field == "owner_group" else written_name(field)


def _at_fault(offers: Mapping[str, Resource], needs: Needs) -> list[str]:
    """The needs without which some queue could run it, one by one."""
    found = []
    for each in fields(needs):
        default: Any = each.default
        if default is MISSING or getattr(needs, each.name) == default:
            continue
        if not no_queue_reason(offers, replace(needs, **{each.name: default})):
            found.append(each.name)
    return found


def no_queue_reason(offers: Mapping[str, Resource], needs: Needs) -> str:
    """Why none of these queues can run a job; empty when one can."""
    refusals = {name: offer_refusal(offer, needs) for name, offer in offers.items()}
    if not all(refusals.values()):
        return ""
    return grouped_reasons(refusals.items()) or "there is none that is open"
