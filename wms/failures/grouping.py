"""Control loop that groups failures by cause: new ones as announced, all when the rules changed.

Also marks resolved groups that happened again as regressed, announces new groups and DAGs that
fail, and removes old counts. Announced events are deleted in the transaction that counts them: a
cycle that is killed, skipped or run twice at once loses nothing and counts nothing twice.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F, Max, Min

from wms.core.actors import Actor
from wms.core.inbox import announce
from wms.core.models import InboxEntry
from wms.failures.counting import CountedFailure, add_counts, remove_old_bins
from wms.failures.failure_reports import KINDS, FailureReport, read_events
from wms.failures.lifecycle import FAILING_TOPIC, MACHINE, NEW_TOPIC
from wms.failures.models import Failure, FailureGroup, RuleBook
from wms.failures.normalising import Rule, fingerprint
from wms.failures.rules import as_rules, locked_rule_book, stored_rules, text_of
from wms.failures.states import GroupState

#: Failures grouped in one transaction.
BATCH = 1000
#: A cycle that takes longer leaves the rest for the next.
_CYCLE_S = 15.0
_SAMPLE = 2000
_ACTOR = Actor.system("failures")
_COPIED = ("category", "state", "state_since", "state_reason")


def run_cycle(now: datetime) -> dict[str, Any]:
    """Group what was announced since, go on with regrouping, and forget old counts."""
    until = time.monotonic() + _CYCLE_S
    grouped = _repeat_until(lambda: group_announced(now), until)
    regrouped = _repeat_until(lambda: regroup_some(now), until)
    return {"grouped": grouped, "regrouped": regrouped, "forgotten": remove_old_bins(now=now)}


def _repeat_until(step: Callable[[], int], until: float) -> int:
    """Repeat a step until it does nothing or the time is over; the sum of its results."""
    done = 0
    while (count := step()) > 0:
        done += count
        if time.monotonic() >= until:
            break
    return done


@transaction.atomic
def group_announced(now: datetime) -> int:
    """Group a batch of announced failures; the number of announcements."""
    # Rules do not change while failures are grouped by them.
    book = locked_rule_book()
    waiting = InboxEntry.objects.filter(topic__in=list(KINDS)).order_by("pk")
    entries = list(waiting.select_for_update(skip_locked=True)[:BATCH])
    if not entries:
        return 0
    by_topic: dict[str, set[int]] = defaultdict(set)
    for entry in entries:
        by_topic[entry.topic].add(entry.subject_id or 0)
    reports = [
        report
        for topic, ids in sorted(by_topic.items())
        for report in read_events(KINDS[topic], ids - _grouped_before(topic, ids))
    ]
    if reports:
        _store(reports, book, now)
    InboxEntry.objects.filter(pk__in=[entry.pk for entry in entries]).delete()
    return len(entries)


def _grouped_before(topic: str, event_ids: set[int]) -> set[int]:
    """Events that were grouped before: a failure may be announced more than once."""
    known = Failure.objects.filter(kind=KINDS[topic], event_id__in=event_ids)
    return set(known.values_list("event_id", flat=True))


def _store(reports: Sequence[FailureReport], book: RuleBook, now: datetime) -> None:
    groups = _groups_of(reports, as_rules(stored_rules()))
    # Before they are counted, those that were made just now have no failures.
    _announce({group.pk for group in groups.values() if group.total == 0}, reports)
    Failure.objects.bulk_create(
        [
            Failure(
                group=groups[report.event_id, report.kind],
                kind=report.kind,
                event_id=report.event_id,
                subject_id=report.subject_id,
                dag_id=report.dag_id,
                owner_id=report.owner_id,
                site_name=report.site,
                at=report.at,
                rules_version=book.version,
            )
            for report in reports
        ]
    )
    counted = [
        CountedFailure(groups[each.event_id, each.kind].pk, each.site, each.at) for each in reports
    ]
    add_counts(counted, now=now)
    _regress(counted, groups.values())


def _announce(new_groups: Collection[int], reports: Iterable[FailureReport]) -> None:
    """Announce new groups, and DAGs with failures once in a batch."""
    dags = {each.dag_id for each in reports if each.dag_id is not None}
    subjects_by_topic = (
        (NEW_TOPIC, InboxEntry.Kind.GROUP, new_groups),
        (FAILING_TOPIC, InboxEntry.Kind.DAG, dags),
    )
    announce(
        InboxEntry(topic=topic, key=pk, kind=kind, subject_id=pk)
        for topic, kind, subjects in subjects_by_topic
        for pk in sorted(subjects)
    )


def _groups_of(
    reports: Sequence[FailureReport],
    rules: Sequence[Rule],
    origins: dict[tuple[int, str], FailureGroup] | None = None,
) -> dict[tuple[int, str], FailureGroup]:
    """The group of each failure, made if missing and locked, by the event's id and the kind.

    One that is made takes over what people decided about the group that its failures come from.
    """
    made: dict[str, FailureGroup] = {}
    fingerprints: dict[tuple[int, str], str] = {}
    for report in reports:
        text = text_of(report, rules)
        mark = fingerprints[report.event_id, report.kind] = fingerprint(report.kind, text)
        if mark not in made:
            made[mark] = FailureGroup(
                fingerprint=mark,
                kind=report.kind,
                text=text,
                sample=report.message[:_SAMPLE],
                category=report.likely_category,
                first_seen=report.at,
                last_seen=report.at,
            )
            _take_over(made[mark], (origins or {}).get((report.event_id, report.kind)))
    FailureGroup.objects.bulk_create(
        sorted(made.values(), key=lambda group: group.fingerprint), ignore_conflicts=True
    )
    stored = FailureGroup.objects.filter(fingerprint__in=list(made)).order_by("pk")
    found = {group.fingerprint: group for group in stored.select_for_update()}
    return {key: found[mark] for key, mark in fingerprints.items()}


def _take_over(group: FailureGroup, origin: FailureGroup | None) -> None:
    if origin is not None:
        for name in _COPIED:
            setattr(group, name, getattr(origin, name))


def _regress(counted: Iterable[CountedFailure], groups: Iterable[FailureGroup]) -> None:
    """Mark resolved groups that happened again as regressed."""
    resolved = {group.pk: group for group in groups if group.state == GroupState.RESOLVED}
    again = {
        each.group_id
        for each in counted
        if each.group_id in resolved and each.at > resolved[each.group_id].state_since
    }
    if again:
        MACHINE.apply("regress", again, actor=_ACTOR, reason="it happened again")


@transaction.atomic
def regroup_some(now: datetime) -> int:
    """Regroup a batch of failures that were grouped by older rules; their number."""
    book = locked_rule_book()
    if book.finished_at is not None:
        return 0
    old = Failure.objects.filter(rules_version__lt=book.version).select_related("group")
    failures = list(old.order_by("rules_version", "pk").select_for_update(of=("self",))[:BATCH])
    _regroup(failures, book, now)
    RuleBook.objects.filter(pk=book.pk).update(
        regrouped=F("regrouped") + len(failures),
        finished_at=None if len(failures) == BATCH else now,
    )
    return len(failures)


def _regroup(failures: Sequence[Failure], book: RuleBook, now: datetime) -> None:
    reports = _reports_of(failures)
    origins = {(failure.event_id, failure.kind): failure.group for failure in failures}
    groups = _groups_of(reports, as_rules(stored_rules()), origins)
    counted: list[CountedFailure] = []
    left: set[int] = set()
    for failure in failures:
        # An event that is not there any more keeps its failure where it is.
        group = groups.get((failure.event_id, failure.kind), failure.group)
        if group.pk != failure.group_id:
            counted += [
                CountedFailure(failure.group_id, failure.site_name, failure.at, -1),
                CountedFailure(group.pk, failure.site_name, failure.at),
            ]
            left.add(failure.group_id)
        failure.group, failure.rules_version = group, book.version
    Failure.objects.bulk_update(failures, ["group", "rules_version"], batch_size=BATCH)
    if counted:
        add_counts(counted, now=now)
        _remove_empty_groups(left)


def _reports_of(failures: Sequence[Failure]) -> list[FailureReport]:
    by_kind: dict[str, list[int]] = defaultdict(list)
    for failure in failures:
        by_kind[failure.kind].append(failure.event_id)
    return [
        report
        for kind in KINDS.values()
        if kind in by_kind
        for report in read_events(kind, by_kind[kind])
    ]


def _remove_empty_groups(group_ids: set[int]) -> None:
    """Remove empty groups; compute anew when the others were first and last seen."""
    FailureGroup.objects.filter(pk__in=group_ids, total__lte=0).delete()
    seen = Failure.objects.filter(group__in=group_ids).order_by().values_list("group_id")
    groups = FailureGroup.objects.in_bulk(group_ids)
    for group_id, first, last in seen.annotate(Min("at"), Max("at")):
        groups[group_id].first_seen, groups[group_id].last_seen = first, last
    FailureGroup.objects.bulk_update(groups.values(), ["first_seen", "last_seen"], batch_size=BATCH)
