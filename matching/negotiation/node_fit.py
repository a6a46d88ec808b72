"""Fit of a DAG's nodes to sites: at which sites each of them can run, and which need is unmet.

The needs themselves are compared with queues elsewhere. Here they have places, which the results of
that are named by; DAGs with the same needs share one `NodeFit`, whatever their nodes are called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

#: Unmet needs that a reason lists, and sites that it names for each.
_NEEDS_SHOWN = 3
_SITES_SHOWN = 5


class NeedCode(StrEnum):
    """Kind of a need that no queue of a site meets."""

    CPU_TIME = "cpu_time"
    CORES = "cores"
    MEMORY = "memory"
    GPUS = "gpus"
    DISK = "disk"
    PLACE = "place"
    TAGS = "tags"
    IDENTITY = "identity"
    SENDING = "sending"
    REQUIREMENTS = "requirements"
    DATA = "data"
    TOGETHER = "together"


@dataclass(frozen=True, slots=True)
class Unmet:
    """The first need of a DAG that no queue of a site meets: its place, its kind, a phrase.

    The phrase has what is needed and the largest amount there, with the unit.
    """

    place: int
    code: NeedCode
    text: str


class NodeFit:
    """Sites where nodes with some needs can run.

    `fitting` has the ids of sites with a queue for it, for each need; `known` are all sites that
    have queues. Sites without one are left out: they are closed. `unmet_at` tells of a need, by
    its place, what is unmet at a site.
    """

    def __init__(
        self,
        fitting: Sequence[frozenset[int]],
        known: frozenset[int],
        unmet_at: Callable[[int, int], Unmet],
    ) -> None:
        self._fitting = tuple(fitting)
        self._known = known
        self._unmet_at = unmet_at
        #: Ids of the sites with queues where not every node can run.
        self.unfit = known.difference(frozenset.intersection(known, *self._fitting))
        self._unmet: dict[int, Unmet] = {}
        self._grouped: dict[frozenset[int], dict[Unmet, list[int]]] = {}

    def unmet(self, site_id: int) -> Unmet:
        """The first need that no queue of an unfit site meets."""
        if site_id not in self._unmet:
            place = next(n for n, sites in enumerate(self._fitting) if site_id not in sites)
            self._unmet[site_id] = self._unmet_at(place, site_id)
        return self._unmet[site_id]

    def by_need(self, site_ids: frozenset[int]) -> Mapping[Unmet, Sequence[int]]:
        """These unfit sites by the need that is unmet there, that of the most sites first."""
        if site_ids not in self._grouped:
            groups: dict[Unmet, list[int]] = {}
            for site_id in sorted(site_ids):
                groups.setdefault(self.unmet(site_id), []).append(site_id)
            by_size = sorted(groups.items(), key=lambda each: -len(each[1]))
            self._grouped[site_ids] = dict(by_size)
        return self._grouped[site_ids]

    def unmet_at_all(self, site_ids: frozenset[int]) -> Unmet | None:
        """The first need that none of these sites meets, as it is at one of them; None if none."""
        here = self._known & site_ids
        places = (n for n, sites in enumerate(self._fitting) if sites.isdisjoint(here))
        place = next(places, None) if here else None
        return None if place is None else self._unmet_at(place, min(here))


def unmet_sentences(
    fit: NodeFit,
    nodes: Sequence[str],
    site_ids: frozenset[int],
    names: Mapping[int, str],
    *,
    inputs: str = "",
) -> str:
    """Sentences with the node, the need and the sites that do not meet it.

    `nodes` has the name of a node for each need, `names` those of sites; `inputs` is told where
    input data are not near.
    """
    groups = fit.by_need(site_ids)
    sentences = [
        f"Node {nodes[unmet.place]}: {unmet.text} ({_listed([names[pk] for pk in sites])})."
        for unmet, sites in list(groups.items())[:_NEEDS_SHOWN]
    ]
    rest = len(groups) - _NEEDS_SHOWN
    more = f"{rest} more such need{'s are' if rest > 1 else ' is'} unmet."
    is_far = any(unmet.code is NeedCode.DATA for unmet in groups)
    told = [*sentences, *([more] if rest > 0 else []), *([inputs] if inputs and is_far else [])]
    return " ".join(told)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(sorted(names)[:_SITES_SHOWN])
    return f"{shown}, ..." if len(names) > _SITES_SHOWN else shown
