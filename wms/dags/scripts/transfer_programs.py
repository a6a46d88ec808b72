"""Workplaces of programs that move files for placements: slots of scripts, behind their fence."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import BinaryIO

from wms.dags.scripts.conf import ScriptConf, script_conf
from wms.dags.scripts.fence_choice import NoFence, fence_for
from wms.dags.scripts.fences import Fence, Sandbox, search_path
from wms.dags.scripts.process import Command, Limits, run_process
from wms.dags.scripts.slots import NoSlot, Slot, acquired_slot
from wms.dags.scripts.trees import entries_of, open_anyway, opened, remove_tree
from wms.pilots.agent.fence.host_view import BASE, is_below
from wms.placement.modules.fenced import NoWorkplace, Program, ProgramEnd, ProgramLimits

_READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextmanager
def fenced_workplace(readable: Sequence[str], has_network: bool) -> Iterator[FencedWorkplace]:
    """A folder in a free slot, and the fence around it. Raises NoWorkplace."""
    conf = script_conf()
    extra = [each for each in readable if not any(is_below(each, base) for base in BASE)]
    conf = replace(conf, has_network=has_network, readable=(*conf.readable, *extra))
    try:
        with acquired_slot(conf.folder, first_uid=conf.first_uid) as slot:
            yield from _in_slot(slot, conf)
    except (NoSlot, NoFence) as error:
        raise NoWorkplace(str(error)) from None


def _in_slot(slot: Slot, conf: ScriptConf) -> Iterator[FencedWorkplace]:
    folder = slot.folder / "transfer"
    remove_tree(folder)
    folder.mkdir(mode=0o700)
    slot.give_to_account(folder)
    # What a script has left there unrecorded stays marked.
    was_in_use = slot.mark.exists()
    slot.mark.touch()
    try:
        fence = fence_for(conf, Sandbox(folder, slot.tmp, slot.shm, slot.uid))
        yield FencedWorkplace(folder, fence, slot, conf)
    finally:
        remove_tree(folder)
        slot.make_temporary_folders()
        if not was_in_use:
            slot.mark.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class FencedWorkplace:
    """Folder in a slot, with the fence around it."""

    folder: Path
    fence: Fence
    slot: Slot
    conf: ScriptConf

    @property
    def root(self) -> str:
        """The folder, as programs see it."""
        return self.fence.root

    def open_file(self, name: str) -> BinaryIO:
        """A file that a program has left. Raises OSError for a link, and what is no file."""
        with opened(self.folder) as folder:
            # Without waiting: it may be a pipe.
            descriptor = open_anyway(name, _READING, at=folder)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(f"{name} is no regular file")
        return os.fdopen(descriptor, "rb")

    def run(
        self, program: Program, limits: ProgramLimits, *, heartbeat: Callable[[], None]
    ) -> ProgramEnd:
        """Run a program in the folder; what is in it becomes that of the program's account."""
        self._hand_over()
        command = Command(
            executable=program.executable,
            arguments=program.arguments,
            directory="",
            environment={"PATH": search_path(), "LANG": "C.UTF-8", **program.environment},
        )
        done = run_process(self.fence, command, self._limits(limits), heartbeat=heartbeat)
        return ProgramEnd(done.exit_code, done.failure, done.output)

    def _hand_over(self) -> None:
        with opened(self.folder) as folder:
            for entry in entries_of(folder):
                if self.slot.uid is not None:
                    os.chown(
                        entry.name, self.slot.uid, self.slot.uid,
                        dir_fd=entry.folder, follow_symlinks=False,
                    )  # fmt: skip

    def _limits(self, limits: ProgramLimits) -> Limits:
        return Limits(
            wall_s=limits.wall_s,
            # It may compute all the time that it has.
            cpu_s=ceil(limits.wall_s),
            memory_mb=self.conf.memory_mb,
            processes=self.conf.processes,
            file_bytes=limits.file_bytes,
            output_bytes=limits.output_bytes,
            stall_s=limits.stall_s,
        )
