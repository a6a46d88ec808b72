"""Publications of node checks: judged once more, kept with the pilot, remembered for its queue.

What pilots of a queue have published in the last hour tells the director, and explanations, what
the next ones may publish. The pilot judges by the same rules, but a node may run anything.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Window
from django.db.models.functions import RowNumber

from matching.task_queues.published import Published, PublishedHere
from wms.pilots.agent.checks import BUILT_IN_ATTRIBUTES
from wms.pilots.agent.checks.publication import (
    NOTHING_DECLARED,
    Declaration,
    Publication,
    read_publication,
)
from wms.pilots.models import Pilot
from wms.pilots.program.declarations import (
    checks_meant_for,
    declared_by,
    declared_by_built_in,
    declared_names,
)
from wms.pilots.published_models import SeenPublication
from wms.sites.cpu_power import BENCHMARK, POWER, power_fault
from wms.sites.models import Queue

#: Time for which a set of values tells what the next pilots of a queue may publish.
SEEN_FOR = timedelta(hours=1)
#: A set that was noted within this is not noted again.
_NOTED_AGAIN = timedelta(minutes=5)
#: Different sets at a queue; where there are more, every declared attribute is open.
_MOST_SETS = 20
_SWEPT_AT_ONCE = 5000


@dataclass(frozen=True, slots=True)
class Said:
    """Publication of a check as its pilot tells it, and what the pilot left out itself."""

    attributes: Any = None
    variables: Any = None
    skipped: str = ""


NOTHING_SAID = Said()


def take_publications(
    pilot: Pilot, said: Mapping[str, Said], *, now: datetime
) -> dict[str, tuple[str, ...]]:
    """Keep with the pilot what checks have published, in place of what they did before.

    What a check does not declare, or what is wrong, is left out: the answer has the reasons, by
    check. The caller is in a transaction. Nothing is written where nothing has changed.
    """
    declared = _declared(pilot.queue, said)
    judged = {
        name: read_publication(
            each.attributes, each.variables, declared.get(name, NOTHING_DECLARED)
        )
        for name, each in said.items()
    }
    if BENCHMARK in judged:
        judged[BENCHMARK] = _believed(judged[BENCHMARK], pilot.queue)
    _keep(pilot, {name: judged[name] for name, may in declared.items() if may}, now)
    return {name: _reasons(said[name], each) for name, each in judged.items()}


def _believed(measured: Publication, queue: Queue) -> Publication:
    """Publication of the benchmark without a power that no node of this queue has."""
    power = measured.attributes.get(POWER)
    fault = "" if power is None else power_fault(power, queue)
    if not fault:
        return measured
    return replace(measured, attributes={}, skipped=(*measured.skipped, fault))


def _reasons(said: Said, judged: Publication) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, (said.skipped, *judged.skipped))))


def _declared(queue: Queue, names: Collection[str]) -> dict[str, Declaration]:
    built_in = {name: declared_by_built_in(name) for name in names if name in BUILT_IN_ATTRIBUTES}
    added = checks_meant_for(queue).filter(name__in=names, is_enabled=True)
    return built_in | {each.name: declared_by(each) for each in added}


def _keep(pilot: Pilot, publications: Mapping[str, Publication], now: datetime) -> None:
    if not publications:
        return
    row = Pilot.objects.select_for_update(of=("self",)).only("published", "variables", "queue_id")
    stored = row.get(pk=pilot.pk)
    published = stored.published | {
        name: dict(each.attributes) for name, each in publications.items()
    }
    variables = stored.variables | {
        name: dict(each.variables) for name, each in publications.items()
    }
    variables = {name: given for name, given in variables.items() if given}
    if (published, variables) != (stored.published, stored.variables):
        Pilot.objects.filter(pk=pilot.pk).update(published=published, variables=variables)
    _note_seen(stored.queue_id, published, now)


def _note_seen(queue_id: int, published: Published, now: datetime) -> None:
    text = json.dumps(published, sort_keys=True)
    key = {"queue_id": queue_id, "sha256": hashlib.sha256(text.encode()).hexdigest()}
    seen_at = SeenPublication.objects.filter(**key).values_list("seen_at", flat=True).first()
    if seen_at is None:
        if _is_room_made(queue_id, now):
            row = SeenPublication(**key, published=published, seen_at=now)
            SeenPublication.objects.bulk_create([row], ignore_conflicts=True)
    elif seen_at < now - _NOTED_AGAIN:
        SeenPublication.objects.filter(**key, seen_at__lt=now).update(seen_at=now)


def _is_room_made(queue_id: int, now: datetime) -> bool:
    """Whether one more set is to be kept: the latest are, up to one more than tells anything.

    An older one gives way, so that the queue stays open for as long as there are too many. Where
    all of them are new it stays so anyway, and nothing is written.
    """
    sets = SeenPublication.objects.filter(queue=queue_id).order_by("-seen_at", "-pk")
    oldest = sets.only("pk", "seen_at")[_MOST_SETS : _MOST_SETS + 1].first()
    if oldest is None:
        return True
    if oldest.seen_at >= now - _NOTED_AGAIN:
        return False
    SeenPublication.objects.filter(pk=oldest.pk).delete()
    return True


def forget_seen(check: str) -> None:
    """Forget what pilots published while this check was another one."""
    SeenPublication.objects.filter(published__has_key=check).delete()


def sweep_seen(*, now: datetime) -> int:
    """Remove sets that nobody has published for long; return how many."""
    old = SeenPublication.objects.filter(seen_at__lt=now - SEEN_FOR).order_by("pk")
    rows = list(old.values_list("pk", flat=True)[:_SWEPT_AT_ONCE])
    removed, _ = SeenPublication.objects.filter(pk__in=rows).delete()
    return removed


def published_here(queues: Sequence[Queue], *, now: datetime) -> dict[int, PublishedHere]:
    """Knowledge of what pilots of each queue publish. Two queries."""
    declared = declared_names(queues)
    seen = _seen_of_late(declared, now)
    return {
        pk: PublishedHere(names, seen[pk] if len(seen[pk]) <= _MOST_SETS else ())
        for pk, names in declared.items()
    }


def _seen_of_late(queue_ids: Iterable[int], now: datetime) -> dict[int, tuple[Published, ...]]:
    latest = Window(RowNumber(), partition_by=F("queue_id"), order_by=F("seen_at").desc())
    rows = (
        SeenPublication.objects.filter(queue__in=list(queue_ids), seen_at__gte=now - SEEN_FOR)
        .annotate(place=latest)
        .filter(place__lte=_MOST_SETS + 1)
        .values_list("queue_id", "published")
    )
    seen: dict[int, list[Published]] = defaultdict(list)
    for queue_id, published in rows:
        seen[queue_id].append(published)
    return defaultdict(tuple, {queue_id: tuple(sets) for queue_id, sets in seen.items()})
