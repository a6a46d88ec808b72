"""Policy of notices: who may subscribe to what, and which objects a user is told of.

- Everybody who is logged in keeps subscriptions and channels of their own, and reads their own
  notices; nobody those of others.
- Notices are about objects that the user may see, when they are made and again when they are sent.
- Notices about control loops go to operators and above, who can do something about them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from wms.accounting.frontends import DEFAULT_KEY
from wms.accounting.selectors import visible_frontends
from wms.accounting.walls import walls_of
from wms.core.actors import Actor
from wms.core.errors import NotPermitted
from wms.core.models import Role, User
from wms.core.policy import has_role
from wms.dags.reading.selectors import visible_dags
from wms.failures.selectors import visible_groups
from wms.jobs.selectors import visible_jobs
from wms.notices.models import Rule, SubjectKind
from wms.schedules.selectors import visible_schedules
from wms.sites.selectors import visible_sites


def may_subscribe(user: User, rule: Rule) -> bool:
    """True when the user may subscribe to the rule."""
    return user.is_active and (rule != Rule.LOOPS or has_role(user, Role.OPERATOR))


def require_person(actor: Actor, action: str) -> User:
    """The person who acts. Raises NotPermitted for what is none."""
    if actor.user is None or not actor.user.is_active:
        raise NotPermitted(f"{actor.name} may not {action}: this is for people.")
    return actor.user


def require_rule(user: User, rule: Rule) -> None:
    """Raise NotPermitted unless the user may subscribe to this."""
    if not may_subscribe(user, rule):
        raise NotPermitted(
            f"{user.get_username()} may not subscribe to control loops: this needs the role "
            f"{Role.OPERATOR.label}."
        )


def visible_ids(user: User, kind: SubjectKind, ids: Collection[str]) -> set[str]:
    """Objects among these that the user may see now. One query at most."""
    return _VISIBLE[kind](user, ids) if ids and user.is_active else set()


def _dags(user: User, ids: Collection[str]) -> set[str]:
    found = visible_dags(user).filter(pk__in=ids)
    return {str(pk) for pk in found.values_list("pk", flat=True)}


def _jobs(user: User, ids: Collection[str]) -> set[str]:
    found = visible_jobs(user).filter(pk__in=ids)
    return {str(pk) for pk in found.values_list("pk", flat=True)}


def _groups(user: User, ids: Collection[str]) -> set[str]:
    found = visible_groups(user).filter(pk__in=ids)
    return {str(pk) for pk in found.values_list("pk", flat=True)}


def _schedules(user: User, ids: Collection[str]) -> set[str]:
    found = visible_schedules(user).filter(pk__in=ids)
    return {str(pk) for pk in found.values_list("pk", flat=True)}


def _sites(user: User, ids: Collection[str]) -> set[str]:
    return set(visible_sites(user).filter(name__in=ids).values_list("name", flat=True))


def _frontends(user: User, ids: Collection[str]) -> set[str]:
    seen = set(visible_frontends(user).filter(name__in=ids).values_list("name", flat=True))
    return seen | ({DEFAULT_KEY} & set(ids) if walls_of(user).lets_in(None) else set())


def _loops(user: User, ids: Collection[str]) -> set[str]:
    return set(ids) if has_role(user, Role.OPERATOR) else set()


def _own(user: User, ids: Collection[str]) -> set[str]:
    """The user's own channels: notices about a channel go to its owner only."""
    return set(ids)


_VISIBLE: Mapping[SubjectKind, Callable[[User, Collection[str]], set[str]]] = {
    SubjectKind.DAG: _dags,
    SubjectKind.JOB: _jobs,
    SubjectKind.FAILURES: _groups,
    SubjectKind.SITE: _sites,
    SubjectKind.SCHEDULE: _schedules,
    SubjectKind.FRONTEND: _frontends,
    SubjectKind.LOOP: _loops,
    SubjectKind.CHANNEL: _own,
}
