"""Logical names: registered by transfers, resolved to replicas, removed, forgotten."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.utils import timezone

from tests import factories
from tests.factories import SYSTEM
from tests.wms.placement.conftest import last_attempt, placed
from wms.accounting.models import AccountingGroup, Frontend
from wms.core.actors import Actor
from wms.core.errors import InvalidInput, NotFound, NotPermitted, ReasonRequired
from wms.core.models import AuditEntry
from wms.jobs.content.blobs import store_bytes
from wms.jobs.operations import create_workspace
from wms.placement import operations, runner
from wms.placement.catalogue.models import LogicalFile, Replica
from wms.placement.catalogue.names import checked_name, url_of
from wms.placement.catalogue.services import forget_replica, remove_file
from wms.placement.models import PlacementRequest
from wms.placement.storages.services import StorageSpec, change_storage, create_storage
from wms.placement.submission import submit_requests
from wms.sites.models import Site

pytestmark = pytest.mark.django_db

NAME = "lfn:/run/7"


@pytest.fixture
def storages(pool: Path) -> Path:
    """Storages a, near no site, and b, near UW, in two folders."""
    factories.site("UW")
    for name, sites in (("a", []), ("b", ["UW"])):
        (pool / name).mkdir()
        create_storage(StorageSpec(name, [f"file://{pool}/{name}/"], sites), actor=SYSTEM)
    return pool


@pytest.fixture
def request_of(alice, people) -> Callable[..., PlacementRequest]:
    """Submit a request of somebody's DAG and carry out an attempt."""

    def make(
        text: str, *, owner=None, site: str = "", group: str = "", **files: bytes
    ) -> PlacementRequest:
        owner = owner or alice
        blobs = {name: store_bytes(data) for name, data in files.items()}
        [pk] = submit_requests(
            text, workspace=create_workspace(owner, blobs, owner_group=group),
            directory="", owner=owner,
            topic="dag-data", topic_key=7, actor=SYSTEM,
            site_id=Site.objects.get(name=site).pk if site else None,
        )  # fmt: skip
        runner.run_due()
        return PlacementRequest.objects.get(pk=pk)

    return make


@pytest.fixture
def people(db: None) -> SimpleNamespace:
    return factories.people()


@pytest.fixture
def alice(people: SimpleNamespace):
    return people.alice


def _to(storage: str, source: str = "file:x") -> str:
    return (
        f'[dap_type = "transfer"; src_url = "{source}"; dest_url = "{NAME}"; '
        f'dest_storage = "{storage}"]'
    )


def _from(name: str = NAME) -> str:
    return f'[dap_type = "transfer"; src_url = "{name}"; dest_url = "file:y"]'


def test_a_transfer_registers_its_logical_name_with_size_and_checksum(storages, request_of) -> None:
    done = request_of(_to("a"), x=b"data")

    file = LogicalFile.objects.get()
    assert (done.state, file.name, file.size_bytes) == ("completed", "/run/7", 4)
    assert file.sha256 == store_bytes(b"data").pk
    assert (storages / "a" / "run" / "7").read_bytes() == b"data"
    replica = Replica.objects.get()
    assert (replica.storage.name, replica.request_id) == ("a", done.pk)
    assert last_attempt(done).destination_url == f"file://{storages}/a/run/7"


def test_a_logical_name_is_read_from_the_replica_near_the_site(storages, request_of) -> None:
    request_of(_to("a"), x=b"data")
    request_of(_to("b", NAME))

    far, near = request_of(_from()), request_of(_from(), site="UW")

    assert placed(near, "y") == b"data"
    assert last_attempt(far).source_url == f"file://{storages}/a/run/7"
    assert last_attempt(near).source_url == f"file://{storages}/b/run/7"
    assert near.source_storage.name == "b"


def test_the_next_attempt_reads_another_replica(storages, request_of, again) -> None:
    request_of(_to("a"), x=b"data")
    request_of(_to("b", NAME))
    (storages / "a" / "run" / "7").unlink()

    first = request_of(_from())

    assert (first.state, first.source_storage.name) == ("rescheduled", "b")
    assert again(first).state == "completed"


def test_one_that_is_copied_by_its_name_is_read_from_another_replica_next(
    storages, request_of, again
) -> None:
    request_of(_to("a"), x=b"data")
    request_of(_to("b", NAME))
    create_storage(StorageSpec("c", [f"file://{storages}/c/"]), actor=SYSTEM)
    (storages / "c").mkdir()
    (storages / "a" / "run" / "7").unlink()

    first = request_of(_to("c", NAME))

    assert {each["destination_scheme"] for each in last_attempt(first).choice["ways"]} == {"file"}
    assert again(first).state == "completed"


def test_a_replica_that_is_not_what_was_registered_is_not_taken(storages, request_of) -> None:
    request_of(_to("a"), x=b"data")
    (storages / "a" / "run" / "7").write_bytes(b"atad")

    failed = request_of(_from())

    assert failed.state == "rescheduled"
    assert "SHA-256" in failed.state_reason


def test_replicas_at_a_storage_that_is_off_are_not_read(storages, request_of) -> None:
    request_of(_to("a"), x=b"data")
    off = StorageSpec("a", [f"file://{storages}/a/"], is_enabled=False)
    change_storage("a", off, actor=SYSTEM)

    failed = request_of(_from())

    assert failed.state == "rescheduled"
    assert "no replica" in failed.state_reason


def test_a_name_stands_for_one_content(storages, request_of) -> None:
    request_of(_to("a"), x=b"data")

    refused = request_of(_to("b"), x=b"other")

    assert refused.state == "rescheduled"
    assert not (storages / "b" / "run" / "7").exists()
    assert Replica.objects.count() == 1


def test_two_do_not_place_one_name_at_once(storages, request_of, alice) -> None:
    workspace = create_workspace(alice, {"x": store_bytes(b"data")})
    order = {"workspace": workspace, "directory": "", "owner": alice, "topic": "", "topic_key": 0}
    for storage in ("a", "b"):
        submit_requests(_to(storage), actor=SYSTEM, **order)

    first, second = (operations.take_request(timezone.now()) for _ in range(2))

    assert first is not None
    assert second is not None
    assert (first.resolved.refusal, bool(second.resolved.refusal)) == ("", True)


def test_what_exists_nowhere_is_tried_again(storages, request_of, again) -> None:
    early = request_of(_from())
    request_of(_to("a"), x=b"data")

    assert early.state == "rescheduled"
    assert again(early).state == "completed"


def test_a_file_is_removed_with_all_of_its_replicas(storages, request_of) -> None:
    request_of(_to("a"), x=b"data")
    request_of(_to("b", NAME))

    done = request_of(f'[dap_type = "remove"; src_url = "{NAME}"]')
    again = request_of(f'[dap_type = "remove"; src_url = "{NAME}"]')

    assert (done.state, again.state) == ("completed", "completed")
    assert [each.is_file() for each in storages.rglob("7")] == []
    assert not LogicalFile.objects.exists()


def test_one_replica_is_removed_and_the_name_stays(storages, request_of, people) -> None:
    request_of(_to("a"), x=b"data")
    request_of(_to("b", NAME))
    [file] = LogicalFile.objects.all()

    remove_file(file.pk, storage="a", actor=Actor.person(people.sam), reason="full")
    runner.run_due()

    assert [each.storage.name for each in Replica.objects.all()] == ["b"]
    assert not (storages / "a" / "run" / "7").exists()
    assert PlacementRequest.objects.latest("pk").owner == people.alice
    assert AuditEntry.objects.get(action="remove logical file").reason == "full"


def test_others_remove_nothing(storages, request_of, people) -> None:
    request_of(_to("a"), x=b"data")
    [file] = LogicalFile.objects.all()

    asked = request_of(f'[dap_type = "remove"; src_url = "{NAME}"]', owner=people.bob)

    assert asked.state == "rescheduled"
    assert (storages / "a" / "run" / "7").exists()
    for act in (remove_file, forget_replica):
        with pytest.raises(NotPermitted):
            act(file.pk, storage="a", actor=Actor.person(people.bob), reason="mine")
    with pytest.raises(ReasonRequired):
        forget_replica(file.pk, storage="a", actor=Actor.person(people.alice), reason=" ")


def test_a_lost_replica_is_forgotten_and_no_file_touched(storages, request_of, people) -> None:
    request_of(_to("a"), x=b"data")
    [file] = LogicalFile.objects.all()
    alice = Actor.person(people.alice)

    with pytest.raises(NotFound):
        forget_replica(file.pk, storage="b", actor=alice, reason="lost")
    forget_replica(file.pk, storage="a", actor=alice, reason="lost")

    assert (storages / "a" / "run" / "7").exists()
    assert not LogicalFile.objects.exists()


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (_to("nowhere"), "dest_storage"),
        (f'[dap_type = "transfer"; src_url = "file:x"; dest_url = "{NAME}"]', "dest_storage"),
        ('[dap_type = "transfer"; src_url = "lfn:x"; dest_url = "file:y"]', "src_url"),
        ('[dap_type = "transfer"; src_url = "lfn:/a/../b"; dest_url = "file:y"]', "src_url"),
        ('[dap_type = "transfer"; src_url = "lfn:/a/"; dest_url = "file:y"]', "src_url"),
        (
            f'[dap_type = "transfer"; src_url = "{NAME}"; dest_url = "file:y"; '
            'alt_protocols = "http-file"]',
            "alt_protocols",
        ),
        (
            '[dap_type = "transfer"; src_url = "file:x"; dest_url = "file:y"; dest_storage = "a"]',
            "dest_storage",
        ),
        (f'[dap_type = "remove"; src_url = "{NAME}"; src_storage = "no"]', "src_storage"),
    ],
)
def test_a_fault_is_told_with_its_attribute(storages, request_of, text: str, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        request_of(text)

    assert [each.field for each in caught.value.findings] == [field]
    assert not PlacementRequest.objects.exists()


def test_a_name_is_the_same_however_it_is_spelt() -> None:
    assert url_of(checked_name("lfn:/a%20b/%C3%A9")) == url_of(checked_name("lfn:/a b/é"))
    with pytest.raises(InvalidInput):
        checked_name("lfn:/" + "é" * 501)


def test_what_a_limited_token_has_submitted_reaches_its_frontends_names_alone(
    storages, request_of, people
) -> None:
    frontend = Frontend.objects.create(name="cms")
    AccountingGroup.objects.create(name="top", frontend=frontend).members.add(people.alice)
    AccountingGroup.objects.create(name="plain").members.add(people.alice)
    request_of(_to("a"), x=b"data")
    limited = people.alice.within(frontend.pk)
    requests = (_from(), f'[dap_type = "remove"; src_url = "{NAME}"]', _to("b"))

    refused = [request_of(text, owner=limited, group="top", x=b"data") for text in requests]
    LogicalFile.objects.update(owner_group="top")
    read = request_of(_from(), owner=limited, group="top")
    gone = request_of(_from(), owner=people.alice.within(frontend.pk + 1), group="top")

    assert [last_attempt(each).exit_code != 0 for each in refused] == [True, False, True]
    assert Replica.objects.get().storage.name == "a"
    assert placed(read, "y") == b"data"
    assert last_attempt(gone).exit_code != 0
