"""Every address of the portal for the roles: an address that nobody decided about fails here.

Who may do what is said in `tests/portal/permissions.py`, what is sent in `bodies.py`, and which
roles an address is tried with in `outcomes.tried_roles`.
"""

from __future__ import annotations

import pytest

from tests.portal.bodies import BODIES
from tests.portal.outcomes import (
    REFUSED,
    address,
    blank_pages,
    client_of,
    send,
    tried_roles,
    unlogged_refusals,
)
from tests.portal.permissions import DELETE, GET, POST, PUT, ROLES, rule_of
from tests.portal.routes import Route, routes
from tests.portal.world import World, small_world

# Wrong passwords are counted there: those of other tests would lock the roles out.
pytestmark = pytest.mark.usefixtures("own_cache", "blank_pages")

__all__ = ["blank_pages", "unlogged_refusals"]

_TABLES = {"GET": GET, "POST": POST, "PUT": PUT, "DELETE": DELETE}


@pytest.fixture(scope="module")
def world(module_rows: None) -> World:
    return small_world()


def test_somebody_decided_who_may_read_each_address() -> None:
    assert [route.name for route in routes() if rule_of(GET, route) is None] == []


@pytest.mark.parametrize(
    ("rule", "tried"),
    [
        ("ooooooo", {"anonymous"}),
        ("Loooooo", {"anonymous", "vera"}),
        ("Lffffoo", {"anonymous", "sam", "olga"}),
        ("Lnnonnn", {"anonymous", "bob", "alice", "ada"}),
    ],
)
def test_a_rule_is_tried_where_it_changes_and_with_each_role_in_turn(
    rule: str, tried: set[str]
) -> None:
    turns = [tried_roles(rule, turn) for turn in range(3 * len(ROLES))]

    assert all(tried <= set(roles) for roles in turns)
    assert set().union(*turns) == set(ROLES)


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize("method", _TABLES)
def test_every_request_is_let_in_for_whom_its_rule_names(
    world: World, db: None, method: str
) -> None:
    clients = {role: client_of(world, role) for role in ROLES}
    world.dag.__class__.objects.filter(pk=world.dag.pk).update(state="running")
    outcomes, expected = {}, {}

    for turn, route in enumerate(routes()):
        rule = rule_of(_TABLES[method], route) or ""
        for role in tried_roles(rule, turn) if rule else ():
            body = BODIES.get(route.name, dict)() if method in {"POST", "PUT"} else {}
            tried = route.name, role
            outcomes[tried] = send(clients[role], method, address(world, route), body)
            expected[tried] = rule[ROLES.index(role)]

    assert outcomes == expected


def _others(method: str) -> list[Route]:
    """Routes that take no such request. Django's administration and login act on POST only.

    What lets any method through, by a view that is a function, does so for one as for the other.
    """
    return [
        route
        for turn, route in enumerate(routes())
        if not (route.name.startswith("admin:") or route.name == "web:login")
        and not rule_of(_TABLES[method], route)
        and (method == "POST" or "api:" in route.name or method == ("PUT", "DELETE")[turn % 2])
    ]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_no_other_request_goes_through(world: World, db: None, method: str) -> None:
    client = client_of(world, "ada")

    let_in = {
        route.name: outcome
        for route in _others(method)
        if (outcome := send(client, method, address(world, route), {})) not in f"{REFUSED}b"
    }

    assert let_in == {}
