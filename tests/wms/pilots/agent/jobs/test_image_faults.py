"""Images at fault: what is no file of an image, and when it is rather the node that fails."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from wms.pilots.agent.files.image_files import why_no_image
from wms.pilots.agent.jobs.images import MOST_FAULTS, TAG, Images
from wms.pilots.agent.payload.execution import Outcome

_SQUASHFS, _EXT3, _PRIMARY, _OVERLAY = 1, 2, 2, 4
NOT_STARTED = Outcome(255, None, is_inside=False)


class NoContainers:
    """Stands for what starts containers, where none is started."""


def image_file(path: Path, *partitions: tuple[int, int], most: int | None = None) -> Path:
    """A file in the format of Apptainer with these partitions, without content."""
    start = b"#!/usr/bin/env run-singularity\n\0" + b"SIF_MAGIC\0" + b"01\0" + b"02\0" + bytes(16)
    numbers = (0, 0, 0, len(partitions) if most is None else most, 128, 0, 0, 0)
    header = start + struct.pack("<8q", *numbers)
    table = b"".join(
        (struct.pack("<i?", 0x4004, True) + bytes(196) + struct.pack("<2i", *each)).ljust(
            585, b"\0"
        )
        for each in partitions
    )
    path.write_bytes(header + table)
    return path


def test_a_file_with_the_file_system_of_its_image_is_one(tmp_path: Path) -> None:
    assert not why_no_image(image_file(tmp_path / "a.sif", (_SQUASHFS, _PRIMARY)))


@pytest.mark.parametrize(
    "partitions",
    [
        [],
        [(_EXT3, _PRIMARY)],
        [(_SQUASHFS, _PRIMARY), (_EXT3, _OVERLAY)],
        [(_SQUASHFS, _PRIMARY), (_SQUASHFS, _PRIMARY)],
    ],
)
def test_a_file_with_other_file_systems_is_none(
    tmp_path: Path, partitions: list[tuple[int, int]]
) -> None:
    assert why_no_image(image_file(tmp_path / "a.sif", *partitions))


@pytest.mark.parametrize("most", [2, 2**62, -1])
def test_a_file_whose_table_cannot_be_is_none(tmp_path: Path, most: int) -> None:
    assert why_no_image(image_file(tmp_path / "a.sif", (_EXT3, _PRIMARY), most=most))


def test_other_files_are_none(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"x")

    assert why_no_image(tmp_path / "short")
    assert why_no_image(tmp_path)
    assert why_no_image(tmp_path / "none")


def images(tmp_path: Path, try_again=lambda: None) -> Images:
    (tmp_path / "stderr").write_text("FATAL: no\n")
    return Images(tmp_path, NoContainers(), try_again)  # type: ignore[arg-type]


def test_a_pilot_without_containers_asks_for_no_job_with_an_image(tmp_path: Path) -> None:
    assert Images(tmp_path).tags() == []
    assert images(tmp_path).tags() == [TAG]


def test_an_image_that_does_not_start_is_at_fault_where_a_trial_works(tmp_path: Path) -> None:
    told = images(tmp_path).judged(NOT_STARTED, tmp_path / "stderr")

    assert (told.exit_code, told.is_image_at_fault) == (None, True)
    assert "FATAL: no" in told.reason


def test_where_no_trial_works_it_is_the_nodes_fault(tmp_path: Path) -> None:
    def fail() -> None:
        raise OSError("no container")

    with pytest.raises(OSError, match="no container"):
        images(tmp_path, fail).judged(NOT_STARTED, tmp_path / "stderr")


def test_a_payload_that_was_stopped_before_it_began_blames_no_image(tmp_path: Path) -> None:
    stopped = Outcome(None, 9, reason="killed on request", stopped_by="server", is_inside=False)

    assert images(tmp_path).judged(stopped, tmp_path / "stderr") == stopped


def test_faults_one_after_the_other_end_the_taking_of_jobs_with_images(tmp_path: Path) -> None:
    of_pilot = images(tmp_path)
    for outcome in [NOT_STARTED] * (MOST_FAULTS - 1) + [Outcome(0, None)]:
        of_pilot.judged(outcome, tmp_path / "stderr")
    assert of_pilot.tags() == [TAG]

    for _ in range(MOST_FAULTS):
        of_pilot.judged(NOT_STARTED, tmp_path / "stderr")

    assert of_pilot.tags() == []
