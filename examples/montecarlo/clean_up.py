#!/usr/bin/env python3
"""Clean-up: remove this part's working directory and exported histogram at the site.

    WORK_DIR=/scratch/work/7-01 EXPORT_FILE=/scratch/export/7-hist_01.json ./clean_up.py

The content of the exported copy has come home. Safe to repeat: what is gone already is fine. A file
that no step of this production wrote is never deleted.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from pathlib import Path

OURS = ("parameters.json", "calibration.csv", "histogram.json")

log = logging.getLogger("clean_up")


def is_ours(name: str) -> bool:
    """A file of this production, or the unfinished temporary one of a step that was killed."""
    return any(name == ours or name.startswith(f".{ours}.") for ours in OURS)


def remove_directory(work_dir: Path) -> None:
    try:
        entries = sorted(work_dir.iterdir())
    except FileNotFoundError:
        log.info("%s is gone already", work_dir)
        return
    strangers = [entry.name for entry in entries if not is_ours(entry.name)]
    if strangers:
        sys.exit(f"clean_up: {work_dir} also holds {', '.join(strangers)}: nothing was removed")
    for entry in entries:
        entry.unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):
        work_dir.rmdir()
    log.info("removed %s with %d files", work_dir, len(entries))


def main() -> None:
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(message)s")
    log.info("at site %s", os.environ.get("SITE", "unnamed"))
    remove_directory(Path(os.environ["WORK_DIR"]))
    export = Path(os.environ["EXPORT_FILE"])
    for copy in (export, *export.parent.glob(f".{export.name}.*")):
        copy.unlink(missing_ok=True)
    log.info("%s is gone", export)


if __name__ == "__main__":
    main()
