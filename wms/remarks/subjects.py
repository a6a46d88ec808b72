"""Kinds of subjects of remarks: who sees and who may write about them, and what they are called.

Whoever may see a subject may see what is written about it. Whoever may steer it may write: shifters
and above, the owner of a DAG, the administrators of a site.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Model, QuerySet

from wms.core.errors import NotFound
from wms.core.models import User
from wms.dags.models import Dag
from wms.dags.policy import may_steer as may_steer_dag
from wms.dags.reading.selectors import visible_dags
from wms.failures.models import FailureGroup
from wms.failures.policy import may_steer as may_steer_failures
from wms.failures.selectors import visible_groups
from wms.remarks.models import MAX_NAME
from wms.remarks.states import SubjectKind
from wms.sites.models import Site
from wms.sites.policy import steerable_sites
from wms.sites.selectors import visible_sites


@dataclass(frozen=True, slots=True)
class SubjectType:
    """Kind of subjects; `handle` is the column by which programs and addresses name one.

    `target` begins the words of the audit trail for one, before its handle. `since` is the column
    with the time of its last change of state, which ends an acknowledgement; empty: none does.
    `writes` tells whether the user may write about all of these.
    """

    kind: SubjectKind
    model: type[Model]
    visible: Callable[[User], QuerySet[Any]]
    writes: Callable[[User, Sequence[Any]], bool]
    named: Callable[[Any], str]
    target: str
    handle: str = "pk"
    since: str = "state_since"

    def key_of(self, subject: Any) -> str:
        """Handle of a subject, as addresses have it."""
        return str(getattr(subject, self.handle))

    def target_of(self, subject: Any) -> str:
        """Words for a subject in the audit trail and in messages."""
        return f"{self.target} {self.key_of(subject)}"

    def name_of(self, subject: Any) -> str:
        """Name that is kept with a remark."""
        return self.named(subject)[:MAX_NAME]

    def since_of(self, subject: Any) -> datetime | None:
        """Time of its last change of state, where that ends an acknowledgement."""
        return getattr(subject, self.since) if self.since else None


def _writes_about_sites(user: User, sites: Sequence[Site]) -> bool:
    named = steerable_sites(user).filter(pk__in=[site.pk for site in sites])
    return named.distinct().count() == len(sites)


SUBJECTS: Mapping[str, SubjectType] = {
    each.kind: each
    for each in (
        SubjectType(
            SubjectKind.DAG,
            Dag,
            visible_dags,
            lambda user, dags: all(may_steer_dag(user, dag) for dag in dags),
            lambda dag: dag.name,
            "DAG",
        ),
        # A site is in trouble without a change of the state that people set.
        SubjectType(
            SubjectKind.SITE,
            Site,
            visible_sites,
            _writes_about_sites,
            lambda site: site.name,
            "site",
            handle="name",
            since="",
        ),
        SubjectType(
            SubjectKind.FAILURE,
            FailureGroup,
            visible_groups,
            lambda user, groups: may_steer_failures(user),
            lambda group: group.text,
            "failure group",
        ),
    )
}


def subject_type(kind: str) -> SubjectType:
    """Kind of subjects of this name. Raises NotFound."""
    if kind not in SUBJECTS:
        raise NotFound(f"Nobody writes about {kind!r}; there are {', '.join(SUBJECTS)}.")
    return SUBJECTS[kind]


def find_subject(user: User, kind: str, key: str) -> Any:
    """Subject with this handle that the user may see. Raises NotFound."""
    found = subject_type(kind)
    is_named = found.handle != "pk" or (key.isascii() and key.isdigit() and len(key) < 19)
    subject = found.visible(user).filter(**{found.handle: key}).first() if is_named else None
    if subject is None:
        raise NotFound(f"There is no {found.target} {key}, or you may not see it.")
    return subject


def may_write(user: User, kind: str, subject: Any) -> bool:
    """Whether the user may write about a subject."""
    return SUBJECTS[kind].writes(user, [subject])
