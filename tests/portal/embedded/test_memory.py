from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from portal.embedded import memory

#: No process has it: the largest is one less.
NOBODY = 4_194_304


@pytest.fixture
def in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(memory, "_MEMORY", tmp_path)
    return tmp_path


def test_folders_of_makers_that_are_gone_are_removed(in_memory: Path) -> None:
    for name in (f"pilotage-{NOBODY}-a", f"pilotage-{os.getpid()}-b", "pilotage-other", "else"):
        (in_memory / name).mkdir()
    (in_memory / f"pilotage-{NOBODY}-a" / "file").touch()

    made = memory.short_lived_folder(room_bytes=1)

    left = {path.name for path in in_memory.iterdir()}
    assert left == {f"pilotage-{os.getpid()}-b", "pilotage-other", "else", made.name}


def test_a_folder_without_room_in_memory_is_among_the_temporary_files(
    in_memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = in_memory / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))

    made = memory.short_lived_folder(room_bytes=2**60)

    assert made.parent == elsewhere
