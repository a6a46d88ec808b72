"""Policy of sites and queues: who may steer them (ban, drain, downtimes), who configures them.

- Everybody who is logged in sees every site, with its ad and what happened to it: sites are shared.
- A site names its administrators. They do there, and nowhere else, what shifters and operators do:
  ban, drain and unban it, enter downtimes, clear its worker nodes, change it and its queues, set
  limits there, advertise.
- What reaches beyond the site is not theirs: they make no site and no queue, name no other
  administrators, and leave alone how the portal's account reaches a batch system, what fences
  payloads in, and whose private pilots a queue sends.
- Shifters and above decide from hour to hour whether a site gets new work: they ban, drain and
  unban every site, enter downtimes, and clear suspected worker nodes. A shift must be able to stop
  a site that eats jobs at night.
- Operators and above configure all sites and queues, and advertise: an advertised ad says which
  DAGs a site takes, so it is configuration. They also say whose private pilots a queue sends: it
  gives that user's jobs places that others do not get.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from django.db.models import Model, QuerySet

from wms.core.actors import Actor
from wms.core.errors import NotPermitted
from wms.core.models import Role, User
from wms.core.policy import has_role, require_role
from wms.sites.models import Site

#: What only operators set of a queue. `settings` name files of the portal's account, and programs
#: that it runs; without a fence payloads of a `host` queue are programs of that account, with
#: `sudo` their accounts are any that it may have, its shared folders are those of the portal's
#: host, and its network leads to the portal's own neighbours.
OPERATORS_FIELDS = frozenset(
    {
        "site_id", "element", "settings", "is_private", "owner_id", "owner_group_id", "fence",
        "network", "shared_folders", "payload_accounts",
    }
)  # fmt: skip


def administers(user: User, site: Site) -> bool:
    """True when the site names the user as its administrator, and the user's role allows it."""
    is_named = Site.administrators.through._default_manager.filter(site=site, user=user)
    return has_role(user, Role.SITE_ADMIN) and is_named.exists()


def may_steer(user: User, site: Site) -> bool:
    """True when the user may open and close this site."""
    return has_role(user, Role.SHIFTER) or administers(user, site)


def may_configure(user: User, site: Site) -> bool:
    """True when the user may configure this site."""
    return has_role(user, Role.OPERATOR) or administers(user, site)


def steerable_sites(user: User) -> QuerySet[Site]:
    """The sites that the user may open and close."""
    return _own_or_all(user, Role.SHIFTER)


def configurable_sites(user: User) -> QuerySet[Site]:
    """The sites that the user may configure."""
    return _own_or_all(user, Role.OPERATOR)


def _own_or_all(user: User, role: Role) -> QuerySet[Site]:
    if has_role(user, role):
        return Site.objects.all()
    own = Site.objects.filter(administrators=user)
    return own if has_role(user, Role.SITE_ADMIN) else own.none()


def require_steering(actor: Actor, action: str, site: Site | None = None) -> None:
    """Raise NotPermitted unless the actor may open and close the site; without one, any site."""
    _require(actor, Role.SHIFTER, action, [site])


def require_configuring(actor: Actor, action: str, *sites: Site | None) -> None:
    """Raise NotPermitted unless the actor may configure all of these sites.

    None stands for what is of no one site; so does naming no site.
    """
    _require(actor, Role.OPERATOR, action, sites or [None])


def require_configuring_some(actor: Actor, action: str) -> None:
    """Raise NotPermitted unless the actor may configure at least one site."""
    if actor.is_system or (actor.user is not None and configurable_sites(actor.user).exists()):
        return
    require_role(actor, Role.OPERATOR, action)


def sites_of(row: Model) -> list[Site | None]:
    """The site that a row names, and the one that it names as it is stored, if it is."""
    sites = [row.site]  # type: ignore[attr-defined]
    stored = type(row)._default_manager.filter(pk=row.pk).select_related("site")
    if row.pk:
        sites += [old.site for old in stored]  # type: ignore[attr-defined]
    return sites


def refuse_reserved(actor: Actor, names: Collection[str]) -> None:
    """Raise NotPermitted when one who only administers a site changes what operators decide."""
    reserved = sorted(name.removesuffix("_id") for name in OPERATORS_FIELDS.intersection(names))
    if reserved:
        require_role(actor, Role.OPERATOR, f"change {', '.join(reserved)} of a queue")


def _require(actor: Actor, role: Role, action: str, sites: Iterable[Site | None]) -> None:
    user = actor.user
    if actor.is_system or (user is not None and has_role(user, role)):
        return
    for site in sites:
        if site is None or user is None:
            require_role(actor, role, action)
        elif not administers(user, site):
            raise NotPermitted(
                f"{actor.name} may not {action} at {site.name}: this needs the role {role.label}, "
                "or to be one of the site's administrators."
            )
