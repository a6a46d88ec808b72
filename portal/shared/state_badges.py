"""Badges of states: word, shape, tone (for a colour) and meaning of each.

Also of what is no state machine, such as attempts, scripts, control loops and notices.
"""

from __future__ import annotations

from dataclasses import dataclass

from portal.shared.state_words import ENTITIES


@dataclass(frozen=True, slots=True)
class StateBadge:
    """Badge of a state. The word always stands beside the shape; the tone is only a hint."""

    shape: str
    tone: str


_WAIT = StateBadge("ring", "wait")
_NEXT = StateBadge("half", "next")
_GO = StateBadge("play", "go")
_GOOD = StateBadge("check", "good")
_BAD = StateBadge("cross", "bad")
_OFF = StateBadge("slash", "off")
_PAUSED = StateBadge("pause", "warn")
_LATE = StateBadge("clock", "warn")
_STOPPING = StateBadge("stop", "warn")

#: States of DAGs, nodes, jobs, attempts, pilots, sites and loops: equal words mean equal looks.
BADGES = {
    "idle": _WAIT, "received": _WAIT, "waiting": _WAIT, "never": _WAIT,
    "ready": StateBadge("dot", "next"), "submitted": _NEXT, "queued": _NEXT, "matched": _NEXT,
    "running": _GO, "open": _GO,
    "done": _GOOD, "completed": _GOOD, "ok": _GOOD, "enabled": _GOOD,
    "pre_running": StateBadge("before", "next"), "post_running": StateBadge("behind", "go"),
    "held": _PAUSED, "halted": _STOPPING,
    "granted": _NEXT, "processing": _GO, "rescheduled": _LATE, "ended": _GOOD,
    "stalled": _LATE, "late": _LATE, "lost": _LATE,
    "failed": _BAD, "failing": _BAD, "unmatched": _LATE,
    "paused": _PAUSED, "overlap": _OFF, "missed": _LATE, "not-submitted": _BAD,
    "futile": _OFF, "removed": _OFF, "killed": _OFF, "aborted": _OFF, "not_run": _OFF,
    "disabled": _OFF, "banned": _OFF, "no queue": _OFF,
    "draining": _PAUSED, "downtime": _PAUSED, "commissioning": _NEXT,
    "expired": _LATE, "throttled": _LATE,
    "requests": _WAIT, "matches": _GOOD, "seconds": _NEXT,
    "planned": _WAIT, "over": _OFF, "cancelled": _OFF,
    "preview": _WAIT, "confirmed": _NEXT, "stopped": _STOPPING, "skipped": _OFF, "pending": _WAIT,
    "active": _BAD, "muted": _OFF, "resolved": _GOOD, "regressed": _LATE,
    # Notices, and what leaves the portal.
    "node-suspected": _BAD, "node-cleared": _GOOD,
    "new-cause": _BAD, "opened": _GOOD, "downtime-begun": _PAUSED, "downtime-ended": _GOOD,
    "credential-ends": _LATE, "credential-ended": _BAD,
    "loop-stale": _LATE, "loop-well": _GOOD, "switched-off": _OFF, "assigned": _NEXT,
    # Rows of a cluster that are no jobs, or not yet.
    "not_yet_made": _WAIT, "never_made": _OFF, "faulty": _BAD, "ending": _GO,
    # Entries of an import.
    "added": _GOOD, "changed": _NEXT, "unchanged": _WAIT,
    # Verdicts of test pilots.
    "checking": _GO, "fit": _GOOD, "unfit": _BAD, "never_started": _BAD, "cut_short": _LATE,
    "sent": _GOOD, "given-up": _BAD, "dropped": _OFF,
}  # fmt: skip

#: Words that mean something else of one kind: an open attempt goes on, an open site is well.
OF_KIND = {("site", "open"): _GOOD, ("cluster", "active"): _GO, ("schedule", "active"): _GO}

_UNKNOWN = StateBadge("ring", "wait")

#: States that people call otherwise than programs do; of others the words are the same.
WORDS = {
    "pre_running": "PRE script", "post_running": "POST script", "not_yet_made": "not yet made",
    "never_made": "never made", "never_started": "never started", "cut_short": "cut short",
    # Kinds of objects in the audit trail.
    "dag": "DAG", "failure": "failure group", "operation": "bulk operation",
}  # fmt: skip


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


_TOLD = {
    entity.kind: {state: _sentence(text) for state, text in entity.state_meanings.items()}
    for entity in ENTITIES
}
#: What a state means, by the kind of thing that is in it: as the reference tells it, and of what is
#: no state machine.
MEANINGS = {
    **_TOLD,
    "schedule-run": {
        "submitted": "A DAG was submitted.",
        "overlap": "Nothing was submitted: the DAG before had not ended.",
        "missed": "Nothing was submitted: it was too late when the portal looked.",
        "failed": "Nothing was submitted: the DAG was refused.",
    },
    "script": {
        "waiting": "Waits for its turn among the scripts of its DAG.",
        "granted": "Waits for the service that runs scripts.",
        "running": "Runs now.",
        "ended": "Has ended.",
        "failed": "Has ended with another exit code than 0.",
    },
    "attempt": {
        "open": "Not ended yet.",
        "done": "Ended with success.",
        "failed": "The payload failed.",
        "lost": "The pilot was lost; the job runs again.",
        "not_run": "The pilot could not start the payload; the job runs again.",
        "killed": "Ended by a person.",
    },
    "check": {
        "ok": "The node is fit in this respect.",
        "failed": "The pilot took no job after this.",
    },
    "verdict": {
        "waiting": "The test pilot has not called in yet.",
        "checking": "The test pilot has called in, and its checks are not over.",
        "fit": "Its node passed all checks, and payloads can be fenced in there.",
        "unfit": "A check of its node failed.",
        "never_started": "It ended before it called in.",
        "cut_short": "It ended before its checks were over.",
    },
    "import": {
        "added": "A new downtime.",
        "changed": "A downtime that was imported before gets other terms.",
        "cancelled": "A downtime that was imported before is cancelled.",
        "unchanged": "It is there already, with the same terms.",
        "skipped": "Left out, for the reason beside it.",
    },
    "outcome": {
        "pending": "Not dealt with yet.",
        "done": "Changed by this operation.",
        "skipped": "Left as it is: its state does not allow it.",
        "failed": "Refused, for the reason beside it.",
    },
    "loop": {
        "ok": "Runs on time.",
        "late": "Has not run for several of its periods.",
        "failing": "Its last run ended with an error.",
        "never": "Is not due yet: its first run is still to come.",
    },
    "credential": {
        "ok": "Pilots are submitted with it.",
        "late": "Ends soon: set it anew.",
        "expired": "Has ended: no pilot is submitted with it.",
        "disabled": "Switched off: no pilot is submitted with it.",
    },
    "factory": {
        "ok": "Was heard lately.",
        "late": "Is not heard: nothing is known of its pilots now.",
        "disabled": "Switched off: it is sent no orders.",
    },
    "downtime": {
        "planned": "Has not begun.",
        "draining": "Its lead time has begun: the site takes no new DAG.",
        "running": "The site gets no DAG and no pilot; what runs there goes on.",
        "over": "Has ended.",
        "cancelled": "Was taken back before it began.",
    },
    "site": {
        **_TOLD["site"],
        "enabled": "Takes DAGs and pilots.",
        "disabled": "Switched off: takes no DAG and no pilot.",
        "no queue": "No queue is switched on, so it takes no DAG.",
        "downtime": "Takes no DAG before and in a downtime, and no pilot in it.",
        "expired": "It did not renew what it advertised: takes no DAG.",
        "throttled": "Failed too much: takes no DAG for a while.",
    },
}


def badge_of(state: str, kind: str = "") -> StateBadge:
    """Badge of a state; an unknown state looks like waiting."""
    return OF_KIND.get((kind, state)) or BADGES.get(state, _UNKNOWN)


def meaning_of(kind: str, state: str) -> str:
    """Meaning of the state for this kind of object; empty if there is none."""
    return MEANINGS.get(kind, {}).get(state, "")
