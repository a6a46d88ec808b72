"""Every address of the portal for every role: an address that nobody decided about fails here.

Who may do what is said in `tests/portal/permissions.py`, what is sent in `bodies.py`.
"""

from __future__ import annotations

import pytest

from tests.portal.bodies import BODIES
from tests.portal.outcomes import address, blank_pages, client_of, send
from tests.portal.permissions import DELETE, GET, POST, PUT, ROLES, rule_of
from tests.portal.routes import Route, routes
from tests.portal.world import World, small_world

# Wrong passwords are counted there: those of other tests would lock the roles out.
pytestmark = pytest.mark.usefixtures("own_cache", "blank_pages")

__all__ = ["blank_pages"]


@pytest.fixture(scope="module")
def world(module_rows: None) -> World:
    return small_world()


@pytest.mark.parametrize("route", routes(), ids=lambda route: route.name)
def test_somebody_decided_who_may_read_each_address(route: Route) -> None:
    assert rule_of(GET, route) is not None


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_every_address_lets_in_who_may_read_it(world: World, db: None, role: str) -> None:
    place = ROLES.index(role)
    client = client_of(world, role)

    outcomes = {route.name: send(client, "GET", address(world, route), {}) for route in routes()}

    expected = {route.name: (rule_of(GET, route) or "?" * len(ROLES))[place] for route in routes()}
    assert outcomes == expected


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_every_change_is_made_by_who_may_make_it(world: World, db: None, role: str) -> None:
    place, client = ROLES.index(role), client_of(world, role)
    changing = [route for route in routes() if rule_of(POST, route)]
    world.dag.__class__.objects.filter(pk=world.dag.pk).update(state="running")
    outcomes = {}

    for route in changing:
        body = BODIES.get(route.name, dict)()
        outcomes[route.name] = send(client, "POST", address(world, route), body)

    assert outcomes == {route.name: (rule_of(POST, route) or "")[place] for route in changing}


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_everything_is_deleted_by_who_may_delete_it(world: World, db: None, role: str) -> None:
    client = client_of(world, role)

    outcomes = {
        route.name: send(client, "DELETE", address(world, route), {})
        for route in routes()
        if route.name in DELETE
    }

    assert outcomes == {name: rule[ROLES.index(role)] for name, rule in DELETE.items()}


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_everything_is_put_by_who_may_put_it(world: World, db: None, role: str) -> None:
    client = client_of(world, role)

    outcomes = {
        route.name: send(client, "PUT", address(world, route), BODIES[route.name]())
        for route in routes()
        if route.name in PUT
    }

    assert outcomes == {name: rule[ROLES.index(role)] for name, rule in PUT.items()}


@pytest.mark.slow
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
@pytest.mark.parametrize("role", ["anonymous", "ada"])
def test_no_other_request_goes_through(world: World, db: None, role: str, method: str) -> None:
    """Django's administration and login show their page for any method but act on POST only."""
    client = client_of(world, role)
    others = [
        route
        for route in routes()
        if not (route.name.startswith("admin:") or route.name == "web:login")
        and not (method == "POST" and rule_of(POST, route))
        and not (method == "DELETE" and route.name in DELETE)
        and not (method == "PUT" and route.name in PUT)
    ]

    let_in = {
        route.name: outcome
        for route in others
        if (outcome := send(client, method, address(world, route), {})) not in "Lfmnb"
    }

    assert let_in == {}
