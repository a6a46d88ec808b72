#!/usr/bin/env python3
"""Stage-in: bring this part's inputs from the sandbox into the site's working area.

    WORK_DIR=/scratch/work/7-01 ./stage_in.py parameters.json calibration.csv

Safe to repeat: every file appears under its name complete or not at all, and a repeat writes the
same bytes again.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import tempfile
from pathlib import Path

log = logging.getLogger("stage_in")


def write_whole(path: Path, content: bytes) -> None:
    """Make `path` hold exactly `content`; a reader never sees a part of it."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink()
        raise


def stage(source: Path, work_dir: Path) -> None:
    content = source.read_bytes()
    target = work_dir / source.name
    write_whole(target, content)
    sha256 = hashlib.sha256(content).hexdigest()
    if hashlib.sha256(target.read_bytes()).hexdigest() != sha256:
        sys.exit(f"stage_in: {target} reads back with another checksum than {source}")
    log.info("%s: %d bytes, sha256 %s", source.name, len(content), sha256)


def main() -> None:
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(message)s")
    sources = [Path(name) for name in sys.argv[1:]]
    if not sources:
        sys.exit("stage_in: no input file was named")
    missing = [str(source) for source in sources if not source.is_file()]
    if missing:
        sys.exit(f"stage_in: not in the sandbox: {', '.join(missing)}")

    work_dir = Path(os.environ["WORK_DIR"])
    log.info("site %s, working directory %s", os.environ.get("SITE", "unnamed"), work_dir)
    work_dir.mkdir(parents=True, exist_ok=True)
    for source in sources:
        stage(source, work_dir)
    log.info("inputs staged: %d", len(sources))


if __name__ == "__main__":
    main()
