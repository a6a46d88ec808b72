"""The one rule for paths of a workspace; what it lets through can be stored and made."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wms.core.errors import InvalidInput
from wms.core.models import User
from wms.jobs.content.blobs import store_bytes
from wms.jobs.content.paths import MAX_NAME_BYTES, MAX_PATH_BYTES, checked_path, path_in
from wms.jobs.models import Workspace, WorkspaceFile

#: A directory of the greatest length, and what is left below it.
DEEP = "/".join(["d" * 255] * 4)


def fault(directory: str, name: str) -> str:
    with pytest.raises(InvalidInput) as caught:
        path_in(directory, name, field="output")
    [finding] = caught.value.findings
    assert finding.field == "output"
    return finding.message


@pytest.mark.parametrize(
    ("directory", "name", "message"),
    [
        ("d" * 255, "n" * 256, "has 256 bytes; the name of a file or a directory has at most 255"),
        ("", "ä" * 128, "has 256 bytes; the name of a file or a directory has at most 255"),
        ("", "é/" * 341 + "é", "has 1025 bytes; in a workspace it has at most 1024"),
        (DEEP, "n", "has 1025 bytes; in a workspace it has at most 1024"),
        ("d", "", "the name of a file is empty"),
        ("d", "../..", "leads outside of the workspace"),
        ("d", "\udc80", "is no text in UTF-8"),
    ],
)
def test_it_is_the_joined_and_normal_path_in_bytes_that_is_bounded(
    directory: str, name: str, message: str
) -> None:
    assert message in fault(directory, name)


def test_what_is_just_short_enough_is_let_through_however_it_is_written() -> None:
    directory = DEEP[:-2]

    path = path_in(directory, "x/../././n")

    assert path == f"{directory}/n"
    assert len(path) == MAX_PATH_BYTES - 1


_NAMES = st.sampled_from(["d", "é", "\U0001f600", ".", "..", "a b", "~"]).flatmap(
    lambda each: st.integers(1, 300).map(lambda count: each * count)
)


@given(st.lists(_NAMES, max_size=6), st.lists(_NAMES, min_size=1, max_size=6))
@example(["d" * 255] * 3, ["d" * 255])
@example([], ["\U0001f600" * 63 + "ddd"])
def test_a_file_of_every_path_that_is_let_through_can_be_made(
    directory: list[str], name: list[str]
) -> None:
    try:
        path = path_in("/".join(directory), "/".join(name))
    except InvalidInput:
        return

    assert checked_path(path) == path
    assert max(map(len, path.encode().split(b"/"))) <= MAX_NAME_BYTES
    with tempfile.TemporaryDirectory() as top:
        file = Path(top, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        assert Path(os.path.realpath(top)) in Path(os.path.realpath(file)).parents


@pytest.mark.parametrize("letter", ["d", "é", "\U0001f600"])
def test_the_longest_paths_can_be_stored(alice: User, letter: str) -> None:
    blob = store_bytes(b"x")
    workspace = Workspace.objects.create(owner=alice)
    size = len(letter.encode())
    name = letter * (254 // size)
    path = "/".join([name, name[1:], name[2:], name[3:]])

    file = WorkspaceFile.objects.create(workspace=workspace, path=checked_path(path), blob=blob)

    file.refresh_from_db()
    assert file.path == path
