"""Folder of programs that move files, and the fence behind which they run."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings as django_settings

from tests.wms.dags.scripts.conftest import first_uid
from wms.dags.scripts.trees import remove_tree


@pytest.fixture
def fenced(settings, tmp_path: Path, fence_programs: None) -> Iterator[Path]:
    """A folder that other accounts can enter, with slots and their fence; its parts are others'."""
    folder = Path(tempfile.mkdtemp(prefix="pilotage-modules-", dir="/var/tmp"))
    folder.chmod(0o711)
    values = {
        "DIR": str(folder / "slots"),
        "VAR": str(tmp_path),
        "FIRST_UID": first_uid(),
        "FENCES": ["bwrap", "account", "none"],
    }
    scripts = django_settings.PILOTAGE["SCRIPTS"] | values
    settings.PILOTAGE = settings.PILOTAGE | {"SCRIPTS": scripts}
    yield folder
    remove_tree(folder)


@pytest.fixture
def program(fenced: Path, configure: Callable[..., None], pool: Path) -> Callable[..., Path]:
    """Put a shell program into the folder of programs; its path."""
    folder = fenced / "modules"
    folder.mkdir()
    folder.chmod(0o755)
    configure(MODULES=str(folder))

    def make(name: str, text: str, *, mode: int = 0o755) -> Path:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        os.chmod(path, mode)
        return path

    return make
