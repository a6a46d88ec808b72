"""Every address of the portal for two site administrators: of the site of the world, and another.

What is not listed here is for both as for Bob, another user. A new address needs a line in the
tables of `permissions`, and one here if it belongs to a site.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest

from tests import factories
from tests.portal import bodies, outcomes
from tests.portal import permissions as tables
from tests.portal.outcomes import blank_pages, unlogged_refusals
from tests.portal.routes import Route, routes
from tests.portal.world import World, small_world
from wms.sites.services import save_site

# Wrong passwords are counted there: those of other tests would lock the roles out.
pytestmark = pytest.mark.usefixtures("own_cache", "blank_pages")

__all__ = ["blank_pages", "unlogged_refusals"]

ROLES = ("tom", "tina")
_BOB = tables.ROLES.index("bob")

#: For Tom, who administers another site, and Tina, who administers the one of the world.
BOTH, OWN, NOBODY = "oo", "no", "ff"
OWN_OBJECT = {"change": OWN, "history": OWN}
#: Limits may be deleted; sites, queues and downtimes by nobody.
_KINDS = {
    "sites_site": {"add": NOBODY, "delete": NOBODY, **OWN_OBJECT},
    "sites_queue": {"add": NOBODY, "delete": NOBODY, **OWN_OBJECT},
    "sites_downtime": {"add": BOTH, "delete": NOBODY, **OWN_OBJECT},
    "jobs_runninglimit": {"add": BOTH, "delete": OWN, **OWN_OBJECT},
    "dags_sharedlimit": {"add": BOTH, "delete": OWN, **OWN_OBJECT},
    "pilots_pilotlimit": {"add": BOTH, "delete": OWN, **OWN_OBJECT},
}
_ADMIN = {
    f"admin:{kind}_{page}": rule
    for kind, pages in _KINDS.items()
    for page, rule in {"changelist": BOTH, **pages}.items()
}

GET = {
    **_ADMIN,
    "admin:sites_site_export": BOTH,
    "admin:sites_site_import": BOTH,
    "admin:index": BOTH,
    "admin:login": BOTH,
    "admin:logout": "mm",
    "admin:jsi18n": BOTH,
    "admin:password_change*": BOTH,
    "admin:app_list": "nn",  # of accounts
    "admin:view_on_site": "nn",
    "admin:<<*": BOTH,
    "admin:<(*": "nn",
    "api:sites-yaml": BOTH,
    "web:new-downtime": BOTH,
    "web:import-downtimes": BOTH,
}
POST = {
    **_ADMIN,
    "admin:sites_site_import": "bb",  # without a document
    "admin:logout": BOTH,
    "admin:password_change": BOTH,
    "api:sites-yaml": "bb",  # neither a dry run nor a token
    "api:site-ban": "fo",
    "api:site-drain": "fo",
    "api:site-commission": "fc",
    "api:site-unban": "fc",
    "api:site-note": "fo",
    "api:site-acknowledge": "fo",
    "api:site-assign": "fo",
    "api:site-hand-back": "fc",  # nobody looks after it
    "api:site-downtimes": "fo",
    "api:ads": "fo",
    "api:queue-test-pilots": "fo",
    "web:test-queue": "fo",
    "api:queue-connection-tests": "fo",
    "web:connect-queue": "fo",
    "api:pilot-drain": "fo",
    "api:pilot-remove": "fo",
    "web:drain-pilot": "fo",
    "web:remove-pilot": "fo",
    "web:steer-site": "fo",
    "api:downtimes": "fo",
    "web:new-downtime": "fo",
    "api:downtimes-import": "bb",  # neither a dry run nor a token
    "web:import-downtimes": "bb",  # without a document
    "web:change-downtime": "fo",
    "web:cancel-downtime": "fo",
    "web:clear-node": "fo",
    "api:suspected-node-clear": "fo",
}
DELETE = {
    "api:ad": "fo",
    "api:downtime": "fo",
    "api:running-limit": "fo",
    "api:shared-limit": "fo",
}
#: A limit that is put names no site in these requests: it would become one of all sites.
PUT = {"api:downtime": "fo"}


def _rule(own: dict[str, str], name: str) -> str:
    return next((rule for pattern, rule in own.items() if fnmatchcase(name, pattern)), "")


def _expected(own: dict[str, str], common: dict[str, str], route: Route, turn: int) -> str:
    """Outcomes for both roles, with a blank for one that the address is not tried with.

    What is as for Bob is tried with Tina where he is refused, for she may more than he, and in
    turns where he is let in.
    """
    if own_rule := _rule(own, route.name):
        return own_rule
    outcome = (tables.rule_of(common, route) or "?" * len(tables.ROLES))[_BOB]
    if outcome in outcomes.REFUSED:
        return f" {outcome}"
    return (f"{outcome} ", "  ", f" {outcome}", "  ")[turn % 4]


@pytest.fixture(scope="module")
def world(module_rows: None) -> World:
    """The small world, which Tina administers, and another site, which Tom does."""
    world = small_world()
    for site, name in ((world.site, "tina"), (factories.site("Elsewhere"), "tom")):
        administrator = getattr(world.people, name)
        save_site(site, actor=factories.SYSTEM, administrators=[administrator])
    world.dag.__class__.objects.filter(pk=world.dag.pk).update(state="running")
    return world


@pytest.mark.slow
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
def test_everything_is_open_at_the_own_site_and_nothing_at_another(
    world: World, db: None, method: str
) -> None:
    own = {"GET": GET, "POST": POST, "PUT": PUT, "DELETE": DELETE}[method]
    common = {
        "GET": tables.GET, "POST": tables.POST, "PUT": tables.PUT, "DELETE": tables.DELETE
    }[method]  # fmt: skip
    asked = [route for route in routes() if method == "GET" or tables.rule_of(common, route)]
    expected = {
        (route.name, role): outcome
        for turn, route in enumerate(asked)
        for role, outcome in zip(ROLES, _expected(own, common, route, turn), strict=True)
        if outcome != " "
    }

    clients, seen = {role: outcomes.client_of(world, role) for role in ROLES}, {}
    for route in asked:
        for role in ROLES:
            if (route.name, role) in expected:
                body = bodies.BODIES.get(route.name, dict)() if method in {"POST", "PUT"} else {}
                at = outcomes.address(world, route)
                seen[route.name, role] = outcomes.send(clients[role], method, at, body)

    assert seen == expected


def test_no_rule_of_an_own_site_is_without_its_address() -> None:
    names = [route.name for route in routes()]

    for rules in (GET, POST, PUT, DELETE):
        for rule in rules:
            assert any(fnmatchcase(name, rule) for name in names), rule
