"""States of jobs, transitions between them, causes of states, and events that change no state.

Also causes why input data tie jobs to sites.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.db import models

from wms.core.transitions import Transition, TransitionTable


class JobState(models.TextChoices):
    """States of a job."""

    RECEIVED = "received", "received"
    WAITING = "waiting", "waiting"
    MATCHED = "matched", "matched"
    RUNNING = "running", "running"
    STALLED = "stalled", "stalled"
    HELD = "held", "held"
    DONE = "done", "done"
    FAILED = "failed", "failed"
    KILLED = "killed", "killed"


class InputCause(models.TextChoices):
    """Why the input data of a job tie it to sites, or keep it from all of them."""

    NONE = "", "they tie it to no site"
    NEAR = "near", "they are near some sites"
    APART = "apart", "no site is near all of them"
    MISSING = "missing", "some are nowhere"


class JobCause(models.TextChoices):
    """Causes of a job's state, for code; the reason beside them is for people."""

    PERSON = "person", "somebody wanted it"
    EXPRESSION = "expression", "an expression of its own"
    BEGUN_HELD = "begun_held", "it was submitted to be held"
    JOB_DURATION = "job_duration", "it was with a pilot for longer than it may"
    EXECUTION = "execution", "its payload ran for longer than it may"
    CHECKPOINT = "checkpoint", "files of its checkpoint are missing"
    PAYLOAD = "payload", "its payload failed"
    INPUTS = "inputs", "input files are missing"
    OUTPUTS = "outputs", "output files did not come"
    FETCH = "fetch", "an input could not be fetched from its URL"
    SEND = "send", "an output could not be sent to its URL"
    IMAGE = "image", "no container can be started from its image"
    UNRUNNABLE = "unrunnable", "it cannot be run as it is described"
    UNSTORABLE = "unstorable", "what its pilot told of it cannot be stored"
    UNDEFINED = "undefined", "its site does not define a value that it uses"
    NOT_RUN = "not_run", "its pilot could not run it"
    PILOT_TIME = "pilot_time", "its pilot had too little time"
    PREEMPTED = "preempted", "the batch system took its slot back"
    PILOT_STALLED = "pilot_stalled", "its pilot fell silent"
    PILOT_FAILED = "pilot_failed", "its pilot failed"
    PILOT_ENDED = "pilot_ended", "its pilot ended"
    PILOT_REMOVED = "pilot_removed", "its pilot was removed"
    DAG_HELD = "dag_held", "its DAG is held"
    DAG_ENDED = "dag_ended", "its DAG ends"
    DAG_LEFT = "dag_left", "its DAG leaves the site"
    CLUSTER_HELD = "cluster_held", "its cluster is held"
    CLUSTER_ENDED = "cluster_ended", "its cluster was removed"
    NODE = "node", "its node has no use for it any more"
    TIMEOUT = "timeout", "the time of its node was up"


_S = JobState
TERMINAL = frozenset({_S.DONE.value, _S.FAILED.value, _S.KILLED.value})
#: States in which the job's current attempt belongs to a pilot.
WITH_PILOT = frozenset({_S.MATCHED.value, _S.RUNNING.value, _S.STALLED.value})
#: States in which no pilot has the job.
QUEUED = frozenset({_S.RECEIVED.value, _S.WAITING.value, _S.HELD.value})


def _step(*sources: JobState, to: JobState, needs_reason: bool = False) -> Transition:
    return Transition(frozenset(s.value for s in sources), to.value, needs_reason)


TRANSITIONS: TransitionTable = {
    "enqueue": _step(_S.RECEIVED, to=_S.WAITING),
    "match": _step(_S.WAITING, to=_S.MATCHED),
    "start": _step(_S.MATCHED, to=_S.RUNNING),
    "complete": _step(_S.MATCHED, _S.RUNNING, _S.STALLED, to=_S.DONE),
    "fail": _step(_S.WAITING, _S.MATCHED, _S.RUNNING, _S.STALLED, to=_S.FAILED, needs_reason=True),
    "stall": _step(_S.MATCHED, _S.RUNNING, to=_S.STALLED, needs_reason=True),
    "recover": _step(_S.STALLED, to=_S.RUNNING),
    # First into no TaskQueue: after its pause, which may be none, it is enqueued again.
    "reschedule": _step(_S.MATCHED, _S.RUNNING, _S.STALLED, to=_S.RECEIVED, needs_reason=True),
    "requeue": _step(_S.RECEIVED, to=_S.WAITING),
    "hold": _step(
        _S.RECEIVED, _S.WAITING, _S.MATCHED, _S.RUNNING, _S.STALLED, to=_S.HELD, needs_reason=True
    ),
    "release": _step(_S.HELD, to=_S.WAITING),
    "kill": _step(
        _S.RECEIVED, _S.WAITING, _S.MATCHED, _S.RUNNING, _S.STALLED, _S.HELD,
        to=_S.KILLED, needs_reason=True,
    ),
}  # fmt: skip

#: Events that change no state, with the states in which they are written.
NOTES: Mapping[str, frozenset[str]] = {
    "update": WITH_PILOT,
    "checkpoint": WITH_PILOT,
    "prioritise": frozenset(JobState.values) - TERMINAL,
    "change": frozenset(JobState.values) - TERMINAL,
    "late": frozenset(JobState.values),
    # The database went back to an earlier state: it may have been done since.
    "restored": frozenset(JobState.values) - TERMINAL,
}
