"""Check of an archive as a whole, before anything of it is kept: hashes, rows, counts."""

from __future__ import annotations

import hashlib
import zipfile
from collections import Counter
from collections.abc import Iterator
from typing import IO, Any

from wms.archives import layout
from wms.archives.manifest import Manifest, fault, strict_json
from wms.archives.row_kinds import KINDS, fault_of
from wms.archives.zip_reading import manifest_of, opened, pieces, whole
from wms.archives.zip_stream import Member


def check_archive(file: IO[bytes]) -> Manifest:
    """The manifest of an archive of which every byte was looked at; memory is that of a chunk.

    Raises InvalidInput with the member, line and reason of the first fault.
    """
    with opened(file) as archive:
        manifest = manifest_of(archive)
        _check_names(archive, manifest)
        _Checking(archive, manifest).run()
    return manifest


def _check_names(archive: zipfile.ZipFile, manifest: Manifest) -> None:
    listed = [each.name for each in manifest.members]
    there = [name for name in archive.namelist() if name != layout.MANIFEST]
    if odd := sorted(set(listed) ^ set(there)):
        where = "is missing" if odd[0] in listed else "is not listed in the manifest"
        raise fault(where, member=odd[0])
    if len(listed) != len(set(listed)):
        raise fault("members: one is listed twice")
    numbers = Counter[str]()
    for name in listed:
        if found := layout.CHUNK_NAME.fullmatch(name):
            kind = found[1]
            numbers[kind] += 1
            if kind not in KINDS:
                raise fault("is of no known kind", member=name)
            if int(found[2]) != numbers[kind]:
                raise fault(f"is not number {numbers[kind]} of its kind", member=name)


class _Checking:
    """One check: what was counted so far, to be compared with the manifest."""

    def __init__(self, archive: zipfile.ZipFile, manifest: Manifest) -> None:
        self._archive, self._manifest = archive, manifest
        self._rows = Counter[str]()
        self._told = {"nodes": manifest.node_states, "jobs": manifest.job_states}
        self._states = {kind: Counter[str]() for kind in self._told}
        self._dags: set[int] = set()
        self._contents: dict[str, int] = {}

    def run(self) -> None:
        for member in self._manifest.members:
            if found := layout.CHUNK_NAME.fullmatch(member.name):
                self._check_chunk(found[1], member)
            else:
                self._compare(member, pieces(self._archive, member.name))
                if content := layout.CONTENT_NAME.fullmatch(member.name):
                    self._check_content(content[1], member)
        self._check_counts()

    def _compare(self, member: Member, parts: Iterator[bytes]) -> None:
        digest, size_bytes = hashlib.sha256(), 0
        for part in parts:
            digest.update(part)
            size_bytes += len(part)
        if (digest.hexdigest(), size_bytes) != (member.sha256, member.size_bytes):
            raise fault("is not what the manifest has the SHA-256 of", member=member.name)

    def _check_content(self, sha256: str, member: Member) -> None:
        if member.sha256 != sha256 or self._contents.pop(sha256, None) != member.size_bytes:
            raise fault("is not the content of a file of the DAG", member=member.name)

    def _check_chunk(self, kind: str, member: Member) -> None:
        text = whole(self._archive, member.name)
        self._compare(member, iter([text]))
        if not text.endswith(b"\n"):
            raise fault("does not end with a whole line", member=member.name)
        lines = text[:-1].split(b"\n")
        if len(lines) != member.rows or len(lines) > layout.CHUNK_ROWS:
            raise fault(f"has {len(lines)} rows", member=member.name)
        for number, line in enumerate(lines, 1):
            try:
                row = strict_json(line)
            except ValueError as error:
                raise fault(str(error), member=member.name, line=number) from None
            if problem := fault_of(kind, row) or self._take(kind, row):
                raise fault(problem, member=member.name, line=number)

    def _take(self, kind: str, row: dict[str, Any]) -> str:
        """Count a row; what is wrong with it beside the others, empty when nothing is."""
        dag = self._manifest.dag
        self._rows[kind] += 1
        if kind == "dags":
            if row["id"] == dag["id"] and row != dag:
                return "is not the DAG of the manifest"
            self._dags.add(row["id"])
        elif kind == "files":
            return self._take_file(row)
        elif row["dag"] not in self._dags:
            return "is of a DAG that is not in it"
        if kind == "jobs" or (kind == "nodes" and row["dag"] == dag["id"]):
            known = self._told[kind]
            if row["state"] not in known:
                return "state is none of those in the manifest"
            self._states[kind][row["state"]] += 1
        return ""

    def _take_file(self, row: dict[str, Any]) -> str:
        if row["content"] is None:
            return ""
        self._contents[row["sha256"]] = row["size_bytes"]
        is_own = row["content"] == layout.content_name(row["sha256"])
        return "" if is_own else "content is not named by its SHA-256"

    def _check_counts(self) -> None:
        manifest = self._manifest
        if manifest.dag["id"] not in self._dags:
            raise fault("has no row of the DAG itself", member=layout.chunk_name("dags", 1))
        if self._contents:
            raise fault("is missing", member=layout.content_name(sorted(self._contents)[0]))
        for name, told, found in (
            ("rows", manifest.rows, self._rows),
            *((f"states of {kind}", self._told[kind], self._states[kind]) for kind in self._told),
        ):
            if dict(told) != dict(found):
                raise fault(f"{name} are not what is in the file")
