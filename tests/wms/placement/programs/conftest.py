"""Folder of programs that move files, and the fence behind which they run."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest
from django.conf import settings as django_settings

from tests.wms.dags.scripts.conftest import first_uid
from wms.dags.scripts.transfer_programs import fenced_workplace
from wms.dags.scripts.trees import remove_tree
from wms.placement.modules.fenced import Program, ProgramEnd, ProgramLimits, register_workplaces


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


class ScriptedPlace:
    """Workplace without a fence, where a function of the test stands for every program."""

    def __init__(self, folder: Path, run: Callable[[Program, Path], ProgramEnd]) -> None:
        self.folder, self.root, self._run = folder, str(folder), run

    def open_file(self, name: str) -> BinaryIO:
        return (self.folder / name).open("rb")

    def run(
        self, program: Program, limits: ProgramLimits, *, heartbeat: Callable[[], None]
    ) -> ProgramEnd:
        heartbeat()
        return self._run(program, self.folder)


@pytest.fixture
def scripted(
    tmp_path: Path, configure: Callable[..., None], pool: Path
) -> Iterator[Callable[..., None]]:
    """Have a function stand for programs: those of `web:`, and a plugin for `keep:`."""
    folder = tmp_path / "modules"
    folder.mkdir()
    web = ("transfer.web-file", "transfer.file-web", "reserve.web", "release.web")
    for name in (*(f"stork.{each}" for each in web), "plugin"):
        (folder / name).write_text("")
        (folder / name).chmod(0o755)
    configure(MODULES=str(folder), PLUGINS=[str(folder / "plugin")])

    def use(run: Callable[[Program, Path], ProgramEnd]) -> None:
        @contextmanager
        def make(readable: Sequence[str], has_network: bool) -> Iterator[ScriptedPlace]:
            place = Path(tempfile.mkdtemp(dir=tmp_path))
            yield ScriptedPlace(place, run)

        register_workplaces(make)

    yield use
    register_workplaces(fenced_workplace)


def is_running(word: str) -> bool:
    """Whether a process has the word among its arguments."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word.encode() in path.read_bytes().split(b"\0"):
                return True
        except OSError:
            continue
    return False
