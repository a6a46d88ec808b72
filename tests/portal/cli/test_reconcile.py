"""The command that notes a return of the database, and accounts for it."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command

from wms.core.models import AuditEntry
from wms.core.restoration_models import Restoration
from wms.recovery import returning

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _own_files(settings: LazySettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing takes ids back that are passed over.
    monkeypatch.setattr(returning, "IDS_OF_A_DAY", 1)
    settings.PILOTAGE = settings.PILOTAGE | {"BLOBS_DIR": str(tmp_path / "blobs")}


def _run(*words: str) -> str:
    out = StringIO()
    call_command("reconcile", *words, stdout=out)
    return out.getvalue()


def test_a_return_is_noted_with_a_reason_once_and_told_as_json() -> None:
    before = json.loads(_run("--json"))
    back_to = ("--back-to", "2026-01-31T02:00:00Z")
    for wrong in (
        back_to,
        ("--back-to", "yesterday"),
        ("--back-to", "2999-01-01", "--reason", "x"),
    ):
        with pytest.raises(CommandError):
            _run(*wrong)
    assert not Restoration.objects.exists()

    _run(*back_to, "--reason", "restored by another tool")
    after = json.loads(_run(*back_to, "--reason", "once more", "--json"))

    assert (before["back_to"], before["doubts"]) == (None, None)
    assert after["back_to"] == "2026-01-31T02:00:00+00:00"
    assert after["origin"] == "restored by another tool"
    assert after["doubts"]["waiting"] == {"count": 0, "ids": []}
    assert AuditEntry.objects.get(action="go back in time").reason == "restored by another tool"
    assert "2026-01-31 02:00:00" in _run()
