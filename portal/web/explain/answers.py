"""Explain answers as lines for the page: ordered, grouped, counted, and cut to a length.

Conjuncts, sites, refusals, unmet needs of nodes, candidates, near misses and queues; changes by
what-if.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Generic, TypeVar

from matching.negotiation.explanation import Candidate, ConjunctCount, Explanation, Refusal
from matching.negotiation.near_misses import NearMiss
from matching.negotiation.unmatched_reasons import SiteStanding
from portal.web.explain.verdicts import DAGS, SITES, Meaning
from wms.explain.answers import DagAnswer, SiteAnswer
from wms.explain.needs import NeedsExplanation, QueueFit

_T = TypeVar("_T")
#: Most names of a list that are shown at once; the others unfold.
_NAMES = 24
_NOTED_NAMES = 10
_CANDIDATES = 15
_QUEUES = 50
_REFUSALS = 20


@dataclass(frozen=True, slots=True)
class Cut(Generic[_T]):
    """First items of a list, with the number of the others."""

    shown: Sequence[_T]
    rest: Sequence[_T]

    @property
    def total(self) -> int:
        """Number of all items."""
        return len(self.shown) + len(self.rest)


def cut(items: Iterable[_T], limit: int = _NAMES) -> Cut[_T]:
    """The first `limit` of a list; a single one more is not hidden."""
    whole = list(items)
    limit = limit if len(whole) > limit + 1 else limit + 1
    return Cut(whole[:limit], whole[limit:])


@dataclass(frozen=True, slots=True)
class ConjunctLine:
    """A conjunct with its counts; `ends_all` if no candidate is left after it.

    `notes` tell for how many it is undefined, an error, or no truth value.
    """

    text: str
    alone: int
    together: int
    ends_all: bool
    notes: Sequence[str] = ()


def conjunct_lines(counts: Sequence[ConjunctCount], total: int) -> list[ConjunctLine]:
    """Conjuncts in their order; the one that leaves no candidate is marked."""
    before = [total, *(count.together for count in counts)]
    return [
        ConjunctLine(
            count.text,
            count.alone,
            count.together,
            ends_all=bool(left and not count.together),
            notes=_notes(count),
        )
        for left, count in zip(before, counts, strict=False)
    ]


def _notes(count: ConjunctCount) -> list[str]:
    numbers = {
        "undefined": count.undefined,
        "an error": count.error,
        "neither true nor false": count.no_truth,
    }
    return [f"{what} for {number}" for what, number in numbers.items() if number]


@dataclass(frozen=True, slots=True)
class NamedSite:
    """A site with a remark."""

    name: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Sites with the same verdict for the DAG."""

    meaning: Meaning
    sites: Cut[NamedSite]
    has_notes: bool


def groups(found: Explanation, notes: Mapping[SiteStanding, Mapping[str, str]]) -> list[Group]:
    """All sites grouped by verdict; `notes` are remarks on some of them."""
    stands = found.stands or {}
    return [
        _group(stand, stands[stand], notes.get(stand, {})) for stand in SITES if stand in stands
    ]


def _group(stand: SiteStanding, names: Sequence[str], notes: Mapping[str, str]) -> Group:
    sites = [NamedSite(name, notes.get(name, "")) for name in sorted(names)]
    has_notes = any(site.note for site in sites)
    return Group(SITES[stand], cut(sites, _NOTED_NAMES if has_notes else _NAMES), has_notes)


@dataclass(frozen=True, slots=True)
class VerdictChange:
    """Number of sites or DAGs with a verdict, before and after a change."""

    meaning: Meaning
    before: int
    after: int


def changes_of_sites(answer: DagAnswer) -> list[VerdictChange]:
    """Number of sites by verdict, before and after the what-if."""
    before = {stand: len(names) for stand, names in (answer.explanation.stands or {}).items()}
    stands = answer.after.stands if answer.after else None
    return _changes(SITES, before, {stand: len(names) for stand, names in (stands or {}).items()})


def changes_of_dags(answer: SiteAnswer) -> list[VerdictChange]:
    """Number of idle DAGs by verdict, before and after the what-if; `after` is 0 without one."""
    before = answer.explanation.stands if answer.explanation else {}
    return _changes(DAGS, before, answer.after.stands if answer.after else {})


def _changes(
    meanings: Mapping[SiteStanding, Meaning],
    before: Mapping[SiteStanding, int],
    after: Mapping[SiteStanding, int],
) -> list[VerdictChange]:
    return [
        VerdictChange(meaning, before.get(stand, 0), after.get(stand, 0))
        for stand, meaning in meanings.items()
        if stand in before or stand in after
    ]


@dataclass(frozen=True, slots=True)
class CountChange:
    """A number before and after a change, with its label."""

    what: str
    before: int
    after: int


def changes_of_queues(before: NeedsExplanation, after: NeedsExplanation) -> list[CountChange]:
    """Number of queues that can run the job, before and after the what-if."""
    first, second = _queue_counts(before), _queue_counts(after)
    return [CountChange(what, first[what], second[what]) for what in first]


def _queue_counts(found: NeedsExplanation) -> dict[str, int]:
    fitting = [fit for fit in found.queues if not fit.refusal]
    closed = sum(bool(fit.closed) for fit in fitting)
    return {
        "Queues whose pilots can take it": len(fitting) - closed,
        "Fit, but closed now": closed,
        "Can never run it": len(found.queues) - len(fitting),
    }


def changes_of_jobs(answer: SiteAnswer) -> list[CountChange]:
    """Number of waiting jobs that a site's queues can run, before and after the what-if."""
    before, after = answer.jobs, answer.jobs_after
    if before is None or after is None:
        return []
    return [
        CountChange("A queue offers enough", before.fitting, after.fitting),
        CountChange(
            "No queue can run them", before.jobs - before.fitting, after.jobs - after.fitting
        ),
    ]


@dataclass(frozen=True, slots=True)
class RefusalLine:
    """A conjunct of sites' Requirements, and the sites that refuse by it."""

    text: str
    sites: Cut[NamedSite]
    otherwise_fitting: int


def refusal_lines(refusals: Sequence[Refusal]) -> Cut[RefusalLine]:
    """Refusals, by most sites first."""
    lines = [
        RefusalLine(each.text, cut(map(NamedSite, each.sites), 6), each.otherwise_fitting)
        for each in refusals
    ]
    return cut(lines, _REFUSALS)


@dataclass(frozen=True, slots=True)
class UnmetLine:
    """A need of a node, and the sites that have no queue for it."""

    node: str
    text: str
    sites: Cut[NamedSite]


def unmet_lines(found: Explanation) -> Cut[UnmetLine]:
    """Unmet needs of nodes, those of the most sites first."""
    lines = [
        UnmetLine(each.node, each.text, cut(map(NamedSite, each.sites), 6)) for each in found.unmet
    ]
    return cut(lines, _REFUSALS)


def candidates(found: Explanation) -> Cut[Candidate]:
    """Sites that would take the DAG now, best first."""
    return cut(found.candidates, _CANDIDATES)


@dataclass(frozen=True, slots=True)
class Step:
    """A change with the number of sites that would then fit; `line` is its text for a what-if."""

    new: str
    after: int
    line: str


@dataclass(frozen=True, slots=True)
class MissLine:
    """A near miss: the present value, and changes of it, the smallest first."""

    attribute: str
    old: str
    before: int
    steps: Sequence[Step]

    @property
    def is_requirement(self) -> bool:
        """True for a conjunct of Requirements, false for another attribute."""
        return self.attribute == "Requirements"


def miss_lines(answer: DagAnswer) -> list[MissLine]:
    """Nearest misses, grouped by attribute or conjunct."""
    conjuncts = [conjunct.text for conjunct in answer.explanation.conjuncts]
    # With conjuncts missing nobody can say what the changed Requirements would be.
    known = [
        m for m in answer.misses if m.attribute != "Requirements" or not answer.explanation.is_cut
    ]
    together = groupby(known, key=lambda miss: (miss.attribute, miss.old))
    lines: dict[tuple[str, str], MissLine] = {}
    for key, found in together:
        misses = list(found)
        steps = [Step(miss.new, miss.after, _what_if(miss, conjuncts)) for miss in misses]
        earlier = lines[key].steps if key in lines else ()
        lines[key] = MissLine(*key, misses[0].before, [*earlier, *steps])
    return list(lines.values())


def _what_if(miss: NearMiss, conjuncts: Sequence[str]) -> str:
    if miss.attribute != "Requirements":
        return f"{miss.attribute} = {miss.new}"
    kept = [miss.new if text == miss.old else text for text in conjuncts]
    text = " && ".join(f"({text})" for text in kept if text) or "true"
    return f"Requirements = {' '.join(text.split())}"


@dataclass(frozen=True, slots=True)
class RefusingQueues:
    """Queues that can never run the job, for one reason."""

    reason: str
    names: Cut[str]


@dataclass(frozen=True, slots=True)
class QueueLines:
    """Queues grouped by whether they can run a job."""

    usable: Cut[QueueFit]
    closed: Cut[QueueFit]
    refusing: Sequence[RefusingQueues]
    total: int


def queue_lines(found: NeedsExplanation) -> QueueLines:
    """Queues that can run the job first, then closed ones, then the others by reason."""
    reasons: dict[str, list[str]] = {}
    for fit in found.queues:
        if fit.refusal:
            reasons.setdefault(fit.refusal, []).append(f"{fit.site}/{fit.queue}")
    by_size = sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0]))
    fitting = [fit for fit in found.queues if not fit.refusal]
    return QueueLines(
        usable=cut((fit for fit in fitting if not fit.closed), _QUEUES),
        closed=cut((fit for fit in fitting if fit.closed), _QUEUES),
        refusing=[RefusingQueues(reason, cut(names, 12)) for reason, names in by_size],
        total=len(found.queues),
    )
