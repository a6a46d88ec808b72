"""Resource limits of scripts, and the end of all processes that they started."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.wms.dags.scripts.conftest import done, said

pytestmark = pytest.mark.django_db(transaction=True)


def test_one_that_takes_too_long_is_stopped_with_all_it_started(any_fence, ask, configure):
    configure(FENCES=[any_fence], WALL_S=1)
    mark = f"3{os.getpid()}"

    run = done(ask(f"sleep {mark} & sleep {mark}; echo never"))

    assert run.exit_code == -15
    assert "1 s" in run.failure
    assert not _is_running(mark)


def test_one_that_pays_no_heed_is_killed(any_fence, ask, configure):
    configure(FENCES=[any_fence], WALL_S=1)

    run = done(ask("trap '' TERM; while :; do sleep 1; done"))

    assert run.exit_code == -9
    assert "more than 1 s" in run.failure


def test_one_that_ends_well_when_it_is_stopped_has_not_succeeded(works, ask, configure):
    configure(FENCES=["account", "none"], WALL_S=1)

    run = done(ask("trap 'exit 0' TERM; while :; do sleep 0.1; done"))

    assert run.exit_code == -15


def test_what_it_leaves_running_ends_with_it(any_fence, ask):
    mark = f"4{os.getpid()}"

    run = done(ask(f"sleep {mark} & setsid sleep {mark} & echo started"))

    assert run.exit_code == 0
    if any_fence == "none" and os.geteuid() != 0:
        # It left its group, and nothing else holds it: see the reference.
        _kill(mark)
    assert not _is_running(mark)


def test_cpu_time_is_limited(works, ask, configure):
    configure(FENCES=["account", "none"], CPU_S=1)

    run = done(ask("while :; do :; done"))

    # Some kernels kill at once, without the signal that has a name.
    assert (run.exit_code, "CPU time" in run.failure) in {(-24, True), (-9, False)}


def test_memory_of_all_its_processes_together_is_limited(any_fence, ask, configure):
    configure(FENCES=[any_fence], MEMORY_MB=100)
    hog = "python3 -c 'import time; x = bytearray(60 << 20); time.sleep(30)'"

    run = done(ask(f"{hog} & {hog} & wait"))

    assert run.exit_code == -15
    assert "100 MB" in run.failure


_SHARED = "import mmap; x = mmap.mmap(-1, 150 << 20); x.write(bytes(150 << 20))"
_UNNAMED = "import os; x = os.memfd_create('x'); [os.write(x, bytes(1 << 20)) for _ in range(150)]"


@pytest.mark.parametrize("hog", [_SHARED, _UNNAMED])
def test_memory_that_is_shared_counts_too(any_fence, ask, configure, hog):
    configure(FENCES=[any_fence], MEMORY_MB=100, FILE_BYTES=2**30)
    # In pieces, within what one process may have of its own.
    hog = hog.replace("x.write(bytes(150 << 20))", "[x.write(bytes(1 << 20)) for _ in range(150)]")

    run = done(ask(f'exec python3 -c "{hog}; import time; time.sleep(30)"'))

    assert run.exit_code == -15
    assert "100 MB" in run.failure


def test_memory_that_several_only_read_is_not_counted(works, ask, configure, folder):
    configure(FENCES=["account", "none"], MEMORY_MB=100)
    program = "import mmap, time; f = open('big', 'rb'); "
    program += "x = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ); x[:]; time.sleep(3)"

    run = done(ask(f'truncate -s 900K big; for i in 1 2; do python3 -c "{program}" & done; wait'))

    assert (run.exit_code, run.failure) == (0, "")


def test_memory_of_one_process_is_limited_at_once(works, ask, configure):
    configure(FENCES=["account", "none"], MEMORY_MB=100)

    run = done(ask("python3 -c 'bytearray(500 << 20)'"))

    assert run.exit_code == 1
    assert "MemoryError" in said(run)


def test_a_file_that_grows_too_large_ends_it(works, ask):
    run = done(ask("exec head -c 3000000 /dev/zero >large"))

    assert run.exit_code == -25
    assert "larger" in run.failure


def test_of_much_output_the_beginning_and_the_end_are_kept(works, ask, configure):
    configure(FENCES=["account", "none"], OUTPUT_BYTES=1000)

    run = done(ask("echo first; seq 100000; echo last"))

    text = said(run)
    assert text.startswith("first\n1\n")
    assert text.endswith("100000\nlast\n")
    assert "left out" in text
    assert len(text) < 1100


def _commands(mark: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[:2] == [b"sleep", mark.encode()]:
                found.append(int(entry.name))
    return found


def _is_running(mark: str) -> bool:
    deadline = time.monotonic() + 5
    while _commands(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    return bool(_commands(mark))


def _kill(mark: str) -> None:
    for pid in _commands(mark):
        os.kill(pid, 9)
