"""The command that acts on many objects."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command

from tests import factories
from wms.bulk.models import BulkOperation


def _run(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    call_command("bulk", *words)
    return capsys.readouterr().out


def test_it_tells_first_and_does_it_with_the_number(
    db: None, capsys: pytest.CaptureFixture[str]
) -> None:
    alice = factories.person("alice")
    for number in range(2):
        factories.dag(alice, name=f"d{number}.dag")
    asked = ["dags", "hold", "owner=alice", "--user", "alice", "--reason", "disk full"]

    looked = _run(capsys, *asked)
    with pytest.raises(CommandError, match="3; 2 are left"):
        _run(capsys, *asked, "--confirm", "3")
    done = _run(capsys, *asked, "--confirm", "2")

    assert looked.splitlines()[:3] == ["hold: 2 DAGs", "  2 idle", "  2 of alice"]
    assert "--confirm 2" in looked
    operation = BulkOperation.objects.get(state="confirmed")
    assert f"Bulk operation {operation.pk} is confirmed." in done
    assert (operation.reason, operation.frozen_count) == ("disk full", 2)


def test_the_arguments_of_an_action_are_given_by_name(
    db: None, capsys: pytest.CaptureFixture[str]
) -> None:
    alice = factories.person("alice")
    factories.running_dag(alice)
    asked = ["dags", "rematch", "owner=alice", "--user", "alice", "--reason", "disk full"]

    _run(capsys, *asked, "--with", "avoid_min=90", "--with", "lets_finish=true", "--confirm", "1")

    operation = BulkOperation.objects.get()
    assert operation.arguments == {"avoid_min": 90, "lets_finish": True}


def test_words_are_given_with_commas(db: None, capsys: pytest.CaptureFixture[str]) -> None:
    alice = factories.person("alice")
    factories.dag(alice)
    asked = ["dags", "label", "owner=alice", "--user", "alice", "--reason", "sorted"]

    _run(capsys, *asked, "--with", "add=night,campaign=mc27", "--confirm", "1")

    assert BulkOperation.objects.get().arguments["add"] == ["night", "campaign=mc27"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["dags", "hold", "colour=red", "--user", "alice"], "is no filter of this list"),
        (["dags", "explode", "", "--user", "alice"], "One cannot 'explode' DAGs"),
        (["dags", "hold", "", "--user", "nobody"], "There is no user nobody"),
        (["dags", "hold", "", "--user", "vera"], "vera may not"),
        (["dags", "rematch", "", "--user", "ada", "--with", "avoid_min=soon"], "whole number"),
        (["dags", "rematch", "", "--user", "ada", "--with", "colour"], "is no argument of rematch"),
    ],
)
def test_what_is_refused_is_told(db: None, words: list[str], told: str) -> None:
    factories.people()

    with pytest.raises(CommandError, match=told):
        call_command("bulk", *words)
