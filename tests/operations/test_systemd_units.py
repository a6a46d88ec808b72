"""Units of systemd run the programs that `manage.py up` starts, with their options."""

from __future__ import annotations

import configparser
import shlex
from pathlib import Path

import pytest

from portal.cli.listening import Listen
from portal.cli.supervision import portal_programs

FOLDER = Path(__file__).resolve().parents[2] / "docs/operations/systemd"
UNITS = sorted(FOLDER.glob("*.service"))
_BIN = "/opt/pilotage/portal/.venv/bin/"


class _Unit(configparser.RawConfigParser):
    """Names keep their capitals; of a repeated one the last counts."""

    def optionxform(self, optionstr: str) -> str:
        return optionstr


def _service(path: Path) -> configparser.SectionProxy:
    unit = _Unit(strict=False, comment_prefixes=("#",))
    unit.read_string(path.read_text(encoding="utf-8"))
    assert set(unit) == {"DEFAULT", "Unit", "Service", "Install"}
    assert unit["Unit"]["PartOf"] == unit["Install"]["WantedBy"] == "pilotage.target"
    return unit["Service"]


def _options_of(program: str) -> set[str]:
    [found] = [each for each in portal_programs(Listen("h", 1)) if each.name == program]
    return {word for word in found.command if word.startswith("--")}


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_a_unit_starts_its_program_as_up_does_and_is_let_end(path: Path) -> None:
    service = _service(path)
    words = shlex.split(service["ExecStart"].removeprefix(_BIN))
    kind = path.stem.removeprefix("pilotage-").replace("queue@", "engine")

    assert {word.split("=")[0] for word in words if word.startswith("--")} <= _options_of(kind)
    assert int(service["TimeoutStopSec"]) >= 30
    assert service["User"] == "pilotage"


def test_all_but_the_service_of_scripts_may_make_no_namespaces() -> None:
    free = {path.stem for path in UNITS if "RestrictNamespaces" not in _service(path)}

    assert free == {"pilotage-scripts"}
