"""Static files are collected when they have changed, and at no other start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.staticfiles.finders import get_finder
from django.test import override_settings

from portal.cli.static_collection import collect_static_files

_FINDER = "django.contrib.staticfiles.finders.FileSystemFinder"


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Path]:
    """The one static file; the collected ones lie in `collected` beside its folder."""
    file = tmp_path / "source" / "page.css"
    file.parent.mkdir()
    file.write_text("a { color: red }")
    with override_settings(
        STATIC_ROOT=tmp_path / "collected",
        STATICFILES_DIRS=[file.parent],
        STATICFILES_FINDERS=[_FINDER],
        STORAGES={
            "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"}
        },
    ):
        get_finder.cache_clear()
        yield file
    get_finder.cache_clear()


def _collected(source: Path) -> set[str]:
    """The contents of the collected copies of the file."""
    return {each.read_text() for each in (source.parents[1] / "collected").glob("page*.css")}


def test_files_are_collected_once_until_one_changes(source: Path) -> None:
    said: list[str] = []

    done = [collect_static_files(said.append) for _ in range(2)]
    source.write_text("a { color: blue }")
    done += [collect_static_files(said.append) for _ in range(2)]

    assert done == [True, False, True, False]
    assert "a { color: blue }" in _collected(source)


def test_a_new_file_is_collected_too(source: Path) -> None:
    collect_static_files(lambda step: None)
    (source.parent / "page.other.css").write_text("b {}")

    assert collect_static_files(lambda step: None)
    assert "b {}" in _collected(source)


def test_an_interrupted_collection_is_done_again(source: Path) -> None:
    named = "django.contrib.staticfiles.storage.HashedFilesMixin.hashed_name"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(named, _interrupted)
        with pytest.raises(InterruptedError):
            collect_static_files(lambda step: None)

    assert collect_static_files(lambda step: None)
    assert _collected(source)


def test_deleted_files_are_collected_again(source: Path) -> None:
    collect_static_files(lambda step: None)
    for each in (source.parents[1] / "collected").iterdir():
        each.unlink()

    assert collect_static_files(lambda step: None)
    assert _collected(source)


def _interrupted(*_arguments: object) -> str:
    raise InterruptedError
