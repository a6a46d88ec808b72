"""State machines for people: what each state and event means, with causes and transitions.

For the reference, the pages and their badges.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from django.db.models import TextChoices

from wms.bulk import states as bulk
from wms.core.transitions import TransitionTable
from wms.dags import states as dags
from wms.dags.trials import states as trials
from wms.failures import states as failures
from wms.jobs import states as jobs
from wms.jobs.clusters import states as clusters
from wms.pilots import states as pilots
from wms.placement import states as placement
from wms.schedules import states as schedules
from wms.sites import states as sites


@dataclass(frozen=True, slots=True)
class Entity:
    """State machine with the meanings of its states and events.

    `kind` is the name by which pages know it.
    """

    kind: str
    title: str
    states: type[TextChoices]
    first: str
    terminal: Collection[str]
    transitions: TransitionTable
    state_meanings: Mapping[str, str]
    event_meanings: Mapping[str, str]
    notes: Mapping[str, Collection[str]] = field(default_factory=dict)
    causes: type[TextChoices] | None = None


_DAG = Entity(
    kind="dag",
    title="DAG",
    states=dags.DagState,
    first=dags.DagState.IDLE,
    terminal=dags.DAG_TERMINAL,
    transitions=dags.DAG_TRANSITIONS,
    causes=dags.DagCause,
    state_meanings={
        "idle": "stored, and bound to no site",
        "running": "bound to a site; its nodes become jobs",
        "held": "what runs is finished, nothing new starts",
        "halted": "what runs is finished, nothing new starts; then it ends with a rescue",
        "completed": "it ended well: every node is done, or its FINAL node was, whatever had "
        "failed, or ABORT-DAG-ON ended it with 0, or SUCCESS WHEN or TOLERANCE allow what failed",
        "failed": "it ended badly: nodes or its FINAL node failed, or it was aborted or halted; "
        "nodes that it did not come to are left as they were",
        "removed": "ended by a person; its jobs are killed",
    },
    event_meanings={
        "match": "the negotiator binds the DAG to a site",
        "hold": "a person holds it, or a description cannot be filled in at its site",
        "halt": "a person lets it run dry",
        "resume": "released; it has a site and goes on there",
        "release": "released; it has no site and is negotiated",
        "rematch": "its match is taken back, by a person or by policy; it is negotiated anew",
        "complete": "the engine saw its last node or its FINAL node done, it was aborted with 0, "
        "or what failed is allowed",
        "fail": "the engine saw that nothing can go on, or it was aborted or halted, and no "
        "FINAL node was done after that",
        "remove": "a person ends it for good",
        "reopen": "a person lets nodes of it run again",
        "begin": "an inner DAG begins at the site of the DAG around it",
    },
)

_NODE = Entity(
    kind="node",
    title="Node",
    states=dags.NodeState,
    first=dags.NodeState.WAITING,
    terminal=dags.NODE_TERMINAL,
    transitions=dags.NODE_TRANSITIONS,
    causes=dags.NodeCause,
    state_meanings={
        "waiting": "a parent is not done, or the DAG has no site",
        "ready": "may be submitted, in the order of the ready queue; a gate waits to be opened",
        "pre_running": "its PRE script runs, or waits for its turn",
        "submitted": "has jobs, an inner DAG or a placement that have not ended",
        "post_running": "its POST script runs, or waits for its turn",
        "done": "all that it had to run ended well",
        "failed": "something of it ended otherwise, and no retry is left; or the DAG ended while "
        "it was under way, its jobs started or not",
        "futile": "cannot run any more: an ancestor failed",
        "skipped": "does not run: conditions left too few of its arcs that hold. A good end",
    },
    event_meanings={
        "make ready": "its last parent is done, or it has none and the DAG got a site",
        "wait": "a gate begins to wait for a person, or for its time",
        "start pre": "its PRE script is asked for",
        "pass pre": "its PRE script ended well",
        "put off": "the DAG ends before its PRE script had its turn",
        "skip": "its PRE script ended with the code of PRE_SKIP",
        "submit": "the engine made its jobs, began its inner DAG, or placed its request",
        "start post": "its POST script is asked for",
        "succeed": "what decides about it ended well",
        "retry": "it failed, and a retry is left",
        "recall": "its jobs were killed because the DAG leaves the site; no retry is counted",
        "fail": "it failed, and no retry is left, or the DAG ends while it is under way",
        "give up": "an ancestor failed",
        "rule out": "a condition after a parent does not hold, or a parent was skipped",
        "mark done": "a person, a rescue file or the DAG file says that it is done",
        "mark failed": "a person gives it up",
        "rerun": "a person, or a node before it that runs again, has it run again",
    },
)

_JOB = Entity(
    kind="job",
    title="Job",
    states=jobs.JobState,
    first=jobs.JobState.RECEIVED,
    terminal=jobs.TERMINAL,
    transitions=jobs.TRANSITIONS,
    causes=jobs.JobCause,
    state_meanings={
        "received": "in no TaskQueue yet: just stored, or it pauses after a place has failed it",
        "waiting": "in the TaskQueue with its needs, for any pilot that fits",
        "matched": "bound to a pilot, which has not started the payload",
        "running": "its payload runs in a pilot",
        "stalled": "its pilot has not been heard of for a while",
        "held": "in no TaskQueue and with no pilot until it is released",
        "done": "an attempt ended well and all its outputs are here",
        "failed": "an attempt ended badly, or all attempts are used up",
        "killed": "ended on request",
    },
    notes=jobs.NOTES,
    event_meanings={
        "enqueue": "it joins the TaskQueue whose needs equal its own",
        "match": "a pilot claimed it: a new attempt begins",
        "start": "the pilot started the payload",
        "complete": "the pilot reported the end: exit code 0, every output received",
        "fail": "the payload failed, an input is missing, or all attempts are used up",
        "stall": "its pilot is silent for too long",
        "recover": "its silent pilot reported again",
        "reschedule": "its pilot is gone or gave it back, or its payload is run again",
        "requeue": "its pause is over, or it has none: it waits in its TaskQueue again",
        "hold": "a person, its DAG or its own expression holds it; a running payload is stopped",
        "release": "a person or its own expression lets it go on, or its DAG goes on",
        "kill": "a person or its own expression ends it, or its DAG is removed or leaves the site",
        "update": "its payload told attributes of the job",
        "checkpoint": "its payload left files to go on from, and was started again",
        "change": "what it needs was changed with its cluster",
        "prioritise": "a person gave it another priority in its TaskQueue",
        "late": "a message of an attempt that is over came, and was not applied",
        "restored": "the database went back to an earlier state: the job may have been done since",
    },
)

_CLUSTER = Entity(
    kind="cluster",
    title="Cluster",
    states=clusters.ClusterState,
    first=clusters.ClusterState.ACTIVE,
    terminal=clusters.CLUSTER_TERMINAL,
    transitions=clusters.CLUSTER_TRANSITIONS,
    notes=clusters.CLUSTER_NOTES,
    causes=clusters.ClusterCause,
    state_meanings={
        "active": "its rows become jobs, as many as its limits let wait",
        "held": "what runs is finished, waiting jobs are held with it, and none are made",
        "completed": "all its rows were made, and all jobs have ended, well or not",
        "removed": "ended by a person or its deadline; its jobs are killed, and the rows that "
        "were left are never made",
    },
    event_meanings={
        "hold": "a person holds it, or the materialiser could not go on with it",
        "release": "released; the jobs that were held with it wait again",
        "complete": "the materialiser counted the end of its last job",
        "remove": "a person ends it for good, or its deadline has passed",
        "change": "priority, sites, memory or limits of it were changed",
        "prolong": "a person keeps the outputs of its jobs longer",
        "remove_outputs": "the time of its outputs was over, and they have been removed",
    },
)

_PILOT = Entity(
    kind="pilot",
    title="Pilot",
    states=pilots.PilotState,
    first=pilots.PilotState.SUBMITTED,
    terminal=pilots.TERMINAL,
    transitions=pilots.TRANSITIONS,
    state_meanings={
        "submitted": "its row is written; the batch system has not answered yet",
        "queued": "the batch system has it",
        "running": "it has registered and sends heartbeats",
        "stalled": "no heartbeat for a while",
        "done": "it said good-bye",
        "failed": "it ended with an error, without a word, or stayed silent",
        "aborted": "it ended, or never started, before it registered",
        "removed": "taken out of its batch system on request",
    },
    notes=pilots.NOTES,
    event_meanings={
        "queue": "the batch system gave it an id",
        "register": "it called in with its one-time secret",
        "start": "it calls in at another installation, and its batch system says that it runs",
        "stall": "no heartbeat for too long",
        "recover": "a heartbeat came after all",
        "end": "it said good-bye: idle, drained, lifetime over or terminated",
        "fail": "good-bye with an error, ended without a word, or silent for too long",
        "abort": "the batch system does not have it, or ended it before it called in",
        "remove": "a person takes it out of the batch system, with the jobs it has",
        "drain": "a person lets it take no more jobs; it ends after those at hand",
        "test": "a person asks for it as a test of its queue",
    },
)

_SITE = Entity(
    kind="site",
    title="Site",
    states=sites.SiteState,
    first=sites.SiteState.COMMISSIONING,
    terminal=frozenset(),
    transitions=sites.TRANSITIONS,
    state_meanings={
        "commissioning": "takes no DAG until a pilot has called in from it or somebody opens it",
        "open": "takes DAGs and pilots, unless something else speaks against it",
        "draining": "takes no new DAG; those bound to it go on and get pilots",
        "banned": "takes no new DAG and no pilot; what runs there goes on",
    },
    event_meanings={
        "commission": "a pilot has called in from it, or a person opens it before",
        "ban": "a person gives it nothing new",
        "drain": "a person gives it no new DAG",
        "unban": "a person opens it again",
    },
)

_PLACEMENT = Entity(
    kind="placement",
    title="Placement request",
    states=placement.RequestState,
    first=placement.RequestState.RECEIVED,
    terminal=placement.TERMINAL,
    transitions=placement.TRANSITIONS,
    state_meanings={
        "received": "stored, and not tried yet",
        "processing": "an attempt is under way",
        "rescheduled": "an attempt failed, or there was no room; the next one is due after a pause",
        "completed": "the file is where it should be",
        "failed": "all its attempts failed",
        "removed": "ended on request",
    },
    event_meanings={
        "start": "the service begins the next attempt",
        "complete": "an attempt succeeded",
        "reschedule": "an attempt failed, and there is another",
        "give_back": "an attempt granted with others had not begun when one of them took long",
        "put_off": "there is no room for an allocation yet, or DAGs would need it to end",
        "fail": "the last attempt failed",
        "retry": "a person has it tried again, if it is not of a DAG",
        "remove": "a person ends it, or its DAG was removed",
    },
)

_FAILURE_GROUP = Entity(
    kind="failure",
    title="Failure group",
    states=failures.GroupState,
    first=failures.GroupState.ACTIVE,
    terminal=frozenset(),
    transitions=failures.TRANSITIONS,
    state_meanings={
        "active": "it wants to be looked at",
        "muted": "it is known: it goes on counting, and is not brought up",
        "resolved": "its cause is removed",
        "regressed": "it happened again after it was resolved",
    },
    notes=failures.NOTES,
    event_meanings={
        "mute": "a person takes it out of sight",
        "resolve": "a person says that the cause is removed",
        "reopen": "a person lets it be looked at again",
        "regress": "a failure came that is later than the resolution",
        "categorise": "a person says where the cause lies",
    },
)

_BULK_OPERATION = Entity(
    kind="bulk",
    title="Bulk operation",
    states=bulk.BulkState,
    first=bulk.BulkState.PREVIEW,
    terminal=bulk.TERMINAL,
    transitions=bulk.TRANSITIONS,
    state_meanings={
        "preview": "its objects are frozen; nothing is done to them",
        "confirmed": "a person confirmed it; it waits for its turn",
        "running": "some of its objects have been dealt with",
        "stopped": "a person ended it; the objects that are pending are left as they are",
        "done": "all its objects have been dealt with",
    },
    event_meanings={
        "confirm": "who made it has seen what it does, and says that it shall be done",
        "begin": "its first batch",
        "end": "no object is pending",
        "stop": "its owner, or a shifter, ends it",
    },
)

_TRIAL = Entity(
    kind="trial",
    title="Trial of a DAG",
    states=trials.TrialState,
    first=trials.TrialState.WAITING,
    terminal=trials.TERMINAL,
    transitions=trials.TRANSITIONS,
    state_meanings={
        "waiting": "its files are kept until a worker has a place for it",
        "running": "a worker checks or tries its files",
        "done": "it has its report, whether that is good or bad",
        "failed": "it could not be made; the reason says why",
        "stopped": "a person ended it",
    },
    event_meanings={
        "start": "a worker takes it",
        "lose": "its worker was not heard of; another one begins it anew",
        "finish": "the tool has made its report",
        "fail": "the tool failed or took too long, or its workers were lost too often",
        "stop": "its owner, or a shifter, ends it",
    },
)

_SCHEDULE = Entity(
    kind="schedule",
    title="Schedule",
    states=schedules.ScheduleState,
    first=schedules.ScheduleState.ACTIVE,
    terminal=schedules.TERMINAL,
    transitions=schedules.TRANSITIONS,
    notes=schedules.NOTES,
    state_meanings={
        "active": "its DAG is submitted at each of its times",
        "paused": "nothing is submitted until it is resumed",
        "removed": "nothing is submitted any more",
    },
    event_meanings={
        "pause": "a person lets nothing be submitted for now",
        "resume": "a person lets it go on with its next time",
        "remove": "a person ends it for good",
        "change": "times, overlap, labels or priority of it were changed",
        "run": "a person let its DAG be submitted at once, beside its times",
    },
)

ENTITIES = (
    _DAG, _NODE, _CLUSTER, _JOB, _PILOT, _SITE, _PLACEMENT, _FAILURE_GROUP, _BULK_OPERATION, _TRIAL,
    _SCHEDULE,
)  # fmt: skip
