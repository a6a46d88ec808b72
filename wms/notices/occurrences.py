"""Occurrences that users may be notified of: events of DAGs, failures, sites and jobs, as texts.

Each has a title, a text, and the users whom it concerns. Also the topics of the inbox they are read
from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import Max

from wms.core.models import InboxEntry
from wms.dags.engine.settling.tolerance import tolerated_count
from wms.dags.lifecycle import GATE_TOPIC
from wms.dags.lifecycle import NOTIFICATION_TOPIC as DAG_TOPIC
from wms.dags.models import Dag, DagEvent
from wms.dags.reading.gate_selectors import asked_by, waits_of
from wms.dags.states import DAG_TERMINAL, DagCause
from wms.failures.lifecycle import FAILING_TOPIC, NEW_TOPIC, REGRESSED_TOPIC
from wms.failures.models import Failure, FailureGroup, FailureGroupEvent
from wms.jobs.directives import Directives
from wms.jobs.lifecycle import OWNER_TOPIC as JOB_TOPIC
from wms.jobs.models import JobEvent
from wms.notices.gate_notices import key_of
from wms.notices.models import Notice, Rule, SubjectKind
from wms.remarks.models import Remark
from wms.remarks.states import ASSIGNED_TOPIC
from wms.remarks.states import SubjectKind as RemarkSubject
from wms.schedules.lifecycle import NEWS_TOPIC as SCHEDULE_TOPIC
from wms.schedules.models import ScheduleRun
from wms.sites.lifecycle import NEWS_TOPIC as SITE_TOPIC
from wms.sites.models import SiteEvent

#: The task that reads all of these inboxes.
READ_TASK = "wms.notices.read"
#: Latest failures of a regressed group whose owners are notified.
_LATEST = 2000
_KIND = Notice.Kind


@dataclass(frozen=True, slots=True)
class Subject:
    """The object of an occurrence."""

    kind: SubjectKind
    id: str

    @property
    def thread(self) -> str:
        """Key that keeps messages about the same object together."""
        return f"{self.kind.value}:{self.id}"


@dataclass(frozen=True, slots=True)
class Audience:
    """Users whom an occurrence concerns: subscribers of the DAG or site, and owners.

    `rule` is the rule of the owners, or of everybody where `owners` is None. Those in `asking` are
    told without a subscription.
    """

    rule: Rule
    owners: frozenset[int] | None = None
    dag_id: int | None = None
    site_id: int | None = None
    #: Name of the user who caused the occurrence and is not notified.
    excluded_user: str = ""
    asking: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An occurrence that users may be notified of; its `key` is the same whenever it is read again.

    With a `count`, a later one of the same key replaces the former instead of adding a notice.
    `common_text` is what people behind walls are told instead of the text.
    """

    kind: Notice.Kind
    subject: Subject
    key: str
    title: str
    text: str
    at: datetime
    audience: Audience
    count: int | None = None
    common_text: str | None = None


def occurrences_of(entries: Iterable[InboxEntry], now: datetime) -> list[Occurrence]:
    """Occurrences of these inbox entries, by topic in the order of its events."""
    by_topic: dict[str, list[InboxEntry]] = defaultdict(list)
    for entry in entries:
        by_topic[entry.topic].append(entry)
    return [
        occurrence
        for topic, read in _READERS.items()
        if topic in by_topic
        for occurrence in read(by_topic[topic], now)
    ]


@dataclass(frozen=True, slots=True)
class _DagTexts:
    kind: Notice.Kind
    rule: Rule
    words: str


_DAG_TEXTS: Mapping[str, _DagTexts] = {
    "complete": _DagTexts(_KIND.COMPLETED, Rule.MY_ENDED, "is completed"),
    "remove": _DagTexts(_KIND.REMOVED, Rule.MY_ENDED, "was removed"),
    "fail": _DagTexts(_KIND.FAILED, Rule.MY_FAILED, "has failed"),
    "hold": _DagTexts(_KIND.HELD, Rule.MY_HELD, "is held"),
    "halt": _DagTexts(_KIND.HALTED, Rule.MY_HELD, "is halted"),
}


def _read_dags(entries: Collection[InboxEntry], now: datetime) -> list[Occurrence]:
    events = DagEvent.objects.filter(
        pk__in=[entry.subject_id for entry in entries], event__in=list(_DAG_TEXTS)
    )
    return [_of_dag_event(event) for event in events.select_related("dag").order_by("pk")]


def _of_dag_event(event: DagEvent) -> Occurrence:
    dag, news = event.dag, _DAG_TEXTS[event.event]
    by = "" if ":" in event.actor else f", by {event.actor}"
    words = f"{news.words}, and nodes failed" if event.cause == DagCause.TOLERATED else news.words
    return Occurrence(
        kind=news.kind,
        subject=Subject(SubjectKind.DAG, str(dag.pk)),
        key=f"dag-event:{event.pk}",
        title=f"{_name(dag)} {words}{by}",
        text=event.reason or _progress(dag),
        at=event.created_at,
        audience=_of_owner(dag, news.rule, excluded_user=event.actor),
    )


def _read_failing(entries: Collection[InboxEntry], now: datetime) -> list[Occurrence]:
    """DAGs that have failed nodes and go on; DAGs that have ended are left to their end.

    Failures that a DAG tolerates are no news.
    """
    dags = Dag.objects.filter(pk__in={entry.subject_id for entry in entries}, failed_count__gt=0)
    failing = dags.exclude(state__in=DAG_TERMINAL).order_by("pk")
    going_on = [dag for dag in failing if dag.failed_count > tolerated_count(dag)]
    reopened = dict(
        DagEvent.objects.filter(dag__in=going_on, event="reopen")
        .values_list("dag_id")
        .annotate(Max("pk"))
        .order_by()
    )
    return [
        Occurrence(
            kind=_KIND.FAILING,
            subject=Subject(SubjectKind.DAG, str(dag.pk)),
            # Once in a run of it: after it was reopened it may be failing again.
            key=f"dag-failing:{dag.pk}:{reopened.get(dag.pk, 0)}",
            title=f"{_name(dag)} is failing",
            text=_progress(dag),
            at=now,
            audience=_of_owner(dag, Rule.MY_FAILED),
            count=dag.failed_count,
        )
        for dag in going_on
    ]


def _read_gates(entries: Collection[InboxEntry], now: datetime) -> list[Occurrence]:
    """Gates that wait: news for those who may open them, whether they have subscribed or not."""
    events = waits_of((entry.key, entry.subject_id or 0) for entry in entries)
    return [
        Occurrence(
            kind=_KIND.WAITING,
            subject=Subject(SubjectKind.DAG, str(event.dag_id)),
            key=key_of(event.pk),
            title=f"{_name(event.dag)} waits at gate {event.node.name}"[:200],
            text=event.reason,
            at=event.created_at,
            audience=replace(
                _of_owner(event.dag, Rule.MY_HELD), asking=asked_by(event.node, event.dag.owner_id)
            ),
        )
        for event in events
    ]


def _name(dag: Dag) -> str:
    return f"DAG {dag.pk} ({dag.name[:80]})"


def _progress(dag: Dag) -> str:
    counts = [f"{dag.done_count} of {dag.node_count} nodes are done"]
    if dag.failed_count:
        counts.append(f"{dag.failed_count} failed")
    return ", ".join(counts)


def _of_owner(dag: Dag, rule: Rule, *, excluded_user: str = "") -> Audience:
    """Audience of a DAG: subscribers, and the owner unless it runs inside of another DAG."""
    owners = frozenset() if dag.parent_node_id else frozenset({dag.owner_id})
    return Audience(rule=rule, owners=owners, dag_id=dag.pk, excluded_user=excluded_user)


def _read_new_groups(entries: Collection[InboxEntry], now: datetime) -> list[Occurrence]:
    return _of_groups(
        {entry.subject_id or 0: f"failure-group:{entry.subject_id}:new" for entry in entries},
        _KIND.NEW_CAUSE,
        "A new cause of failures",
    )


def _read_regressed(entries: Collection[InboxEntry], now: datetime) -> list[Occurrence]:
    events = FailureGroupEvent.objects.filter(pk__in=[entry.subject_id for entry in entries])
    keys = {event.group_id: f"failure-group-event:{event.pk}" for event in events}
    return _of_groups(keys, _KIND.REGRESSED, "A cause of failures is back")


def _of_groups(keys: Mapping[int, str], kind: Notice.Kind, words: str) -> list[Occurrence]:
    groups = FailureGroup.objects.filter(pk__in=list(keys)).order_by("pk")
    return [
        Occurrence(
            kind=kind,
            subject=Subject(SubjectKind.FAILURES, str(group.pk)),
            key=keys[group.pk],
            title=f"{words}: {' '.join(group.text.split())}"[:200],
            text=group.sample[:1000],
            common_text=group.text[:1000],
            at=group.last_seen,
            audience=Audience(rule=Rule.MY_FAILURES, owners=_owners_in(group)),
        )
        for group in groups
    ]


def _owners_in(group: FailureGroup) -> frozenset[int]:
    """Owners of the latest failures in this group."""
    latest = Failure.objects.filter(group=group).order_by("-pk").values("owner_id")[:_LATEST]
    return frozenset(row["owner_id"] for row in latest if row["owner_id"] is not None)


_SITE_NEWS: Mapping[str, tuple[Notice.Kind, str]] = {
    "ban": (_KIND.BANNED, "is banned"),
    "drain": (_KIND.DRAINING, "is draining"),
    "unban": (_KIND.OPENED, "is open again"),
    "commission": (_KIND.OPENED, "is open"),
    "suspect": (_KIND.SUSPECTED, "has a worker node that fails jobs"),
    "clear": (_KIND.CLEARED, "has a worker node that is suspected no longer"),
}


def _read_sites(entries: Collection[InboxEntry], now: datetime) -> list[Occurrence]:
    events = SiteEvent.objects.filter(
        pk__in=[entry.subject_id for entry in entries], event__in=list(_SITE_NEWS)
    )
    return [
        Occurrence(
            kind=_SITE_NEWS[event.event][0],
            subject=Subject(SubjectKind.SITE, event.site.name),
            key=f"site-event:{event.pk}",
            title=f"Site {event.site.name} {_SITE_NEWS[event.event][1]}{_by(event)}"[:200],
            text=event.reason,
            at=event.created_at,
            audience=Audience(rule=Rule.SITE, site_id=event.site_id, excluded_user=event.actor),
        )
        for event in events.select_related("site").order_by("pk")
    ]


def _by(event: SiteEvent) -> str:
    """Name of the person who acted; empty for the system."""
    return "" if ":" in event.actor else f", by {event.actor}"


_JOB_NEWS: Mapping[str, tuple[Notice.Kind, str]] = {
    "complete": (_KIND.COMPLETED, "is done"),
    "fail": (_KIND.FAILED, "has failed"),
    "hold": (_KIND.HELD, "is held"),
}


def _read_jobs(entries: Collection[InboxEntry], now: datetime) -> list[Occurrence]:
    """Events of jobs whose descriptions say that the owner hears of them."""
    events = JobEvent.objects.filter(
        pk__in=[entry.subject_id for entry in entries], event__in=list(_JOB_NEWS)
    )
    found = []
    for event in events.select_related("job__description").order_by("pk"):
        job, (kind, words) = event.job, _JOB_NEWS[event.event]
        wanted = {"always", "complete" if kind != _KIND.HELD else "error"}
        wanted |= {"error"} if kind == _KIND.FAILED else set()
        if Directives.of(job.directives).notification not in wanted:
            continue
        asking = frozenset({job.owner_id})
        audience = Audience(rule=Rule.MY_ENDED, owners=frozenset(), asking=asking)
        found.append(
            Occurrence(
                kind=kind,
                subject=Subject(SubjectKind.JOB, str(job.pk)),
                key=f"job-event:{event.pk}",
                title=f"Job {job.pk} ({job.name[:80]}) {words}",
                text=event.reason,
                at=event.created_at,
                audience=audience,
            )
        )
    return found


def _read_schedules(entries: Collection[InboxEntry], now: datetime) -> list[Occurrence]:
    """Times at which a schedule did not submit: news for its owner, who has asked for the DAG."""
    runs = ScheduleRun.objects.filter(pk__in=[entry.subject_id for entry in entries])
    return [
        Occurrence(
            kind=_KIND.NOT_SUBMITTED,
            subject=Subject(SubjectKind.SCHEDULE, str(run.schedule_id)),
            key=f"schedule-run:{run.pk}",
            title=f"Schedule {run.schedule.name} did not submit its DAG of "
            f"{run.planned_at:%Y-%m-%d %H:%M} UTC",
            text=run.reason,
            at=run.created_at,
            audience=Audience(
                rule=Rule.MY_FAILED,
                owners=frozenset(),
                asking=frozenset({run.schedule.owner_id}),
            ),
        )
        for run in runs.select_related("schedule").order_by("pk")
    ]


_ASSIGNED: Mapping[str, SubjectKind] = {
    RemarkSubject.DAG: SubjectKind.DAG,
    RemarkSubject.SITE: SubjectKind.SITE,
    RemarkSubject.FAILURE: SubjectKind.FAILURES,
}


def _read_assigned(entries: Collection[InboxEntry], now: datetime) -> list[Occurrence]:
    """Assignments: news for the person, who need not have subscribed."""
    remarks = Remark.objects.filter(pk__in=[entry.subject_id for entry in entries])
    return [_of_assignment(remark) for remark in remarks.select_related("author").order_by("pk")]


def _of_assignment(remark: Remark) -> Occurrence:
    kind = _ASSIGNED[remark.subject_kind]
    named = remark.subject_name if kind == SubjectKind.SITE else str(remark.subject_id)
    words = f"{remark.get_subject_kind_display()} {named}"
    if kind != SubjectKind.SITE:
        words += f" ({' '.join(remark.subject_name.split())[:80]})"
    asking = frozenset() if remark.person_id is None else frozenset({remark.person_id})
    return Occurrence(
        kind=_KIND.ASSIGNED,
        subject=Subject(kind, named),
        key=f"remark:{remark.pk}",
        title=f"{words} is assigned to you, by {remark.author.get_username()}"[:200],
        text=" ".join(filter(None, (remark.text, remark.ticket))),
        at=remark.created_at,
        audience=Audience(rule=Rule.MY_HELD, owners=frozenset(), asking=asking),
    )


_READERS: Mapping[str, Callable[[Collection[InboxEntry], datetime], list[Occurrence]]] = {
    FAILING_TOPIC: _read_failing,
    DAG_TOPIC: _read_dags,
    GATE_TOPIC: _read_gates,
    NEW_TOPIC: _read_new_groups,
    REGRESSED_TOPIC: _read_regressed,
    SITE_TOPIC: _read_sites,
    JOB_TOPIC: _read_jobs,
    SCHEDULE_TOPIC: _read_schedules,
    ASSIGNED_TOPIC: _read_assigned,
}
TOPICS = tuple(_READERS)
