"""Inputs that are wanted: logical names of a job or DAG, and how they may be reached.

Where they are is known above jobs: who keeps the catalogue registers a locator.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from wms.jobs.directives import ANYWHERE
from wms.jobs.models import Job
from wms.jobs.states import InputCause

_SCHEME: Final = "lfn:"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Logical names that an owner wants as inputs of a job, in order.

    With `is_anywhere` they may be fetched from afar. Without `waits` those that are nowhere are
    left out, as something else may yet make them. `expected` has names of storages at which some
    will be, by the names. `is_of_dag`: all nodes of a DAG want them together. `limited_to` is the
    id of the frontend whose files alone the owner may read there.
    """

    owner: str
    names: tuple[str, ...]
    is_anywhere: bool = False
    waits: bool = True
    expected: tuple[tuple[str, str], ...] = ()
    is_of_dag: bool = False
    limited_to: int | None = None

    def key(self) -> str:
        """SHA-256 of the whole: equal exactly for equal wants."""
        parts: list[Any] = [
            self.owner, self.names, self.is_anywhere, self.waits, self.expected, self.is_of_dag
        ]  # fmt: skip
        if self.limited_to is not None:
            parts.append(self.limited_to)
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Located:
    """Sites that wanted inputs tie a job to, in order; None: to no site.

    `cause` and `told` are why: a value, and a sentence with the names and where their replicas are.
    `tenths` of their bytes are near sites, by the sites' names.
    """

    sites: tuple[str, ...] | None = None
    cause: InputCause = InputCause.NONE
    told: str = ""
    tenths: Mapping[str, int] = field(default_factory=dict)


Locator: TypeAlias = Callable[[Sequence[Wanted]], list[Located]]
_locators: list[Locator] = []


def register_locator(locator: Locator) -> None:
    """Have this function locate inputs, each by itself, with few queries for all of them."""
    _locators[:] = [locator]


def locate(wanted: Sequence[Wanted]) -> list[Located]:
    """Where wanted inputs are now, in their order."""
    [locator] = _locators
    return locator(wanted) if wanted else []


def names_in(directives: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Logical names among the inputs of stored directives, in order, each once."""
    if not directives:
        return ()
    urls = directives.get("input_urls")
    named = directives.get("input_data")
    if not (urls or named):
        return ()
    every = (*(urls or {}).values(), *(named or ()))
    return tuple(sorted({unquote(each[len(_SCHEME) :]) for each in every if _is_logical(each)}))


def wanted_by(directives: Mapping[str, Any] | None, owner: str) -> Wanted | None:
    """Inputs that a job with these stored directives wants; None for most jobs.

    Whether its workspace is limited to a frontend is for the caller to say.
    """
    names = names_in(directives)
    if not names or directives is None:
        return None
    return Wanted(owner, names, is_anywhere=directives.get("data_access") == ANYWHERE)


def wanted_by_job(job: Job) -> Wanted | None:
    """Inputs that a job wants; a query more, of its workspace, where it wants any."""
    wanted = wanted_by(job.directives, job.owner.username)
    return wanted and replace(wanted, limited_to=job.workspace.limited_to)


def _is_logical(url: str) -> bool:
    return url.startswith(_SCHEME)
