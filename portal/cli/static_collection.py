"""Static files collected into STATIC_ROOT, named by their content and compressed.

Done again only when a source or a library that does it has changed: it takes seconds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.contrib.staticfiles.management.commands import collectstatic
from django.core.management import call_command

#: Files are many and quick: one of so many is told.
_FILES_A_STEP = 100


def collect_static_files(tell: Callable[[str], None]) -> bool:
    """Bring STATIC_ROOT up to date; whether there was something to do.

    An interrupted collection is done again from its beginning.
    """
    mark = Path(settings.STATIC_ROOT, ".collected")
    wanted = _digest()
    if mark.is_file() and mark.read_text(encoding="ascii") == wanted:
        return False
    mark.unlink(missing_ok=True)
    call_command(_Collect(tell), interactive=False, verbosity=0)
    mark.write_text(wanted, encoding="ascii")
    return True


def _digest() -> str:
    """SHA-256 of all sources with their names, and of the versions of what makes files of them."""
    backend = settings.STORAGES["staticfiles"]["BACKEND"]
    versions = [version(each) for each in ("django", "whitenoise")]
    digest = hashlib.sha256(repr([backend, versions]).encode())
    for finder in get_finders():
        for name, storage in finder.list([]):
            with storage.open(name) as stream:
                content = hashlib.file_digest(stream, "sha256").hexdigest()
            digest.update(repr([name, content]).encode())
    return digest.hexdigest()


class _Collect(collectstatic.Command):
    """Tells how many files were copied, named by their content and compressed."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__()
        self._tell, self._done = tell, 0

    def log(self, msg: str, level: int = 2) -> None:
        super().log(msg, level)
        # A file has a line when it is copied, and one when it is compressed.
        self._done += 1
        if self._done % _FILES_A_STEP == 0:
            self._tell(f"static files collected: {self._done} so far")
