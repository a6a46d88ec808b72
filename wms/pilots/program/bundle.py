"""Agent of pilots bundled as one zip file, the same bytes whenever an installation builds it."""

from __future__ import annotations

import functools
import hashlib
import io
import zipfile
from dataclasses import dataclass
from pathlib import Path

_PACKAGE = "pilot"
#: Checks of the node run in processes of their own, which need little of the program.
_ENTRY = f"""import sys

if sys.argv[1:2] == ["check"]:
    from {_PACKAGE}.checks.builtin import main
else:
    from {_PACKAGE}.__main__ import main

sys.exit(main())
"""
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

    Another version of zlib on another host may pack it differently: both files are then kept.
    """
    folder = Path(__file__).parent.parent / "agent"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, "__main__.py", _ENTRY.encode())
        for source in sorted(folder.rglob("*.py")):
            name = source.relative_to(folder).as_posix()
            _add(archive, f"{_PACKAGE}/{name}", source.read_bytes())
    content = buffer.getvalue()
    return AgentBundle(content, hashlib.sha256(content).hexdigest())


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, date_time=_EPOCH)
    entry.external_attr = 0o600 << 16
    entry.create_system = 3
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, content)
