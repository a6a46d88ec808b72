"""Requests that leave their storage open have it chosen by their `Requirements` and `Rank`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.factories import SYSTEM
from wms.core.errors import InvalidInput
from wms.placement import runner, services
from wms.placement.catalogue.models import Replica
from wms.placement.models import PlacementRequest
from wms.placement.storages.choosing import Offer, choose
from wms.placement.storages.services import StorageSpec, create_storage

_OFFERS = [
    Offer(1, "far", {"Name": "far", "IsNear": False, "FreeBytes": 900, "Sites": ["b"]}),
    Offer(2, "near", {"Name": "near", "IsNear": True, "FreeBytes": 500, "Sites": ["a"]}),
    Offer(3, "tape", {"Name": "tape", "IsNear": False, "SuccessRate": 0.5, "Sites": []}),
]


@pytest.mark.parametrize(
    ("attributes", "chosen"),
    [
        ({"Rank": "FreeBytes"}, 1),
        ({"Requirements": "TARGET.FreeBytes >= MY.size", "size": "300"}, 2),
        ({"Requirements": "TARGET.FreeBytes >= MY.size", "size": "600"}, 1),
        ({"Requirements": 'member("b", Sites)'}, 1),
        ({"Requirements": "SuccessRate > 0.9"}, None),
        ({"Requirements": "SuccessRate >= 0.5", "Rank": "SuccessRate"}, 3),
    ],
)
def test_the_best_of_those_that_meet_the_requirements_is_chosen(attributes, chosen) -> None:
    found = choose(attributes, _OFFERS)

    assert found.storage_id == chosen
    assert all(each.name in found.why for each in _OFFERS)


@pytest.mark.parametrize(
    ("requirements", "attributes", "chosen", "told"),
    [
        ('Owner == "alice"', {}, 1, ""),
        ('true && Owner == "bob"', {"owner": '"bob"'}, None, 'own (Owner == "bob")'),
        ("TARGET.SizeBytes <= FreeBytes", {}, 1, ""),
        ("TARGET.SizeBytes < FreeBytes / 2", {}, None, "own (TARGET.SizeBytes < FreeBytes / 2)"),
        ("TARGET.Stream == 3 && true", {"stream": "2 + 1"}, 1, ""),
        ("TARGET.Stream == 3 && true", {}, None, "own (TARGET.Stream == 3)"),
        ("false", {"Requirements": "true && FreeBytes > 1000"}, None, "own (FreeBytes > 1000)"),
    ],
)
def test_the_storage_has_to_agree_and_its_clause_that_does_not_is_told(
    requirements, attributes, chosen, told
) -> None:
    ad = {"Name": "own", "IsNear": False, "FreeBytes": 1000}

    found = choose(
        {"Rank": "1", **attributes},
        [Offer(1, "own", ad, requirements)],
        {"Owner": "alice", "SizeBytes": 1000},
    )

    assert found.storage_id == chosen
    assert told in found.why


def test_a_request_cannot_claim_a_size_that_it_has_not() -> None:
    offer = Offer(1, "own", {"Name": "own", "IsNear": False}, "TARGET.SizeBytes < 10")

    assert choose({"SizeBytes": "5"}, [offer], {"SizeBytes": None}).storage_id is None


def _write(*, more: str) -> str:
    return f'[dap_type = "transfer"; src_url = "file://ROOT/x"; dest_url = "lfn:/run/7"; {more}]'


@pytest.mark.django_db
def test_the_file_goes_to_the_storage_that_was_chosen(alice, tmp_path: Path, settings) -> None:
    values = {"ROOTS": [str(tmp_path)]}
    settings.PILOTAGE = settings.PILOTAGE | {"PLACEMENT": settings.PILOTAGE["PLACEMENT"] | values}
    (tmp_path / "x").write_text("content")
    for name, size in (("a", 1000), ("b", 5000)):
        (tmp_path / name).mkdir()
        endpoint = f"file://{tmp_path}/{name}/"
        create_storage(StorageSpec(name, [endpoint], space_bytes=size), actor=SYSTEM)
    (tmp_path / "c").mkdir()
    most = StorageSpec(
        "c",
        [f"file://{tmp_path}/c/"],
        space_bytes=9000,
        transfer_requirements='TARGET.Owner != "alice"',
    )
    create_storage(most, actor=SYSTEM)

    def submit(more: str) -> list[int]:
        text = _write(more=more).replace("ROOT", str(tmp_path))
        return services.submit_requests(text, actor=SYSTEM, owner=alice).ids

    [first] = submit("Requirements = FreeBytes > 500; Rank = FreeBytes")
    runner.run_due()

    made = PlacementRequest.objects.get(pk=first)
    assert (made.state, made.destination_storage.name) == ("completed", "b")
    assert made.choice.startswith("b of a, b")
    assert Replica.objects.get().storage.name == "b"
    assert (tmp_path / "b" / "run" / "7").read_text() == "content"
    with pytest.raises(InvalidInput) as refused:
        submit("Requirements = FreeBytes > 9000")
    assert refused.value.findings[0].field == "Requirements"
    with pytest.raises(InvalidInput) as refused:
        submit('Rank = 1; dest_storage = "a"')
    assert refused.value.findings[0].field == "dest_storage"
