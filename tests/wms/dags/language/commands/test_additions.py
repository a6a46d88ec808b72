"""Additions to the language of DAGMan: each is noted with its line, and is in the reference."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.wms.dags.language.parsing import well_read

_NODES = "JOB A a\nJOB B b\nPARENT A CHILD B\nCATEGORY A c\n"
_PAGE = Path(__file__).parents[5] / "docs/reference/dag-files.md"
#: A line with each addition, by the name that the reference has for it.
_LINES = {
    "WHEN": "PARENT A CHILD B WHEN (ExitCode == 0)",
    "JOIN": "JOIN B ANY",
    "REPEAT": "REPEAT A WHILE (Pass < 3) MAX 5",
    "EXPAND": "EXPAND A more.dag",
    "GATE": "GATE g",
    "SUCCESS WHEN": "SUCCESS WHEN (Done > 1)",
    "TOLERANCE CATEGORY": "TOLERANCE CATEGORY c 1",
    "TIMEOUT": "TIMEOUT A RUN 5",
    "ALWAYS-RUN-POST": "ALWAYS-RUN-POST A",
    "AVOID-SITES": "RETRY A 2 AVOID-SITES",
    "WITH": "RETRY A 2 WITH request_memory*=2",
}
_SETTINGS = ("PILOTAGE_TIMEOUT_QUEUE", "PILOTAGE_TIMEOUT_RUN")


@pytest.mark.parametrize("line", _LINES.values(), ids=_LINES)
def test_each_addition_is_noted_with_its_line(line: str) -> None:
    [told] = well_read(f"{_NODES}{line}\n").additions

    assert (told.file, told.line, told.command) == ("case.dag", 5, line.split()[0])


@pytest.mark.parametrize("name", _SETTINGS)
def test_settings_that_dagman_does_not_have_are_noted(name: str) -> None:
    files = {"my.config": f"DAGMAN_MAX_JOBS_IDLE = 5\n{name.lower()} = 60\n"}

    [told] = well_read(f"{_NODES}CONFIG my.config\n", files).additions

    assert (told.file, told.line, told.command) == ("my.config", 2, "CONFIG")


def test_what_dagman_knows_is_not_noted() -> None:
    assert well_read(f"{_NODES}RETRY A 2\nTOLERANCE A 1\n").additions == []


def test_the_reference_lists_each_addition() -> None:
    section = _PAGE.read_text("utf-8").split("\n## Additions\n")[1].split("\n## ")[0]
    names = {
        name
        for line in section.splitlines()
        if line.startswith("| `")
        for name in re.findall("`([^`]+)`", line.split("|")[1])
    }

    assert names == {*_LINES, *_SETTINGS}
