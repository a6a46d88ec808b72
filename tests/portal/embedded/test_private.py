from __future__ import annotations

import stat

from portal.embedded.private import kept_secret, make_private_folder, write_private


def _mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_only_the_owner_may_read_a_private_file_even_if_all_might_before(tmp_path):
    file = tmp_path / "secret"
    file.write_text("old")
    file.chmod(0o644)

    write_private(file, "new")

    assert file.read_text() == "new"
    assert _mode(file) == 0o600
    assert list(tmp_path.iterdir()) == [file]


def test_a_secret_is_made_once_and_then_kept(tmp_path):
    first = kept_secret(tmp_path / "secret")

    assert len(first) >= 32
    assert kept_secret(tmp_path / "secret") == first
    assert kept_secret(tmp_path / "other") != first


def test_a_private_folder_is_closed_to_others(tmp_path):
    folder = make_private_folder(tmp_path / "a" / "b")

    assert _mode(folder) == 0o700
