"""Shift log by the command line and the Python API, against the portal itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from pilotage_client import AsyncClient, Client, NotPermitted

from tests import factories
from tests.client.conftest import URL, AwaitedPortal, Portal, Ran
from tests.client.test_python_api import driven
from wms.remarks.models import Remark

Command = Callable[..., Ran]


def test_notes_are_written_and_listed(pilotage: Command, people: SimpleNamespace) -> None:
    dag, sam = factories.dag(people.alice), people.sam
    factories.site("UW")

    codes = [
        pilotage("note", f"d{dag.pk}", "broken input", "--ticket", "https://t.org/1").code,
        pilotage("note", "s:UW", "it drains", user=sam).code,
        pilotage("note", "log", "a quiet night", "--key", "one", user=sam).code,
        pilotage("note", "log", "a quiet night", "--key", "one", user=sam).code,
    ]

    assert codes == [0] * 4
    listed = json.loads(pilotage("log", "--json", user=sam).out)
    assert [(row["ref"], row["text"], row["ticket"]) for row in listed] == [
        ("log", "a quiet night", ""), ("s:UW", "it drains", ""),
        (f"d{dag.pk}", "broken input", "https://t.org/1"),
    ]  # fmt: skip
    assert pilotage("log", "--since", "2026-01-01..2026-01-02", user=sam).out == ""
    mine = pilotage("log", "--filter", "author=me", "-af", "ref", "author")
    assert mine.lines == [f"d{dag.pk} alice"]


def test_what_is_refused_writes_nothing(pilotage: Command, people: SimpleNamespace) -> None:
    dag = factories.dag(people.alice)

    assert pilotage("note", "log", "mine").code == 4
    assert pilotage("note", f"d{dag.pk}", "x", "--ticket", "ftp://t.org").code == 1
    assert pilotage("note", "j1", "x").code == 2
    assert pilotage("note", "f999", "x", user=people.sam).code == 5
    assert not Remark.objects.exists()


def test_both_clients_write_and_read(
    client: Client, people: SimpleNamespace, portal: Portal
) -> None:
    dag = factories.dag(people.alice)

    async def work() -> list[str]:
        async with AsyncClient(URL, client.profile.token, transport=AwaitedPortal(portal)) as other:
            await other.note("dag", dag.pk, "later")
            return [each.text for each in await other.remarks(subject=f"dag:{dag.pk}")]

    noted = client.note("dag", dag.pk, "broken", ticket="https://t.org/1")

    assert (noted.author, noted.subject_name, noted.person) == ("alice", dag.name, "")
    assert noted.created_at is not None
    with pytest.raises(NotPermitted):
        client.write_log("mine")
    with pytest.raises(ValueError, match="kind"):
        client.note("job", 1, "x")
    assert driven(work()) == ["later", "broken"]
