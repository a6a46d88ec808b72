"""The node's own Python inside a container of another system, which may have none.

Its folders are shown at a hidden place, and its dynamic loader is told where the libraries are:
nothing of the image is loaded.
"""

from __future__ import annotations

import os
import struct
import sys
from dataclasses import dataclass

from .base import FenceUnusable
from .host_view import is_below

_INTERPRETER = 3
_HEADERS = struct.Struct("<32sQ14sHH")
_HEADER = struct.Struct("<IIQQQQ")
#: They would end a path in the list of what a container shows.
_SEPARATORS = (":", ",")


@dataclass(frozen=True)
class NodePython:
    """Python of the node: its folders, and the paths of its loader, if it has one, and itself."""

    folders: tuple[str, ...]
    libraries: tuple[str, ...]
    python: str
    loader: str

    def binds(self, place: str) -> list[str]:
        """What shows its folders below this place, read-only."""
        return [f"{each}:{place}{each}:ro" for each in self.folders]

    def command(self, place: str) -> list[str]:
        """Command that starts it there, before its arguments."""
        if not self.loader:
            return [f"{place}{self.python}"]
        libraries = ":".join(f"{place}{each}" for each in self.libraries)
        # The cache would be the image's; other loaders than that of glibc have none.
        has_cache = os.path.basename(self.loader).startswith("ld-linux")
        words = ["--inhibit-cache"] if has_cache else []
        words += ["--library-path", libraries]
        return [f"{place}{self.loader}", *words, f"{place}{self.python}"]


def node_python() -> NodePython:
    """The Python that runs this program, with the libraries that it has loaded.

    Raises OSError, and FenceUnusable where it cannot be shown to containers.
    """
    python = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    loader = _loader_of(python)
    libraries = sorted({os.path.dirname(each) for each in _mapped_libraries()})
    needed = {os.path.dirname(python), os.path.dirname(os.path.realpath(os.__file__)), *libraries}
    if loader:
        needed.add(os.path.dirname(loader))
    folders = tuple(
        sorted(
            each
            for each in needed
            if not any(other != each and is_below(each, other) for other in needed)
        )
    )
    for each in folders:
        if not os.path.isdir(each) or any(mark in each for mark in _SEPARATORS):
            raise FenceUnusable(f"the node's Python cannot be shown to containers: {each}")
    return NodePython(folders, tuple(libraries), python, loader)


def _loader_of(program: str) -> str:
    """Path of the dynamic loader that a program of 64 bits names; empty if it names none."""
    with open(program, "rb") as file:
        start, place, _, size, count = _HEADERS.unpack(file.read(_HEADERS.size))
        if start[:6] != b"\x7fELF\x02\x01":
            raise FenceUnusable(f"{program} is no program of 64 bits")
        for index in range(count):
            file.seek(place + index * size)
            kind, _, offset, _, _, length = _HEADER.unpack(file.read(_HEADER.size))
            if kind == _INTERPRETER:
                file.seek(offset)
                return os.path.realpath(file.read(length).rstrip(b"\0").decode())
    return ""


def _mapped_libraries() -> set[str]:
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as lines:
        paths = {line.split(maxsplit=5)[5].rstrip("\n") for line in lines if "/" in line}
    return {each for each in paths if ".so" in os.path.basename(each) and os.path.isfile(each)}
