from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from wms.pilots.agent.files import sandbox


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x", "a/../../x", ".", "a/..", "a\0b"])
def test_a_path_that_leaves_the_directory_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(sandbox.BadPath):
        sandbox.inside(tmp_path, path)


def test_a_path_through_a_link_that_leaves_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "box").mkdir()
    (tmp_path / "box" / "out").symlink_to(tmp_path)

    with pytest.raises(sandbox.BadPath, match="leads out"):
        sandbox.inside(tmp_path / "box", "out/file")


def test_an_output_may_lie_in_a_folder_but_must_be_a_regular_file(tmp_path: Path) -> None:
    (tmp_path / "plots").mkdir()
    (tmp_path / "plots" / "mass.svg").write_text("<svg/>")
    (tmp_path / "passwords").symlink_to("/etc/passwd")
    (tmp_path / "circle").symlink_to("circle")

    assert sandbox.find_output(tmp_path, "plots/mass.svg") is not None
    assert sandbox.find_output(tmp_path, "plots") is None
    assert sandbox.find_output(tmp_path, "absent") is None
    assert sandbox.find_output(tmp_path, "passwords") is None
    assert sandbox.find_output(tmp_path, "/etc/passwd") is None
    assert sandbox.find_output(tmp_path, "circle") is None
    assert sandbox.find_output(tmp_path, "circle/inside") is None
    assert sandbox.find_output(tmp_path, "long" * 100) is None


def test_a_file_of_the_sandbox_becomes_executable_and_one_of_the_node_stays(
    tmp_path: Path,
) -> None:
    script = tmp_path / "run.py"
    script.write_text("#!/usr/bin/env python3\n")
    script.chmod(0o600)

    assert sandbox.locate_executable(tmp_path, "run.py") == str(script)
    assert script.stat().st_mode & 0o100
    assert sandbox.locate_executable(tmp_path, "/bin/true") == "/bin/true"


def test_a_short_log_is_sent_as_it_is(tmp_path: Path) -> None:
    log = tmp_path / "stdout"
    log.write_text("short")

    assert sandbox.bounded_log(log) == log


def test_of_a_long_log_beginning_and_end_are_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "LOG_LIMIT_BYTES", 10)
    log = tmp_path / "stdout"
    log.write_text("begin" + "x" * 1000 + "final")

    text = sandbox.bounded_log(log).read_text()

    assert text.startswith("begin\n")
    assert "1000 bytes" in text
    assert text.endswith("\nfinal")


def test_a_directory_that_the_payload_made_read_only_is_removed(tmp_path: Path) -> None:
    deep = tmp_path / "job" / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "file").write_text("x")
    deep.chmod(0o500)
    deep.parent.chmod(0o500)

    sandbox.remove(tmp_path / "job")

    assert not (tmp_path / "job").exists()


@pytest.mark.slow
def test_folders_nested_deeper_than_a_path_are_removed(tmp_path: Path) -> None:
    home = tmp_path / "job"
    home.mkdir()
    folder = os.open(home, os.O_RDONLY)
    for number in range(1500):
        os.mkdir("deep", dir_fd=folder)
        inner = os.open("deep", os.O_RDONLY, dir_fd=folder)
        os.close(os.open("file", os.O_CREAT, dir_fd=inner))
        if number % 100 == 0:
            os.chmod(inner, 0o300)
        os.close(folder)
        folder = inner
    os.close(folder)

    sandbox.remove(home)

    assert not home.exists()


@pytest.mark.slow
def test_an_output_that_is_a_long_chain_of_links_is_missing(tmp_path: Path) -> None:
    longest = sys.getrecursionlimit() + 100
    for number in range(longest):
        (tmp_path / f"l{number}").symlink_to(f"l{number + 1}")
    (tmp_path / f"l{longest}").touch()

    assert sandbox.find_output(tmp_path, "l0") is None


def test_what_a_link_in_the_directory_leads_to_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "elsewhere").mkdir(mode=0o755)
    (tmp_path / "job/link").symlink_to(tmp_path / "elsewhere")

    sandbox.remove(tmp_path / "job")

    assert not (tmp_path / "job").exists()
    assert (tmp_path / "elsewhere").stat().st_mode & 0o777 == 0o755
