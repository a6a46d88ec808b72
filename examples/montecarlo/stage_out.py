#!/usr/bin/env python3
"""Stage-out: publish this part's histogram at the site and bring it home through the sandbox.

    WORK_DIR=/scratch/work/7-01 EXPORT_FILE=/scratch/export/7-hist_01.json ./stage_out.py --part 01

Copies working directory -> site's export area -> `hist_01.json` in the sandbox, and verifies the
checksum that the run step sealed the histogram with on what it read and on every copy it made.
Safe to repeat: every copy appears complete or not at all.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import sys
import tempfile
from pathlib import Path

log = logging.getLogger("stage_out")


def checked(path: Path, part: str) -> bytes:
    """Return the file's bytes if they are the whole, unchanged histogram of this part."""
    if not path.is_file():
        sys.exit(f"stage_out: {path} is not there: has the run step ended at this site?")
    content = path.read_bytes()
    try:
        document = json.loads(content)
        claimed = document.pop("sha256")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        sys.exit(f"stage_out: {path} is no sealed histogram: {error!r}")
    body = json.dumps(document, sort_keys=True).encode()
    if hashlib.sha256(body).hexdigest() != claimed:
        sys.exit(f"stage_out: {path} does not have the checksum that it was written with")
    if document["part"] != part:
        sys.exit(f"stage_out: {path} is part {document['part']}, expected {part}")
    log.info("%s: %d bytes, checksum verified", path, len(content))
    return content


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


def main() -> None:
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(message)s")
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--part", required=True, help="number of this part, as in 01")
    part = arguments.parse_args().part

    log.info("part %s at site %s", part, os.environ.get("SITE", "unnamed"))
    export = Path(os.environ["EXPORT_FILE"])
    export.parent.mkdir(parents=True, exist_ok=True)
    source = Path(os.environ["WORK_DIR"]) / "histogram.json"
    for target in (export, Path(f"hist_{part}.json")):
        write_whole(target, checked(source, part))
        checked(target, part)
        source = target


if __name__ == "__main__":
    main()
