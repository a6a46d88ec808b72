"""Storages are set up, changed and deleted; what waits is told where its files lie."""

from __future__ import annotations

import pytest

from tests import factories
from tests.factories import SYSTEM
from wms.core.actors import Actor
from wms.core.errors import Conflict, InvalidInput, NotFound, NotPermitted
from wms.core.models import AuditEntry
from wms.placement import services as by_people
from wms.placement.models import PlacementAllocation, PlacementRequest
from wms.placement.storages.endpoints import StorageMap, place_of
from wms.placement.storages.models import Storage
from wms.placement.storages.selectors import (
    storage_for_space,
    storages_near,
    words_for_space,
)
from wms.placement.storages.services import (
    StorageSpec,
    change_storage,
    create_storage,
    delete_storage,
)

pytestmark = pytest.mark.django_db

POOL = StorageSpec("pool", ["https://pool.example/data"], space_bytes=100)


def test_a_storage_is_made_with_its_sites_and_audited() -> None:
    factories.site("UW")

    create_storage(StorageSpec("pool", ["https://pool.example/data"], ["UW"]), actor=SYSTEM)

    made = Storage.objects.get()
    assert made.endpoints == "https://pool.example/data/"
    assert [site.name for site in made.sites.all()] == ["UW"]
    entry = AuditEntry.objects.get(action="create storage")
    assert (entry.target, entry.facts["sites"]) == ("storage pool", [[], ["UW"]])


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (StorageSpec("a b", ["https://x.example/"]), "name"),
        (StorageSpec("POOL", ["https://x.example/"]), "name"),
        (StorageSpec("x", []), "endpoints"),
        (StorageSpec("x", ["gopher://x.example/"]), "endpoints"),
        (StorageSpec("x", ["file:data/"]), "endpoints"),
        (StorageSpec("x", ["https://x.example/a?b=c"]), "endpoints"),
        (StorageSpec("x", ["https://u:p@x.example/"]), "endpoints"),
        (StorageSpec("x", ["https://x.example/a/../b/"]), "endpoints"),
        (StorageSpec("x", ["https://x.example/", "https://x.example:443/"]), "endpoints"),
        (StorageSpec("x", ["https://pool.example/data/"]), "endpoints"),
        (StorageSpec("x", ["https://x.example/"], ["nowhere"]), "sites"),
        (StorageSpec("x", ["https://x.example/"], space_bytes=0), "space_bytes"),
        (StorageSpec("x", ["https://x.example/"], max_transfers=0), "max_transfers"),
        *(
            (
                StorageSpec("x", ["https://x.example/"], transfer_requirements=text),
                "transfer_requirements",
            )
            for text in ('Owner = "a"', "1", "TARGET.Requirements", "true ||" + " true ||" * 400)
        ),
    ],
)
def test_a_fault_is_told_at_its_field_and_nothing_is_stored(spec: StorageSpec, field: str) -> None:
    create_storage(POOL, actor=SYSTEM)

    with pytest.raises(InvalidInput) as caught:
        create_storage(spec, actor=SYSTEM)

    assert {each.field for each in caught.value.findings} == {field}
    assert Storage.objects.count() == 1


def test_a_fault_of_requirements_is_told_with_its_place() -> None:
    text = 'Owner == "a"\r\n  && (SizeBytes <'

    with pytest.raises(InvalidInput) as caught:
        create_storage(
            StorageSpec("x", ["https://x.example/"], transfer_requirements=text), actor=SYSTEM
        )

    [finding] = caught.value.findings
    assert (finding.field, finding.line) == ("transfer_requirements", 2)
    assert finding.column


def test_only_operators_set_storages_up(people) -> None:
    with pytest.raises(NotPermitted):
        create_storage(POOL, actor=Actor.person(people.sam))
    create_storage(POOL, actor=Actor.person(people.olga))

    with pytest.raises(NotPermitted):
        change_storage("pool", POOL, actor=Actor.person(people.alice))
    with pytest.raises(NotPermitted):
        delete_storage("pool", actor=Actor.person(people.sam))


def test_a_storage_keeps_its_name_and_changes_as_a_whole() -> None:
    create_storage(POOL, actor=SYSTEM)

    with pytest.raises(InvalidInput):
        change_storage("pool", StorageSpec("other", POOL.endpoints), actor=SYSTEM)
    change_storage("pool", StorageSpec("pool", POOL.endpoints), actor=SYSTEM)

    assert Storage.objects.get().space_bytes is None
    with pytest.raises(NotFound):
        change_storage("none", POOL, actor=SYSTEM)


def test_one_of_which_space_is_allocated_is_not_deleted(people, days) -> None:
    create_storage(POOL, actor=SYSTEM)
    PlacementAllocation.objects.create(
        owner=people.alice, name="a", host="pool", storage=Storage.objects.get(), size_bytes=1,
        expires_at=days(1),
    )  # fmt: skip

    with pytest.raises(Conflict):
        delete_storage("pool", actor=SYSTEM)
    PlacementAllocation.objects.all().delete()
    delete_storage("pool", actor=SYSTEM)

    assert not Storage.objects.exists()


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://h.example/data/x", 1),
        ("https://H.example:443/data//x", 1),
        ("https://h.example/data/tape/x", 2),
        ("https://h.example/database/x", None),
        ("https://h.example/data/../x", None),
        ("https://h.example/data/%2e%2e/x", None),
        ("http://h.example/data/x", None),
        ("file:///pool/a%20b/x", 3),
        ("file:pool/x", None),
        ("gsiftp://h.example/data/x", None),
    ],
)
def test_an_address_lies_in_the_storage_with_the_innermost_endpoint(
    url: str, found: int | None
) -> None:
    where = StorageMap(
        [(1, "https://h.example/data/"), (2, "https://h.example/data/tape/"), (3, "file:///pool/")]
    )

    assert where.storage_of(url) == found


def test_a_place_is_the_same_however_it_is_spelt() -> None:
    assert place_of("s3://bucket/a/") == place_of("s3://BUCKET:443//a")


def test_waiting_requests_are_told_where_their_files_lie(people) -> None:
    text = '[dap_type = "transfer"; src_url = "https://a.example/x"; dest_url = "s3://b/y"]'
    by_people.submit_requests(text, actor=SYSTEM, owner=people.alice)

    create_storage(StorageSpec("a", ["https://a.example/"]), actor=SYSTEM)
    create_storage(StorageSpec("b", ["s3://b/"]), actor=SYSTEM)

    request = PlacementRequest.objects.get()
    assert (request.source_storage.name, request.destination_storage.name) == ("a", "b")
    change_storage("a", StorageSpec("a", ["https://elsewhere.example/"]), actor=SYSTEM)
    request.refresh_from_db()
    assert request.source_storage is None


def test_space_is_named_by_a_storage_or_by_a_host_of_only_one() -> None:
    create_storage(POOL, actor=SYSTEM)
    for name in ("one", "two"):
        spec = StorageSpec(name, [f"https://both.example/{name}/"], space_bytes=1)
        create_storage(spec, actor=SYSTEM)
    create_storage(StorageSpec("off", ["s3://off/"], space_bytes=1, is_enabled=False), actor=SYSTEM)

    assert words_for_space() == {"pool", "pool.example", "one", "two"}
    assert storage_for_space("pool.example").name == "pool"
    with pytest.raises(Conflict):
        storage_for_space("both.example")
    with pytest.raises(NotFound):
        storage_for_space("off")


def test_sites_know_the_storages_near_them_that_are_on() -> None:
    site = factories.site("UW")
    for name, is_enabled in (("b", True), ("a", True), ("off", False)):
        spec = StorageSpec(name, [f"s3://{name}/"], ["UW"], is_enabled=is_enabled)
        create_storage(spec, actor=SYSTEM)

    assert storages_near() == {site.pk: ["a", "b"]}
