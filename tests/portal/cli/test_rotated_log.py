"""A log that is rotated, read as one sequence: nothing is lost, doubled, or taken for another."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portal.cli.rotated_log import LogLost, RotatedLog
from tests.portal.cli.rotating import pack, rotate

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 6000)),
        st.sampled_from(
            [("rename", 0), ("copy", 0), ("read", 0), ("kill", 0), ("pack", 0), ("half", 0)]
        ),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_all_that_was_written_is_read_once_in_its_order(steps: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log, state = Path(folder, "x.log"), Path(folder, "state")
        reader, written, got, number = RotatedLog(log, state), b"", b"", 0
        for step, size in [*steps, ("read", 0), ("read", 0), ("read", 0)]:
            if step == "write":
                # Every event of a log is another one: its job and its time.
                number += 1
                piece = f"{number:08d}".encode() * (size // 8 + 1)
                with log.open("ab") as file:
                    file.write(piece)
                written += piece
            elif step == "kill":
                reader = RotatedLog(log, state)
            elif step == "read":
                reader.look(len(got))
                got += reader.read(len(got), 10_000_000)
            elif step in ("pack", "half"):
                pack(log, is_cut=step == "half")
            else:
                rotate(log, step)
            assert written.startswith(got)
        assert got == written


def test_a_part_that_is_gone_is_told_and_not_passed_over(tmp_path: Path) -> None:
    log, state = tmp_path / "x.log", tmp_path / "state"
    log.write_bytes(b"first" * 100)
    reader = RotatedLog(log, state)
    reader.look(0)
    log.write_bytes(b"second" * 100)

    with pytest.raises(LogLost):
        reader.look(0)
    log.rename(tmp_path / "x.log.1")
    log.write_bytes(b"third")
    with pytest.raises(LogLost):
        RotatedLog(log, tmp_path / "another state").look(7)


def test_a_packed_file_is_read_in_pieces_without_beginning_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, state = tmp_path / "x.log", tmp_path / "state"
    written = b"".join(b"%07d\n" % number for number in range(40_000))
    log.write_bytes(written)
    rotate(log)
    pack(log)
    rewound: list[int] = []
    real = gzip.GzipFile.rewind
    monkeypatch.setattr(gzip.GzipFile, "rewind", lambda it: rewound.append(1) or real(it))
    reader, got = RotatedLog(log, state), b""

    while len(got) < len(written):
        reader.look(len(got))
        got += reader.read(len(got), 9_000)

    assert (got, rewound) == (written, [])


def test_a_packed_file_that_is_spoilt_is_told(tmp_path: Path) -> None:
    log, state = tmp_path / "x.log", tmp_path / "state"
    log.write_bytes(b"first" * 1000)
    reader = RotatedLog(log, state)
    reader.look(0)
    rotate(log)
    pack(log)
    log.write_bytes(b"second")
    packed = tmp_path / "x.log.1.gz"
    packed.write_bytes(packed.read_bytes()[:-9])

    with pytest.raises(LogLost):
        reader.look(0)
