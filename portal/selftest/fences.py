"""Self-test of fences: whether scripts and payloads on this host are kept from the portal's files.

That is, whether they run under another account or behind a fence. Also names queues elsewhere that
have no fence although bubblewrap works there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from portal.selftest.findings import Code, Finding, error, ok, warning

_INSTALL = (
    "Install bubblewrap and let accounts make user namespaces, or let root run the portal: "
    "docs/how-to/fence-payloads.md."
)


@dataclass(frozen=True, slots=True)
class FencedQueue:
    """A queue, with what its payloads have; `fence` is empty where no pilot has settled it."""

    name: str
    fence: str
    is_settled: bool
    is_local: bool
    #: bubblewrap works on nodes of pilots that live now.
    works_there: bool = False


def scripts(name: str, trouble: str, *, is_unfenced_allowed: bool) -> Iterator[Finding]:
    """`name` is the fence that works here for scripts of nodes, `trouble` why there is none."""
    if trouble:
        yield error(
            Code.SCRIPTS_NOT_RUN,
            f"Scripts of nodes are not run on this host: {trouble}",
            "Nothing would keep them from the portal's secrets. Nodes with a script fail.",
            _INSTALL,
        )
    elif name == "none":
        yield warning(
            Code.SCRIPTS_UNFENCED,
            "Scripts of nodes run without a fence on this host.",
            "They can do what the portal's account can: whoever submits a DAG owns the portal.",
            f"Take none out of PILOTAGE_SCRIPTS_FENCES. {_INSTALL}",
        )
    else:
        yield ok(Code.SCRIPTS_FENCE, f"Scripts of nodes run behind the fence {name}.")
        if is_unfenced_allowed:
            yield warning(
                Code.SCRIPTS_UNFENCED,
                "PILOTAGE_SCRIPTS_FENCES allows none: without a fence that works, scripts run.",
                "When bubblewrap goes, they can do what the portal's account can, in silence.",
                "Take none out of PILOTAGE_SCRIPTS_FENCES.",
            )


def payloads(queues: list[FencedQueue], trouble: str) -> Iterator[Finding]:
    """`trouble` is why bubblewrap does not work for pilots on this host; empty where it does."""
    local = [each for each in queues if each.is_local]
    unfenced = [each.name for each in local if each.fence == "none"]
    stopped = [each.name for each in local if each.fence == "bwrap" and trouble]
    open_ones = [each.name for each in local if not each.fence and trouble]
    if stopped:
        yield error(
            Code.PAYLOADS_NOT_RUN,
            f"Queues on this host ask for bubblewrap, which does not work: {_names(stopped)}.",
            f"Their pilots take no job: {trouble}",
            _INSTALL,
        )
    if unfenced or open_ones:
        yield warning(
            Code.PAYLOADS_UNFENCED,
            f"Queues on this host run payloads without a fence: {_names(unfenced + open_ones)}.",
            "Payloads can do what the portal's account can: read its secrets and its database, and "
            "each other's files.",
            _INSTALL if trouble else "Set the fence of these queues to bwrap: it works here.",
        )
    if not (stopped or unfenced or open_ones):
        yield ok(Code.PAYLOADS_FENCE, "No queue on this host runs payloads without a fence.")
    usable = [
        each.name
        for each in queues
        if each.is_settled and each.fence == "none" and each.works_there and not each.is_local
    ]
    if usable:
        yield warning(
            Code.FENCE_UNUSED,
            f"bubblewrap works on nodes of queues that were settled without it: {_names(usable)}.",
            "Their payloads stay without a fence: what they see is not changed in silence.",
            "Set the fence of these queues to bwrap when their jobs can live with it.",
        )


def _names(names: list[str]) -> str:
    return ", ".join(sorted(names)[:10]) + (" and others" if len(names) > 10 else "")
