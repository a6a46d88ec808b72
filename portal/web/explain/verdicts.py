"""Badges, words and meanings on the pages Explain and What if: verdicts, and how sites stand."""

from __future__ import annotations

from dataclasses import dataclass

from matching.negotiation.explanation import MatchVerdict
from matching.negotiation.unmatched_reasons import SiteStanding
from portal.shared.state_badges import StateBadge


@dataclass(frozen=True, slots=True)
class Meaning:
    """A verdict for display: its badge, its word, and a sentence."""

    badge: StateBadge
    word: str
    text: str


_GOOD = StateBadge("check", "good")
_BAD = StateBadge("cross", "bad")
_LATE = StateBadge("clock", "warn")
_PAUSED = StateBadge("pause", "warn")
_OFF = StateBadge("slash", "off")

VERDICTS = {
    MatchVerdict.WOULD_MATCH: Meaning(
        _GOOD, "Would match now", "If it were alone in a negotiation, it would get a site at once."
    ),
    MatchVerdict.NEVER: Meaning(
        _BAD, "Never", "Waiting does not help: no site matches this DAG as they are now."
    ),
    MatchVerdict.NOT_NOW: Meaning(
        _LATE, "Not now", "Sites match, but each is full, closed or avoided at present."
    ),
    MatchVerdict.NOT_ALLOWED: Meaning(
        _PAUSED, "Not allowed", "A person or a limit holds it back; waiting does not help."
    ),
    MatchVerdict.WAITING: Meaning(
        StateBadge("half", "next"),
        "Waiting its turn",
        "It can run; others are served first, or a limit is reached.",
    ),
    MatchVerdict.NOT_LOOKED_AT: Meaning(
        StateBadge("ring", "wait"),
        "Not considered yet",
        "The next negotiation decides, in some seconds.",
    ),
    MatchVerdict.BOUND: Meaning(
        StateBadge("play", "go"), "Has a site", "It is not waiting for a match."
    ),
    MatchVerdict.ENDED: Meaning(_OFF, "Has ended", "Nothing more will run."),
}

#: The same of jobs: what they wait for are queues and their pilots.
JOB_VERDICTS = VERDICTS | {
    MatchVerdict.NEVER: Meaning(
        _BAD, "Never", "Waiting does not help: no queue offers what is needed, as things are now."
    ),
    MatchVerdict.NOT_NOW: Meaning(
        _LATE, "Not now", "Queues match, but each is closed or at a limit at present."
    ),
}

#: How sites stand to a DAG, in the order in which that matters.
SITES = {
    SiteStanding.FREE: Meaning(_GOOD, "Would take it now", "Both sides agree and there is room."),
    SiteStanding.FULL: Meaning(
        _LATE, "Full", "Both sides agree; CurMatches has reached MaxMatches."
    ),
    SiteStanding.CLOSED: Meaning(_PAUSED, "Closed", "Both sides agree; the site takes no DAG now."),
    SiteStanding.AVOIDED: Meaning(
        _OFF, "Avoided", "Both sides agree; the DAG was taken back from there."
    ),
    SiteStanding.USED_UP: Meaning(
        _LATE, "Allowance used up", "Both sides agree; after failures the site gets fewer matches."
    ),
    SiteStanding.UNFIT_FOR_NODES: Meaning(
        _BAD, "Cannot run a node", "Both sides agree; no queue there meets a need of one node."
    ),
    SiteStanding.REFUSED_BY_SITE: Meaning(
        _BAD, "Refuse the DAG", "The Requirements of the site are not true for this DAG."
    ),
    SiteStanding.REFUSED_BY_DAG: Meaning(
        _BAD, "Ruled out by the DAG", "The Requirements of the DAG are not true for this site."
    ),
}

#: The same seen from a site: how idle DAGs stand to it.
DAGS = {
    SiteStanding.FREE: Meaning(_GOOD, "It would take now", "Both sides agree and there is room."),
    SiteStanding.FULL: Meaning(
        _LATE, "Fit, but the site is full", "CurMatches has reached MaxMatches."
    ),
    SiteStanding.CLOSED: Meaning(_PAUSED, "Fit, but the site is closed", "It takes no DAG now."),
    SiteStanding.AVOIDED: Meaning(
        _OFF, "Fit, but avoid the site", "They were taken back from this site."
    ),
    SiteStanding.USED_UP: Meaning(
        _LATE, "Fit, but its allowance is used up", "After failures it gets fewer matches."
    ),
    SiteStanding.UNFIT_FOR_NODES: Meaning(
        _BAD, "Have a node that cannot run", "No queue of the site meets a need of one node."
    ),
    SiteStanding.REFUSED_BY_SITE: Meaning(
        _BAD, "It refuses", "The Requirements of the site are not true for these DAGs."
    ),
    SiteStanding.REFUSED_BY_DAG: Meaning(
        _BAD, "Rule the site out", "The Requirements of these DAGs are not true for the site."
    ),
}
