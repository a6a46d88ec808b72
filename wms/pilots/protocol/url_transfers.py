"""Transfers that the pilot of a job does itself: what it is told of them with the job.

Which addresses a URL leads to, and with what credential, a higher app knows, which registers that
here (`register_resolver`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from wms.core.errors import PilotageError
from wms.jobs.directives import Directives
from wms.jobs.models import Attempt


class CannotResolve(PilotageError):
    """A URL of a job leads nowhere, for a reason that no other pilot can help."""


class NoReplica(CannotResolve):
    """A logical name of a job has no replica any more; the job can wait for one."""


@dataclass(frozen=True, slots=True)
class Source:
    """An address of a file; `authorization` is the header that its host alone is to be shown."""

    url: str
    authorization: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class FetchedInput:
    """Sources of an input, in the order of their use, and its SHA-256 where that is known."""

    sources: Sequence[Source]
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class TransferRules:
    """Limits of a pilot's transfers: of each try in time, of each file in bytes.

    No address in one of the networks `refused` is reached, unless it is, or has a name, among those
    `allowed`.
    """

    limit_s: float
    stall_s: float
    file_bytes: int
    refused: Sequence[str]
    allowed: Sequence[str]


@dataclass(frozen=True, slots=True)
class Transfers:
    """Transfers of a pilot for one attempt: its inputs, and its outputs after a success.

    The exit code `success_code` tells of that.
    """

    inputs: Mapping[str, FetchedInput]
    outputs: Mapping[str, Source]
    success_code: int
    rules: TransferRules


_Resolver = Callable[[Attempt, Directives], Transfers]
_resolvers: list[_Resolver] = []


def register_resolver(resolver: _Resolver) -> None:
    """Have this function resolve the URLs of jobs; it raises CannotResolve."""
    _resolvers[:] = [resolver]


def transfers_of(attempt: Attempt) -> Transfers | None:
    """Transfers of the pilot of an attempt; None for most. Raises CannotResolve."""
    directives = Directives.of(attempt.job.directives)
    if not (directives.input_urls or directives.output_urls):
        return None
    [resolver] = _resolvers
    return resolver(attempt, directives)
