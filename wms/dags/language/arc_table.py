"""Table of a DAG's arcs while its files are parsed, packed so that millions fit into memory.

It also gives the distinct arcs, and the file and line where an arc was asked for.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import eq

from wms.dags.language.faults import Fault
from wms.dags.language.spec import Arcs, SourceLocation

#: An arc is parent, child and weakness in one number, so that sorting brings pairs together.
_PARENT_BITS = 33
_CHILD_MASK = (1 << 32) - 1


class ArcTable:
    """All arcs that PARENT and CONNECT lines ask for, repeated ones included, with their lines."""

    def __init__(self, max_arcs: int) -> None:
        self.keys = array("Q")
        self.lines = array("I")
        self.max_arcs = max_arcs
        #: Number of the first arc of each file, parallel to `_files`.
        self._starts: list[int] = []
        self._files: list[str] = []
        self._file = ""
        self._has_weak = False

    def __len__(self) -> int:
        return len(self.keys)

    def add(self, parent: int, child: int, file: str, line: int) -> None:
        """Add one strong arc."""
        if file is not self._file or len(self.keys) >= self.max_arcs:
            self._prepare(1, file)
        self.keys.append(parent << _PARENT_BITS | child << 1)
        self.lines.append(line)

    def add_product(
        self,
        parents: Sequence[int],
        children: Sequence[int],
        location: SourceLocation,
        *,
        is_weak: bool,
    ) -> None:
        """Add the arcs from each of the parents to each of the children. Raises Fault."""
        count = len(parents) * len(children)
        self._prepare(count, location.file)
        self._has_weak = self._has_weak or is_weak
        ends = [child << 1 | is_weak for child in children]
        for parent in parents:
            start = parent << _PARENT_BITS
            self.keys.extend([start | end for end in ends])
        self.lines.extend(array("I", [location.line]) * count)

    def add_all(
        self, parents: Sequence[int], children: Sequence[int], lines: Sequence[int], file: str
    ) -> bool:
        """Add strong arcs, each with its line. False, without any change, if they are too many."""
        if len(self.keys) + len(parents) > self.max_arcs:
            return False
        self._prepare(len(parents), file)
        pairs = zip(parents, children, strict=True)
        self.keys.extend([parent << _PARENT_BITS | child << 1 for parent, child in pairs])
        self.lines.extend(lines)
        return True

    def _prepare(self, count: int, file: str) -> None:
        if len(self.keys) + count > self.max_arcs:
            raise Fault(f"a DAG has at most {self.max_arcs} arcs, repeated ones included")
        if file is not self._file:
            self._starts.append(len(self.keys))
            self._files.append(file)
            self._file = file

    def endpoints_since(self, start: int) -> tuple[set[int], set[int]]:
        """Parents, and children, of the arcs from number `start` on."""
        keys = self.keys[start:]
        return (
            {key >> _PARENT_BITS for key in keys},
            {(key >> 1) & _CHILD_MASK for key in keys},
        )

    def location_of(self, parent: int, child: int) -> SourceLocation:
        """File and line where an arc was asked for first."""
        keys = (parent << _PARENT_BITS | child << 1 | is_weak for is_weak in (0, 1))
        at = min(self.keys.index(key) for key in keys if key in self.keys)
        return SourceLocation(self._files[bisect_right(self._starts, at) - 1], self.lines[at])

    def distinct(self) -> Arcs:
        """Each pair of nodes once, by parent and child; a strong arc wins over a weak one."""
        keys = sorted(self.keys)
        if self._has_weak or any(map(eq, keys, islice(keys, 1, None))):
            keys = list(_first_of_pairs(keys))
        return Arcs(
            parents=array("I", [key >> _PARENT_BITS for key in keys]),
            children=array("I", [(key >> 1) & _CHILD_MASK for key in keys]),
            weak=bytearray([key & 1 for key in keys]) if self._has_weak else bytearray(len(keys)),
        )


def _first_of_pairs(keys: Sequence[int]) -> Iterator[int]:
    yield from keys[:1]
    for key, next_key in zip(keys, islice(keys, 1, None), strict=False):
        if next_key >> 1 != key >> 1:
            yield next_key
