"""The pilot program as one file, the same bytes wherever and whenever it is built."""

from __future__ import annotations

import functools
import hashlib
import io
import zipfile
from dataclasses import dataclass
from pathlib import Path

_PACKAGE = "pilot"
_ENTRY = f"import sys\n\nfrom {_PACKAGE}.__main__ import main\n\nsys.exit(main())\n"
#: The earliest time a zip file can hold; a real one would change the hash with every check-out.
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class AgentBundle:
    """A zip file that Python runs, and its hash, which travels in the submitted script."""

    content: bytes
    sha256: str


@functools.cache
def agent_bundle() -> AgentBundle:
    """Build the file from the sources beside this module, once per process.

    Nothing is compressed: another version of zlib on another host would change the hash.
    """
    sources = sorted((Path(__file__).parent / "agent").glob("*.py"))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        _add(archive, "__main__.py", _ENTRY.encode())
        for source in sources:
            _add(archive, f"{_PACKAGE}/{source.name}", source.read_bytes())
    content = buffer.getvalue()
    return AgentBundle(content, hashlib.sha256(content).hexdigest())


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, date_time=_EPOCH)
    entry.external_attr = 0o600 << 16
    entry.create_system = 3
    archive.writestr(entry, content)
