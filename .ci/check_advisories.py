"""Look every locked package, and every server that comes inside of one, up in lists of advisories.

    .venv/bin/python .ci/check_advisories.py [--osv FILE.zip] [REQUIREMENTS...]

The lists: the one of the package `safety-db`, which needs no network; `advisories.toml` beside
this file, for servers inside of packages; and a dump of OSV (its `PyPI/all.zip`), where one is
given by --osv or PILOTAGE_OSV. The age of each is told. Exit code 1 on a hit that
`advisories.toml` does not exempt, with a reason and an end.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

BASE = Path(__file__).resolve().parent.parent
LISTS = [BASE / name for name in ("requirements-dev.txt", "requirements.txt", ".ci/pip.txt")]
OWN_LIST = Path(__file__).with_name("advisories.toml")
#: A list older than this is no news to anybody; it is said loudly.
OLD_DAYS = 60
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^\s;\\]+)", re.M)


@dataclass(frozen=True, slots=True)
class Hit:
    """An advisory that covers what is locked."""

    package: str
    version: str
    advisory: str
    about: str


def locked(files: Iterable[Path]) -> dict[str, Version]:
    """Name and version of all packages that the requirements files lock."""
    texts = (file.read_text(encoding="utf-8") for file in files)
    found = (match for text in texts for match in _PINNED.finditer(text))
    return {canonicalize_name(match[1]): Version(match[2]) for match in found}


def of_safety_db(packages: Mapping[str, Version]) -> tuple[list[Hit], date]:
    """What the shipped list says, and the day that it was made."""
    # Imported, the package looks for its files in the working directory.
    spec = importlib.util.find_spec("safety_db")
    if spec is None or spec.origin is None:
        raise SystemExit("the package safety-db is missing: make setup")
    text = Path(spec.origin).with_name("insecure_full.json").read_text(encoding="utf-8")
    advisories = json.loads(text)
    made = datetime.fromtimestamp(advisories.pop("$meta")["timestamp"], UTC).date()
    hits = []
    for name, entries in advisories.items():
        version = packages.get(canonicalize_name(name))
        for entry in entries if version else ():
            if any(_covers(spec, version) for spec in entry["specs"]):
                known_as = entry["cve"] or entry["id"]
                hits.append(Hit(name, str(version), known_as, entry["advisory"]))
    return hits, made


def _covers(spec: str, version: Version) -> bool:
    """An unreadable condition covers everything: better a hit too many, which can be exempted."""
    try:
        return SpecifierSet(spec).contains(version, prereleases=True)
    except InvalidSpecifier:
        return True


def of_osv(packages: Mapping[str, Version], file: Path) -> tuple[list[Hit], date]:
    """What a dump of OSV says, and the day of its newest entry."""
    hits, newest = [], ""
    with zipfile.ZipFile(file) as dump:
        for entry in (json.loads(dump.read(name)) for name in dump.namelist()):
            newest = max(newest, entry["modified"])
            if "withdrawn" in entry:
                continue
            known_as = next((n for n in entry.get("aliases", ()) if n[:4] == "CVE-"), entry["id"])
            for name, version in _affected(entry, packages):
                hits.append(Hit(name, str(version), known_as, entry.get("summary", entry["id"])))
    return hits, date.fromisoformat(newest[:10])


def _affected(
    entry: Mapping[str, Any], packages: Mapping[str, Version]
) -> Iterator[tuple[str, Version]]:
    for affected in entry.get("affected", ()):
        package = affected.get("package", {})
        name = canonicalize_name(package.get("name", ""))
        version = packages.get(name) if package.get("ecosystem") == "PyPI" else None
        if version and (_is_listed(affected, version) or _is_in_a_range(affected, version)):
            yield name, version


def _is_listed(affected: Mapping[str, Any], version: Version) -> bool:
    return any(_version(each) == version for each in affected.get("versions", ()))


def _is_in_a_range(affected: Mapping[str, Any], version: Version) -> bool:
    """Events in the order of their versions switch the fault on and off."""
    for each in affected.get("ranges", ()):
        if each["type"] != "ECOSYSTEM":
            continue
        is_in = False
        for event in each["events"]:
            [(kind, text)] = event.items()
            at = _version(text)
            if kind == "introduced":
                is_in = is_in or text == "0" or (at is not None and version >= at)
            elif at is not None and (version >= at if kind == "fixed" else version > at):
                is_in = False
        if is_in:
            return True
    return False


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def servers() -> dict[str, Version]:
    """The servers inside of packages, by what they say of themselves."""
    sys.path.insert(0, str(BASE))
    from portal.embedded.postgres import program
    from portal.embedded.redis import choose_program

    said = subprocess.run(
        [program("postgres"), "--version"], capture_output=True, text=True, check=True
    )
    return {
        "postgresql": Version(said.stdout.split()[-1]),
        "valkey": Version(choose_program(names=()).version),
    }


def of_own_list(found: Mapping[str, Version], entries: Sequence[Mapping[str, Any]]) -> list[Hit]:
    """Servers that are older than the version in which a fault was mended."""
    return [
        Hit(entry["server"], str(found[entry["server"]]), entry["id"], entry["about"])
        for entry in entries
        if found[entry["server"]] < Version(entry["mended_in"])
    ]


def exempt(hits: Sequence[Hit], entries: Sequence[Mapping[str, Any]], today: date) -> list[Hit]:
    """The hits that no exemption covers; one whose end has come covers nothing."""
    valid = {(each["package"], each["id"]) for each in entries if each["until"] >= today}
    return [hit for hit in hits if (hit.package, hit.advisory) not in valid]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--osv", type=Path, default=os.environ.get("PILOTAGE_OSV") or None)
    parser.add_argument("--own-list", type=Path, default=OWN_LIST)
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args(arguments)
    packages = locked(options.files or LISTS)
    own = tomllib.loads(options.own_list.read_text(encoding="utf-8"))
    today = datetime.now(UTC).date()
    found, made = of_safety_db(packages)
    _tell_age("safety-db", made, today)
    if options.osv:
        more, made = of_osv(packages, Path(options.osv))
        _tell_age(f"OSV ({options.osv})", made, today)
        found += more
    found += of_own_list(servers(), own.get("fault", ()))
    _tell_age("advisories.toml, for servers inside of packages", own["looked_at"], today)
    left = exempt(found, own.get("exempt", ()), today)
    for hit in left:
        _say(f"{hit.package} {hit.version}: {hit.advisory}: {hit.about}")
    _say(f"{len(packages)} packages: {len(left)} advisories, {len(found) - len(left)} exempted")
    return 1 if left else 0


def _tell_age(name: str, made: date, today: date) -> None:
    age_days = (today - made).days
    _say(f"list of {made}, {age_days} days old: {name}")
    if age_days > OLD_DAYS:
        _say(f"  WARNING: it knows of nothing that was found in these {age_days} days")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
