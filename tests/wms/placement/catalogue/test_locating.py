"""Input data tie jobs to sites near replicas of all of them, by the rules of the catalogue."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests import factories
from tests.factories import SYSTEM
from tests.wms.placement.replicas import bring_near, replica, storage
from wms.accounting.models import AccountingGroup
from wms.accounting.services import save_group
from wms.jobs.input_data.wanted import Located, Wanted, locate
from wms.sites.frontends.models import Frontend

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice(people: SimpleNamespace):
    return people.alice


@pytest.fixture
def people(db: None) -> SimpleNamespace:
    """People, sites UW, CERN and FNAL, and storages near each, near UW and CERN, and near none."""
    for name in ("UW", "CERN", "FNAL"):
        factories.site(name)
        storage(f"se-{name.lower()}", name)
    storage("se-both", "UW", "CERN")
    storage("se-central")
    return factories.people()


def located(*names: str, owner: str = "alice", **how: object) -> Located:
    [found] = locate([Wanted(owner, names, **how)])  # type: ignore[arg-type]
    return found


def test_a_file_ties_to_the_sites_near_any_of_its_replicas(alice) -> None:
    replica(alice, "/x", "se-uw")
    replica(alice, "/x", "se-fnal")

    found = located("/x")

    assert (found.sites, found.cause) == (("FNAL", "UW"), "near")
    for word in ("lfn:/x", "se-uw", "UW", "se-fnal"):
        assert word in found.told


def test_several_files_tie_to_the_sites_near_all_of_them(alice) -> None:
    replica(alice, "/x", "se-both")
    replica(alice, "/y", "se-uw")

    assert located("/x", "/y").sites == ("UW",)


def test_files_that_are_nowhere_together_tie_to_no_site_with_the_reason(alice) -> None:
    replica(alice, "/x", "se-uw")
    replica(alice, "/y", "se-fnal")

    found = located("/x", "/y")

    assert (found.sites, found.cause) == ((), "apart")
    assert "lfn:/x is at se-uw (near UW)" in found.told
    assert "lfn:/y is at se-fnal (near FNAL)" in found.told


@pytest.mark.parametrize("is_anywhere", [False, True])
def test_a_file_without_a_replica_is_waited_for_however_it_may_be_reached(
    alice, is_anywhere: bool
) -> None:
    replica(alice, "/x", "se-uw")

    found = located("/x", "/gone", is_anywhere=is_anywhere)

    assert (found.sites, found.cause) == ((), "missing")
    assert "lfn:/gone" in found.told


def test_a_file_that_something_may_yet_make_ties_to_nothing(alice) -> None:
    assert located("/x", waits=False).sites is None


def test_a_file_that_will_be_at_a_storage_ties_to_the_sites_near_that(alice) -> None:
    found = located("/x", waits=False, expected=(("/x", "se-uw"), ("/x", "unknown")))

    assert found.sites == ("UW",)


def test_a_file_at_storages_near_no_site_ties_to_none(alice) -> None:
    replica(alice, "/x", "se-central")
    replica(alice, "/y", "se-uw")

    assert located("/x").sites is None
    assert located("/x", "/y").sites == ("UW",)


def test_a_storage_that_is_off_has_no_replica(alice) -> None:
    replica(alice, "/x", "se-uw")
    bring_near("se-uw", "UW", is_enabled=False)

    assert located("/x").cause == "missing"


def test_what_may_come_from_afar_is_near_sites_in_tenths_of_its_bytes(alice) -> None:
    replica(alice, "/large", "se-uw", size_bytes=750)
    replica(alice, "/small", "se-both", size_bytes=249)
    replica(alice, "/central", "se-central", size_bytes=1)

    found = located("/large", "/small", "/central", is_anywhere=True)

    assert (found.sites, dict(found.tenths)) == (None, {"CERN": 2, "UW": 9})


def test_a_file_behind_a_wall_is_nowhere(people) -> None:
    for name, members in (("cms", [people.alice]), ("atlas", [people.bob])):
        group = AccountingGroup(name=name)
        save_group(group, actor=SYSTEM, members=members)
        Frontend.objects.create(name=name).groups.add(group)
    replica(people.bob, "/x", "se-uw", group="atlas")

    assert located("/x", owner="alice").cause == "missing"
    assert located("/x", owner="bob").sites == ("UW",)
    assert located("/x", owner="sam").sites == ("UW",)


def test_many_wants_cost_as_many_queries_as_one(alice, django_assert_max_num_queries) -> None:
    for number in range(20):
        replica(alice, f"/{number}", "se-uw")
    wanted = [Wanted("alice", (f"/{number}", "/0")) for number in range(20)]

    with django_assert_max_num_queries(4):
        found = locate(wanted)

    assert {each.sites for each in found} == {("UW",)}


def test_who_is_limited_to_a_frontend_is_told_where_its_files_are_alone(people, alice) -> None:
    frontend = Frontend.objects.create(name="cms")
    AccountingGroup.objects.create(name="top", frontend=frontend).members.add(alice)
    replica(alice, "/own", "se-uw")
    replica(alice, "/theirs", "se-uw", group="top")

    free, limited, theirs = locate(
        [
            Wanted("alice", ("/own",)),
            Wanted("alice", ("/own",), limited_to=frontend.pk),
            Wanted("alice", ("/theirs",), limited_to=frontend.pk),
        ]
    )

    assert [free.sites, limited.sites, theirs.sites] == [("UW",), (), ("UW",)]
    assert (limited.cause, "se-uw" in limited.told) == ("missing", False)
