"""Beginning of the zipapp: unpacks it once, so that Python keeps what it compiles, and runs it.

Run from the archive, every module would be compiled at every start, which takes a second.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def _unpacked(archive: Path) -> Path:
    """Folder with the content of the archive, in this user's cache. Raises OSError."""
    stat = archive.stat()
    named = f"{stat.st_size:x}-{stat.st_mtime_ns:x}-{stat.st_ino:x}"
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    place = Path(cache, "pilotage-client", named)
    if not place.is_dir():
        _unpack(archive, place)
    if place.stat().st_uid != os.getuid():
        raise PermissionError(f"{place} belongs to somebody else")
    return place


def _unpack(archive: Path, place: Path) -> None:
    """Unpack the archive, whole or not at all."""
    import tempfile
    import zipfile

    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = Path(tempfile.mkdtemp(dir=place.parent))
    with zipfile.ZipFile(archive) as content:
        content.extractall(fresh)
    try:
        fresh.rename(place)
    except OSError:
        # Another call was faster.
        if not place.is_dir():
            raise


def run() -> int:
    """Run the command from the unpacked archive, or where there is no cache from the archive."""
    try:
        sys.path.insert(0, str(_unpacked(Path(sys.argv[0]))))
    except OSError:
        # It is only slower so.
        sys.path.insert(0, sys.argv[0])
    from pilotage_client.cli.main import main

    return main()


if __name__ == "__main__":
    sys.exit(run())
