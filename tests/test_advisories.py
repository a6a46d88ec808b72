"""Locked packages are looked up in lists of advisories."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from datetime import date, timedelta
from pathlib import Path
from types import ModuleType

import pytest
from packaging.version import Version

from tests.ci_programs import load

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / ".ci" / "check_advisories.py"
#: The shipped list knows of it, and of more.
BAD, ITS_ADVISORY = "django==2.2.0", "CVE-2019-12308"


@pytest.fixture(scope="module")
def check() -> ModuleType:
    return load("check_advisories")


def _run(folder: Path, requirements: str, own: str = "", *more: str) -> tuple[int, str]:
    file, own_list = folder / "requirements.txt", folder / "own.toml"
    file.write_text(f"{requirements} \\\n    --hash=sha256:0\n    # via x\n")
    own_list.write_text(f"looked_at = 2026-11-01\n{own}")
    done = subprocess.run(
        [sys.executable, PROGRAM, "--own-list", own_list, *more, file],
        capture_output=True, text=True,
    )  # fmt: skip
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout


def test_what_is_locked_here_is_in_no_list() -> None:
    done = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert " 0 advisories" in done.stdout


def test_a_version_with_a_known_fault_is_found_with_its_advisory(tmp_path: Path) -> None:
    code, said = _run(tmp_path, BAD)

    assert code == 1
    assert f"django 2.2.0: {ITS_ADVISORY}" in said


def test_the_age_of_a_list_is_told_loudly(tmp_path: Path) -> None:
    _, said = _run(tmp_path, "nothing==1")

    assert "list of 2021-07-01" in said
    assert "WARNING: it knows of nothing that was found in these" in said


def test_an_exemption_holds_for_its_advisory_until_its_end(tmp_path: Path) -> None:
    def exempting(until: date) -> str:
        return (
            f'[[exempt]]\npackage = "django"\nid = "{ITS_ADVISORY}"\n'
            f'reason = "no page shows it"\nuntil = {until}\n'
        )

    today = date.today()  # noqa: DTZ011 - days are all that matters
    _, before = _run(tmp_path, BAD)
    _, valid = _run(tmp_path, BAD, exempting(today + timedelta(days=2)))
    _, ended = _run(tmp_path, BAD, exempting(today - timedelta(days=2)))

    assert ITS_ADVISORY not in valid
    assert valid.count("django 2.2.0") == before.count("django 2.2.0") - before.count(ITS_ADVISORY)
    assert ended == before


def test_a_dump_of_osv_is_looked_into_as_well(tmp_path: Path) -> None:
    entries = [
        _osv("OSV-1", "Some.Package", [{"introduced": "0"}, {"fixed": "1.5"}], aliases=["CVE-1"]),
        _osv("OSV-2", "some-package", [{"introduced": "0"}, {"fixed": "1.4"}]),
        _osv("OSV-3", "some_package", [{"introduced": "1.0"}, {"last_affected": "1.4"}]),
        _osv("OSV-4", "some-package", [{"introduced": "1.4.1"}]),
        _osv("OSV-5", "some-package", [{"introduced": "0"}], withdrawn="2026-01-01T00:00:00Z"),
        _osv("OSV-6", "another", [{"introduced": "0"}]),
        _osv("OSV-7", "some-package", [{"introduced": "2"}], versions=["1.4.0", "no version"]),
    ]
    dump = tmp_path / "all.zip"
    with zipfile.ZipFile(dump, "w") as stream:
        for entry in entries:
            stream.writestr(f"{entry['id']}.json", json.dumps(entry))

    code, said = _run(tmp_path, "some-package==1.4", "", "--osv", str(dump))

    assert code == 1
    found = [line.split(": ")[1] for line in said.splitlines() if "some-package 1.4:" in line]
    assert found == ["CVE-1", "OSV-3", "OSV-7"]
    assert "list of 2026-10-30" in said


def _osv(known_as: str, name: str, events: list[dict[str, str]], **more: object) -> dict:
    versions = more.pop("versions", [])
    package = {"ecosystem": "PyPI", "name": name}
    ranges = [{"type": "ECOSYSTEM", "events": events}]
    affected = [{"package": package, "ranges": ranges, "versions": versions}]
    return {"id": known_as, "modified": "2026-10-30T12:00:00Z", "affected": affected, **more}


def test_a_server_inside_of_a_package_is_judged_by_its_own_version(check: ModuleType) -> None:
    faults = [
        {"server": "valkey", "id": "CVE-1", "mended_in": "9.1.2", "about": "one"},
        {"server": "valkey", "id": "CVE-2", "mended_in": "9.1.3", "about": "two"},
    ]

    hits = check.of_own_list({"valkey": Version("9.1.2")}, faults)

    assert [hit.advisory for hit in hits] == ["CVE-2"]


def test_the_servers_tell_their_versions(check: ModuleType) -> None:
    found = check.servers()

    assert set(found) == {"postgresql", "valkey"}
    assert found["postgresql"].major == 18


def test_an_unreadable_condition_covers_every_version(check: ModuleType) -> None:
    assert check._covers("<=0.9-beta?", Version("3"))
    assert not check._covers("<1", Version("3"))
