from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

import pytest

VENDOR = Path(__file__).resolve().parent.parent / "static" / "vendor"
ENTRIES = tomllib.loads((VENDOR / "MANIFEST.toml").read_text(encoding="utf-8"))["file"]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["path"])
def test_vendored_file_is_the_one_in_the_manifest(entry):
    content = (VENDOR / entry["path"]).read_bytes()

    assert hashlib.sha256(content).hexdigest() == entry["sha256"]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["path"])
def test_manifest_says_where_each_file_is_from(entry):
    fields = {"name", "version", "licence", "package", "source", "path", "sha256"}

    assert set(entry) == fields
    assert all(entry.values())


def test_no_file_is_missing_from_the_manifest():
    present = {str(path.relative_to(VENDOR)) for path in VENDOR.rglob("*") if path.is_file()}

    assert present == {entry["path"] for entry in ENTRIES} | {"MANIFEST.toml"}
