#!/usr/bin/env python3
"""Merge: add the parts' histograms, each exactly once.

    ./merge.py --parts 12

Reads `hist_01.json` ... `hist_12.json` from the sandbox and writes `merged.json`. Refuses a
missing, repeated, damaged or foreign part: a wrong sum would look like a right one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import sys
from pathlib import Path
from typing import Any

#: What must be equal in all parts, or their sum means nothing.
SHARED = ("low_gev", "high_gev", "inputs")

log = logging.getLogger("merge")


def unsealed(path: Path) -> dict[str, Any]:
    """Return the histogram, after its checksum was verified."""
    try:
        document = json.loads(path.read_bytes())
        claimed = document.pop("sha256")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        sys.exit(f"merge: {path} is no sealed histogram: {error!r}")
    body = json.dumps(document, sort_keys=True).encode()
    if hashlib.sha256(body).hexdigest() != claimed:
        sys.exit(f"merge: {path} does not have the checksum that it was written with")
    return document


def read_parts(count: int) -> list[dict[str, Any]]:
    """Return parts 1 to `count` in order, from files named after them."""
    expected = [f"hist_{number:02d}.json" for number in range(1, count + 1)]
    found = {path.name for path in Path().glob("hist_*.json")}
    missing = [name for name in expected if name not in found]
    if missing:
        sys.exit(f"merge: {len(missing)} of {count} parts are missing: {', '.join(missing)}")
    foreign = sorted(found.difference(expected))
    if foreign:
        sys.exit(f"merge: not among the {count} parts: {', '.join(foreign)}")

    parts = [unsealed(Path(name)) for name in expected]
    for name, part in zip(expected, parts):
        if name != f"hist_{part['part']}.json":
            sys.exit(f"merge: {name} holds part {part['part']}")
    return parts


def check_compatible(parts: list[dict[str, Any]]) -> None:
    part_of_seed: dict[int, str] = {}
    for part in parts:
        twin = part_of_seed.setdefault(part["seed"], part["part"])
        if twin != part["part"]:
            sys.exit(f"merge: parts {twin} and {part['part']} have the same seed {part['seed']}")
        for key in SHARED:
            if part[key] != parts[0][key]:
                sys.exit(f"merge: parts {parts[0]['part']} and {part['part']} differ in {key}")
        if len(part["counts"]) != len(parts[0]["counts"]):
            sys.exit(f"merge: parts {parts[0]['part']} and {part['part']} differ in their bins")
        if sum(part["counts"]) != part["entries"]:
            sys.exit(f"merge: the counts of part {part['part']} do not add up to its entries")


def merged(parts: list[dict[str, Any]]) -> dict[str, Any]:
    check_compatible(parts)
    counts = [sum(column) for column in zip(*(part["counts"] for part in parts))]
    totals = ("events", "entries", "underflow", "overflow")
    return {
        **{key: parts[0][key] for key in SHARED},
        **{key: sum(part[key] for part in parts) for key in totals},
        "counts": counts,
        "parts": [
            {key: part[key] for key in ("part", "seed", "events", "entries")} for part in parts
        ],
    }


def main() -> None:
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(message)s")
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--parts", type=int, required=True, help="how many there must be")
    parts = read_parts(arguments.parse_args().parts)
    for part in parts:
        log.info("part %(part)s: seed %(seed)d, %(entries)9d of %(events)9d events", part)

    result = merged(parts)
    Path("merged.json").write_text(json.dumps(result, sort_keys=True, indent=1) + "\n")
    log.info("sum of %d parts: %d of %d events", len(parts), result["entries"], result["events"])


if __name__ == "__main__":
    main()
