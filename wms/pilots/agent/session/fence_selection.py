"""Choice of the pilot's fence for payloads: the queue's or `auto`, tried on this node.

`auto` is bubblewrap where it works, else no fence. Also the trial of containers for jobs with
images.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from ..control import Control
from ..fence import network
from ..fence.apptainer import ApptainerFence
from ..fence.base import Enclosure, Fence, FenceUnusable
from ..fence.bwrap import BwrapFence
from ..fence.container import Containers, ImageEnclosure
from ..fence.mapped_accounts import NO_MAP, AccountMap
from ..fence.network import Network
from ..fence.sudo import SudoFence
from ..files.job_directories import JobDirectories
from ..payload import execution
from ..payload.meter import Meter
from ..resources.limits import Limits

AUTO = "auto"
_TRIAL = ("/bin/sh", "-c", ': >trial && : >"$TMPDIR/trial"')
_TRIAL_S = 30.0
#: The same in a container, by the node's own Python: no other program is there.
_TRIAL_IN_IMAGE = "import os; [open(f'{each}/trial', 'w') for each in ('.', os.environ['TMPDIR'])]"

_E = TypeVar("_E", bound=Enclosure)

log = logging.getLogger("pilot")


def best_fence(work_dir: Path) -> Fence:
    """Fence that `auto` means on this node: bubblewrap where it works, else none."""
    try:
        return fence_named("bwrap", work_dir, Network(network.AUTO))
    except FenceUnusable as error:
        log.warning("payloads are NOT fenced in on this node: bwrap: %s", error)
        return Fence()


def fence_named(name: str, work_dir: Path, wanted: Network, accounts: AccountMap = NO_MAP) -> Fence:
    """Fence that a queue names, around payloads in the network that it wants.

    Raises FenceUnusable where it does not work.
    """
    if wanted.name != network.AUTO:
        return _working(name, work_dir, wanted, accounts)
    if name == "none":
        return Fence()
    try:
        return _working(name, work_dir, Network(network.NODE), accounts)
    except FenceUnusable as error:
        fence = _working(name, work_dir, Network(network.OPEN), accounts)
        log.warning("link-local addresses are NOT kept from payloads on this node: %s", error)
        return fence


def _working(name: str, work_dir: Path, wanted: Network, accounts: AccountMap = NO_MAP) -> Fence:
    makers: dict[str, Callable[[Network], Fence]] = {
        "bwrap": BwrapFence,
        "apptainer": lambda wanted: ApptainerFence(work_dir, wanted),
        "sudo": lambda wanted: SudoFence(wanted, accounts),
        "none": Fence,
    }
    if name not in makers:
        raise FenceUnusable(f"this pilot knows no fence {name!r}")
    try:
        fence = makers[name](wanted)
        if name != "none":
            _try(fence.enclose, lambda enclosure: _TRIAL, work_dir)
    except OSError as error:
        raise FenceUnusable(str(error)) from error
    return fence


def working_containers(work_dir: Path, fence: Fence) -> Containers:
    """What starts containers on this node, tried. Raises FenceUnusable."""
    try:
        containers = Containers(work_dir, fence.network, fence.name)
        try_containers(containers, work_dir)
    except OSError as error:
        raise FenceUnusable(str(error)) from error
    return containers


def try_containers(containers: Containers, work_dir: Path) -> None:
    """Start a container with a trial program. Raises FenceUnusable, OSError."""

    def enclose(directories: JobDirectories) -> ImageEnclosure:
        return containers.enclose(directories, str(containers.trial_image))

    _try(enclose, lambda enclosure: [*enclosure.python, "-c", _TRIAL_IN_IMAGE], work_dir)


def _try(
    enclose: Callable[[JobDirectories], _E], command: Callable[[_E], Sequence[str]], work_dir: Path
) -> None:
    """Run a trial program in an enclosure. Raises FenceUnusable, OSError."""
    home = Path(tempfile.mkdtemp(prefix="trial-", dir=work_dir))
    try:
        directories = JobDirectories(home)
        directories.make()
        enclosure = enclose(directories)
        try:
            enclosure.enter()
            control = Control()
            limits = Limits(wall_s=_TRIAL_S)
            outcome = execution.run_payload(
                enclosure.plan(command(enclosure), {"TMPDIR": enclosure.tmp}, limits),
                stdout=home / "stdout",
                stderr=home / "stderr",
                limits=limits,
                meter=Meter(enclosure, [], limits),
                attempt=(0, 0),
                control=control,
                waker=control.waker,
            )
        finally:
            enclosure.close()
        if outcome.exit_code != 0:
            said = " ".join((home / "stderr").read_text(errors="replace").split())
            raise FenceUnusable(
                outcome.reason or said or f"a program behind it ended with {outcome.exit_code}"
            )
    finally:
        shutil.rmtree(home, ignore_errors=True)
