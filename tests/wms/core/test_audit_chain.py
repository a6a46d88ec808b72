"""The audit trail: what changes it is refused by the database, and what got past that is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction

from tests.audit_trail import unguarded
from wms.core import loops
from wms.core.actors import Actor
from wms.core.audit import record_action, record_actions
from wms.core.audit_chain import checking
from wms.core.audit_chain.checking import Chain, FaultKind, check_chain
from wms.core.audit_chain.sealing import seal_batch
from wms.core.models import AuditEntry, AuditSeal, UnsealedEntry
from wms.core.tasks import CHECKER, SEALER

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
OLGA = Actor("olga")

pytestmark = pytest.mark.django_db


@pytest.fixture
def trail() -> list[int]:
    """Ten entries in three seals."""
    record_actions(
        "ban site", targets=[f"site S{n}" for n in range(10)], actor=OLGA, reason="ü\n",
        facts={"load": [0.1, 1e300], "of": None},
    )  # fmt: skip
    while seal_batch(NOW, size=4):
        pass
    return list(AuditEntry.objects.order_by("pk").values_list("pk", flat=True))


def _fault(**how: Any) -> tuple[FaultKind, int | None, int | None] | None:
    found = check_chain(**how).fault
    return None if found is None else (found.kind, found.entry, found.seal)


@pytest.mark.parametrize("table", ["core_auditentry", "core_auditseal"])
@pytest.mark.parametrize("statement", ["UPDATE {} SET id = id", "DELETE FROM {}", "TRUNCATE {}"])
def test_the_database_refuses_what_changes_the_trail(
    trail: list[int], table: str, statement: str
) -> None:
    column = "number" if table == "core_auditseal" else "id"
    with (
        pytest.raises(IntegrityError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement.format(table).replace("id = id", f"{column} = {column}"))

    assert _fault() is None
    assert AuditEntry.objects.count() == 10


def test_each_entry_is_sealed_once_in_batches(trail: list[int]) -> None:
    seals = list(AuditSeal.objects.order_by("number"))

    assert [seal.number for seal in seals] == [1, 2, 3]
    assert [pk for seal in seals for pk in seal.entry_ids] == trail
    assert not UnsealedEntry.objects.exists()
    assert check_chain() == Chain(3, 10, 0, 3, seals[-1].sha256)


def test_what_awaits_its_seal_is_no_fault(trail: list[int]) -> None:
    record_action("ban site", target="site late", actor=OLGA)
    found = check_chain()

    assert (found.fault, found.waiting, found.entries) == (None, 1, 10)


def test_an_entry_of_an_earlier_id_that_is_committed_later_is_sealed_later(
    trail: list[int],
) -> None:
    entry = {"actor": "olga", "action": "a", "target": "site A"}
    AuditEntry.objects.create(pk=trail[-1] + 5, **entry)
    seal_batch(NOW)
    AuditEntry.objects.create(pk=trail[-1] + 3, **entry)
    seal_batch(NOW)

    assert _fault() is None
    assert check_chain().entries == 12


def _change_entry(trail: list[int]) -> None:
    AuditEntry.objects.filter(pk=trail[5]).update(reason="nothing")


def _change_number(trail: list[int]) -> None:
    AuditEntry.objects.filter(pk=trail[5]).update(facts={"load": [0.2, 1e300], "of": None})


def _remove_entry(trail: list[int]) -> None:
    AuditEntry.objects.filter(pk=trail[5]).delete()


def _change_seal(trail: list[int]) -> None:
    AuditSeal.objects.filter(number=2).update(sealed_at=datetime(2020, 1, 1, tzinfo=UTC))


def _remove_seal(trail: list[int]) -> None:
    AuditSeal.objects.filter(number=2).delete()


def _cut_seal(trail: list[int]) -> None:
    AuditSeal.objects.filter(number=2).update(entry_ids=trail[4:6])


def _slip_in(trail: list[int]) -> None:
    AuditEntry.objects.create(pk=trail[-1] + 1, actor="olga", action="a", target="site A")


@pytest.mark.parametrize(
    ("change", "kind", "entry", "seal"),
    [
        (_change_entry, FaultKind.ENTRY_CHANGED, 5, 2),
        (_change_number, FaultKind.ENTRY_CHANGED, 5, 2),
        (_remove_entry, FaultKind.ENTRY_MISSING, 5, 2),
        (_change_seal, FaultKind.SEAL_CHANGED, None, 2),
        (_cut_seal, FaultKind.SEAL_CHANGED, None, 2),
        (_remove_seal, FaultKind.SEAL_MISSING, None, 2),
        (_slip_in, FaultKind.ENTRY_UNSEALED, 10, None),
    ],
)
def test_what_got_past_the_database_is_found_where_it_is(
    trail: list[int],
    change: Callable[[list[int]], None],
    kind: FaultKind,
    entry: int | None,
    seal: int | None,
) -> None:
    with unguarded():
        change(trail)
    expected = None if entry is None else [*trail, trail[-1] + 1][entry]

    assert _fault() == (kind, expected, seal)


def test_a_chain_that_was_made_anew_is_found_by_a_seal_that_was_noted(trail: list[int]) -> None:
    noted = {2: AuditSeal.objects.get(number=2).sha256}
    with unguarded():
        _change_entry(trail)
        AuditSeal.objects.all().delete()
        UnsealedEntry.objects.bulk_create(UnsealedEntry(entry_id=pk) for pk in trail)
    while seal_batch(NOW, size=4):
        pass

    assert _fault() is None
    assert _fault(expected=noted) == (FaultKind.SEAL_UNEXPECTED, None, 2)


def test_an_end_that_was_cut_off_is_found_by_a_seal_that_was_noted(trail: list[int]) -> None:
    noted = {3: AuditSeal.objects.get(number=3).sha256}
    with unguarded():
        AuditSeal.objects.filter(number=3).delete()
        AuditEntry.objects.filter(pk__in=trail[8:]).delete()

    assert _fault() is None
    assert _fault(expected=noted) == (FaultKind.SEAL_MISSING, None, 3)


def test_an_entry_that_vanished_before_its_seal_is_told_and_stops_no_sealing() -> None:
    record_actions("ban site", targets=["site A", "site B"], actor=OLGA)
    first, second = AuditEntry.objects.order_by("pk")
    with unguarded():
        AuditEntry.objects.filter(pk=first.pk).delete()
    sealed = seal_batch(NOW)

    assert sealed == 2
    assert _fault() == (FaultKind.ENTRY_MISSING, first.pk, 1)
    assert second.pk in AuditSeal.objects.get().entry_ids


def test_the_loops_seal_and_go_through_the_chain_in_parts(
    trail: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "_CYCLE_S", 0.0)
    record_action("ban site", target="site late", actor=OLGA)
    loops.run(SEALER)
    seen = []
    for _ in range(5):
        loops.run(CHECKER)
        seen.append(loops.last_report(CHECKER.name)["checked_to"])

    assert loops.last_report(SEALER.name) == {"sealed": 1}
    assert seen == [1, 2, 3, 4, 0]


def test_a_loop_that_finds_a_fault_fails_until_it_is_gone(trail: list[int]) -> None:
    loops.run(CHECKER)
    with unguarded():
        AuditSeal.objects.filter(number=3).delete()
        AuditEntry.objects.filter(pk__in=trail[8:]).delete()

    for _ in range(2):
        with pytest.raises(checking.ChainBroken) as raised:
            loops.run(CHECKER)
        assert raised.value.fault.kind == FaultKind.SEAL_MISSING


def _run(*words: str) -> tuple[int, str]:
    told = StringIO()
    try:
        call_command("audit_check", *words, stdout=told)
    except CommandError as error:
        return error.returncode, str(error)
    return 0, told.getvalue()


def test_the_command_tells_the_last_seal_to_be_noted_and_takes_it_again(trail: list[int]) -> None:
    code, told = _run()
    noted = told.split()[-1]

    assert code == 0
    assert noted == f"3:{AuditSeal.objects.get(number=3).sha256}"
    assert _run("--expect", noted)[0] == 0
    assert _run("--expect", f"2:{noted[2:]}")[0] == 1
    assert _run("--expect", "2:short")[0] != 0


def test_the_command_tells_the_first_fault(trail: list[int]) -> None:
    with unguarded():
        _change_entry(trail)
    told = StringIO()
    with pytest.raises(CommandError) as raised:
        call_command("audit_check", "--json", stdout=told)

    assert raised.value.returncode == 1
    assert json.loads(told.getvalue())["fault"]["entry"] == trail[5]
