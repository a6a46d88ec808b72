"""Sites as YAML from a shell."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests import factories
from wms.core.models import AuditEntry
from wms.sites.models import Site

pytestmark = pytest.mark.django_db


@pytest.fixture
def file(tmp_path: Path, capsys) -> Path:
    """What was exported of one site."""
    factories.people()
    factories.site("UW")
    factories.site("Florida")
    call_command("export_sites", "UW")
    path = tmp_path / "sites.yaml"
    path.write_text(capsys.readouterr().out)
    return path


def test_a_file_is_shown_first_and_stored_when_it_is_said(file: Path, capsys) -> None:
    file.write_text(file.read_text().replace("max_matches: 100", "max_matches: 5"))

    call_command("import_sites", str(file), "--user", "olga")
    shown, before = capsys.readouterr().out, Site.objects.get(name="UW").max_matches
    call_command("import_sites", str(file), "--user", "olga", "--store", "--reason", "less disks")

    assert "    max_matches: 100 -> 5\n" in shown
    assert before == 100
    assert Site.objects.get(name="UW").max_matches == 5
    assert AuditEntry.objects.get(action="import sites").reason == "less disks"


def test_what_is_refused_is_told_with_its_line(file: Path, capsys) -> None:
    file.write_text(file.read_text().replace("max_matches: 100", "max_matches: -5"))

    with pytest.raises(SystemExit) as caught:
        call_command("import_sites", str(file), "--user", "olga", "--store")

    assert caught.value.code == 1
    assert "refused: site UW" in capsys.readouterr().out
    assert Site.objects.get(name="UW").max_matches == 100


@pytest.mark.parametrize(
    ("user", "text", "words"),
    [
        ("nobody", None, "There is no user nobody"),
        ("alice", None, "alice may not import sites"),
        ("olga", "sites: [", "did not find expected node"),
        ("olga", "format: pilotage-sites\nversion: 1\nsites:\n- colour: red", ":4: a site has no"),
    ],
)
def test_what_cannot_be_done_is_told(file: Path, user: str, text: str | None, words: str) -> None:
    if text is not None:
        file.write_text(text)

    with pytest.raises(CommandError, match=words):
        call_command("import_sites", str(file), "--user", user)


def test_a_file_that_is_not_there_is_told(file: Path) -> None:
    with pytest.raises(CommandError, match="No such file"):
        call_command("import_sites", f"{file}.old", "--user", "olga")
