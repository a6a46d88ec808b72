"""States of DAGs and their nodes, transitions between them, and causes of states.

Also what is bound to a site (DAG or job), how a DAG ends, kinds of nodes and which of them count
for its outcome, kinds of scripts, states of script runs, and DAGMan's status codes.
"""

from __future__ import annotations

from django.db import models

from wms.core.transitions import Transition, TransitionTable


class DagState(models.TextChoices):
    """State of a DAG."""

    IDLE = "idle", "idle"
    RUNNING = "running", "running"
    HELD = "held", "held"
    HALTED = "halted", "halted"
    COMPLETED = "completed", "completed"
    FAILED = "failed", "failed"
    REMOVED = "removed", "removed"


class Binding(models.TextChoices):
    """What is bound to a site: the DAG before its nodes are submitted, or each job at its claim."""

    SITE = "site", "the DAG, by the negotiation"
    JOB = "job", "each job, by the claim of a pilot"


class DagCause(models.TextChoices):
    """Cause of a DAG's state, on which code decides; the reason is for people."""

    PERSON = "person", "somebody wanted it"
    OUTER_DAG = "outer_dag", "it was done to the DAG around it"
    ENGINE = "engine", "the engine cannot go on with it"
    AD = "ad", "its ad or environment cannot be made"
    SUBMISSION = "submission", "a node of it cannot be submitted"
    POLICY = "policy", "the policy for rematches"
    LOG = "log", "the log that it follows makes no sense"
    NODE_FAILED = "node_failed", "nodes failed"
    TOLERATED = "tolerated", "nodes failed, which it tolerates"
    ABORTED = "aborted", "ABORT-DAG-ON"
    REMOVED = "removed", "it was removed"
    HALTED = "halted", "it was halted and is drained"


class EndingEvent(models.TextChoices):
    """Event by which an ending DAG will end."""

    COMPLETE = "complete", "complete"
    FAIL = "fail", "fail"
    REMOVE = "remove", "remove"


class DagStatus(models.IntegerChoices):
    """Status of a DAG in DAGMan's codes (`$DAG_STATUS`)."""

    OK = 0, "OK"
    ERROR = 1, "engine error"
    NODE_FAILED = 2, "node failed"
    ABORTED = 3, "aborted"
    REMOVED = 4, "removed"
    CYCLE = 5, "cycle"
    HALTED = 6, "halted"


class NodeKind(models.TextChoices):
    """Kind of a node."""

    JOB = "job", "job"
    SUBDAG = "subdag", "sub-DAG"
    DATA = "data", "data placement"
    GATE = "gate", "gate"
    FINAL = "final", "final node"
    SERVICE = "service", "service"
    PROVISIONER = "provisioner", "provisioner"


#: Kinds of nodes whose ends decide the end of the DAG; the others are outside of the graph.
COUNTED_KINDS = frozenset(
    {NodeKind.JOB.value, NodeKind.SUBDAG.value, NodeKind.DATA.value, NodeKind.GATE.value}
)
#: Kinds of those that run something; only people and times decide about the others.
WITH_WORK = COUNTED_KINDS - {NodeKind.GATE.value}
#: The other kinds, which stand beside the graph.
AUXILIARY_KINDS = frozenset(
    {NodeKind.FINAL.value, NodeKind.SERVICE.value, NodeKind.PROVISIONER.value}
)


class GrowthKind(models.TextChoices):
    """Kind of an insertion of nodes into a DAG that runs."""

    PASS = "pass", "a further pass of a node"
    FRAGMENT = "fragment", "a fragment that a node returned"
    HAND = "hand", "a fragment that somebody added"


class ScriptKind(models.TextChoices):
    """Kind of a node's script: before its jobs, after them, or when one is held."""

    PRE = "pre", "PRE"
    POST = "post", "POST"
    HOLD = "hold", "HOLD"


class ScriptState(models.TextChoices):
    """State of one run of a script."""

    WAITING = "waiting", "waiting for its turn"
    GRANTED = "granted", "granted"
    RUNNING = "running", "running"
    ENDED = "ended", "ended"


class NodeState(models.TextChoices):
    """State of a node."""

    WAITING = "waiting", "waiting"
    READY = "ready", "ready"
    PRE_RUNNING = "pre_running", "PRE script"
    SUBMITTED = "submitted", "submitted"
    POST_RUNNING = "post_running", "POST script"
    DONE = "done", "done"
    FAILED = "failed", "failed"
    FUTILE = "futile", "futile"
    SKIPPED = "skipped", "skipped"


class NodeCause(models.TextChoices):
    """Cause of a node's state, on which code decides; the reason is for people."""

    PERSON = "person", "somebody wanted it"
    JOB = "job", "its jobs"
    SCRIPT = "script", "its PRE or POST script"
    INNER_DAG = "inner_dag", "its inner DAG"
    REQUEST = "request", "its placement request"
    SUBMISSION = "submission", "it cannot be submitted"
    ANCESTOR = "ancestor", "an ancestor failed"
    CONDITION = "condition", "too few of its arcs hold"
    GATE = "gate", "its gate waits, or its time came"
    GROWTH = "growth", "what is to follow it cannot be inserted"
    DAG_ENDED = "dag_ended", "its DAG ends"
    DAG_LEFT = "dag_left", "its DAG leaves the site"


_D = DagState
_N = NodeState
DAG_TERMINAL = frozenset({_D.COMPLETED.value, _D.FAILED.value, _D.REMOVED.value})
#: States in which a DAG is bound to a site, and counts there.
DAG_ACTIVE = frozenset({_D.RUNNING.value, _D.HELD.value, _D.HALTED.value})
NODE_TERMINAL = frozenset({_N.DONE.value, _N.FAILED.value, _N.FUTILE.value, _N.SKIPPED.value})
#: States in which something of the node is under way.
NODE_IN_FLIGHT = frozenset({_N.PRE_RUNNING.value, _N.SUBMITTED.value, _N.POST_RUNNING.value})


def _step(
    *sources: models.TextChoices, to: models.TextChoices, needs_reason: bool = False
) -> Transition:
    return Transition(frozenset(str(s.value) for s in sources), str(to.value), needs_reason)


DAG_TRANSITIONS: TransitionTable = {
    "match": _step(_D.IDLE, to=_D.RUNNING),
    "hold": _step(_D.IDLE, _D.RUNNING, _D.HALTED, to=_D.HELD, needs_reason=True),
    # Running jobs may finish, nothing new begins; drained, the DAG ends with a rescue.
    "halt": _step(_D.IDLE, _D.RUNNING, to=_D.HALTED, needs_reason=True),
    # A DAG that was bound when it was held or halted goes on at its site; another one is
    # negotiated anew.
    "resume": _step(_D.HELD, _D.HALTED, to=_D.RUNNING),
    "release": _step(_D.HELD, _D.HALTED, to=_D.IDLE),
    "rematch": _step(_D.RUNNING, _D.HELD, _D.HALTED, to=_D.IDLE, needs_reason=True),
    # An idle DAG ends when its last nodes were left to finish at the site that it was taken from.
    "complete": _step(_D.IDLE, _D.RUNNING, _D.HELD, _D.HALTED, to=_D.COMPLETED),
    "fail": _step(_D.IDLE, _D.RUNNING, _D.HELD, _D.HALTED, to=_D.FAILED, needs_reason=True),
    "remove": _step(_D.IDLE, _D.RUNNING, _D.HELD, _D.HALTED, to=_D.REMOVED, needs_reason=True),
    # Nodes of a DAG that has ended run again.
    "reopen": _step(_D.COMPLETED, _D.FAILED, _D.REMOVED, to=_D.IDLE, needs_reason=True),
    # A sub-DAG begins at the site of the DAG that it belongs to.
    "begin": _step(_D.IDLE, to=_D.RUNNING),
}

NODE_TRANSITIONS: TransitionTable = {
    "make ready": _step(_N.WAITING, to=_N.READY),
    # A gate, which runs nothing and waits for a person or a time.
    "wait": _step(_N.READY, to=_N.READY, needs_reason=True),
    "start pre": _step(_N.READY, to=_N.PRE_RUNNING),
    "pass pre": _step(_N.PRE_RUNNING, to=_N.READY),
    # Its PRE script has not had its turn, and will not have it.
    "put off": _step(_N.PRE_RUNNING, to=_N.READY, needs_reason=True),
    "skip": _step(_N.PRE_RUNNING, to=_N.DONE, needs_reason=True),
    "submit": _step(_N.READY, to=_N.SUBMITTED),
    "start post": _step(_N.READY, _N.PRE_RUNNING, _N.SUBMITTED, to=_N.POST_RUNNING),
    "succeed": _step(_N.READY, _N.SUBMITTED, _N.POST_RUNNING, to=_N.DONE),
    "retry": _step(
        _N.READY, _N.PRE_RUNNING, _N.SUBMITTED, _N.POST_RUNNING, to=_N.READY, needs_reason=True
    ),
    # Its job was taken out of a TaskQueue before it ran; unlike a retry, this is not counted.
    "recall": _step(_N.SUBMITTED, to=_N.READY, needs_reason=True),
    "fail": _step(
        _N.READY, _N.PRE_RUNNING, _N.SUBMITTED, _N.POST_RUNNING, to=_N.FAILED, needs_reason=True
    ),
    "give up": _step(_N.WAITING, _N.READY, to=_N.FUTILE, needs_reason=True),
    # Conditions of its arcs, or of those before it, leave too few that hold.
    "rule out": _step(_N.WAITING, to=_N.SKIPPED, needs_reason=True),
    # By hand.
    "mark done": _step(
        _N.WAITING, _N.READY, _N.FAILED, _N.FUTILE, _N.SKIPPED, to=_N.DONE, needs_reason=True
    ),
    "mark failed": _step(_N.WAITING, _N.READY, to=_N.FAILED, needs_reason=True),
    "rerun": _step(_N.DONE, _N.FAILED, _N.FUTILE, _N.SKIPPED, to=_N.WAITING, needs_reason=True),
}
