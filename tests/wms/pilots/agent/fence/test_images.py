"""Payloads in containers of their jobs' images, by a real Apptainer."""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.batch_systems.apptainer import apptainer_node
from tests.batch_systems.container_images import make_file, make_folder
from tests.batch_systems.services import Unavailable
from tests.wms.pilots.agent.fence.fenced_pilot import TOKEN
from tests.wms.pilots.agent.fence.fencing import (
    USER,
    Fencing,
    Payload,
    pilot_code,
    skip_if_unusable,
)

__all__ = ["pilot_code"]

#: Name of an image in a job's workspace.
COPIED = "tools.sif"

#: What a hostile image has where Apptainer or a loader would look.
_HOSTILE = "echo fooled >&2; touch /job/fooled /tmp/fooled\nexport FOOLED=1 PATH=/evil\n"


@dataclass(frozen=True)
class Node:
    """A node with Apptainer, and a folder of it with images."""

    fencing: Fencing
    images: Path

    def run(self, *payloads: Payload, at_once: int | None = None) -> list[Any]:
        """Run payloads in one pilot, in images of the folder, or at paths and addresses."""
        placed = [replace(each, image=self._place(each.image or "plain")) for each in payloads]
        found = self.fencing.run_all(*placed, at_once=at_once)
        return [skip_if_unusable(self.fencing, each) for each in found]

    def _place(self, image: str) -> str:
        return image if "/" in image or image == COPIED else str(self.images / image)


@pytest.fixture(scope="module")
def node(pilot_code: Path) -> Iterator[Node]:
    try:
        root = apptainer_node()
    except Unavailable as error:
        pytest.skip(str(error))
    folder = Path(tempfile.mkdtemp(prefix="pilotage-images-", dir="/var/tmp"))
    folder.chmod(0o755)
    images = folder / "images"
    make_folder(images / "plain", root)
    make_folder(images / "hostile", root)
    scripts = images / "hostile/.singularity.d/env"
    scripts.mkdir(parents=True)
    for name in ("10-docker2singularity.sh", "90-environment.sh", "99-base.sh"):
        (scripts / name).write_text(_HOSTILE)
    (images / "hostile/etc/ld.so.preload").write_text("/lib/evil.so\n")
    (images / "hostile/.pilotage").symlink_to("/job")
    (images / "broken.sif").write_bytes(b"no image")
    (images / "empty").mkdir()
    make_file(images / "plain.sif", images / "plain", root)
    damaged = bytearray((images / "plain.sif").read_bytes())
    damaged[-4096:] = bytes(4096)
    damaged[36864:40960] = bytes(4096)
    (images / "damaged.sif").write_bytes(damaged)
    account = USER if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    fencing = Fencing(
        "none", account, folder / "work", pilot_code, node=root, shared=(str(images),)
    )
    yield Node(fencing, images)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("image", ["plain", "plain.sif"])
def test_a_payload_in_its_image_has_its_folders_and_variables_ends_in_good_order_and_is_confined(
    node: Node, image: str
) -> None:
    whole = Payload(
        'cat /etc/image in.txt; touch "$TMPDIR/x" /dev/shm/x && echo "$HOME $TMPDIR"; '
        'echo made >"$HOME/out.txt"; echo "$A-B$COLOUR"; ls /usr/lib; touch /etc/x || exit 3',
        inputs={"in.txt": "in\n"},
        environment={"COLOUR": 'it\'s "blue"\n$green', "A-B": "1"},
        outputs=("out.txt",),
        image=image,
    )
    stopped = Payload(
        "trap 'cat /etc/image; exit 5' TERM; echo ready; sleep 60 & wait",
        limits={"wall_s": 3.0},
        image=image,
    )
    curious = Payload(
        'cat "$PILOT_DIR/secret"; ls "$PILOT_DIR"; cat /proc/[0-9]*/environ | grep -c token-of; '
        "grep -E 'NoNewPrivs|CapEff|CapBnd|Seccomp:' /proc/self/status; "
        "mount -t tmpfs none /tmp || echo no mount; unshare -U true || echo no namespace; "
        'ls /proc/self/fd | grep -c .; kill -9 "$PILOT"; env | grep -c -i -E "apptainer|singul"',
        image=image,
    )

    ran, ended, confined = node.run(whole, stopped, curious)

    assert (ran["exit_code"], ran["signal"], ran["reason"]) == (3, None, "")
    assert ran["stdout"] == 'an image\nin\n/job /tmp\n-Bit\'s "blue"\n$green\n'
    assert ran["outputs"] == {"out.txt": "made\n"}
    assert ran["is_removed"]
    assert ended["stdout"] == "ready\nan image\n"
    assert (ended["exit_code"], ended["stopped_by"]) == (5, "watchdog")
    assert TOKEN not in confined["stdout"] + confined["stderr"]
    assert confined["stdout"].split() == [
        *("0", "CapEff:", "0000000000000000", "CapBnd:", "0000000000000000"),
        *("NoNewPrivs:", "1", "Seccomp:", "2", "no", "mount", "no", "namespace", "4", "0"),
    ]


def test_what_an_image_brings_is_used_by_its_payload_and_by_nothing_else(node: Node) -> None:
    copied = {COPIED: str(node.images / "plain.sif")}

    of_workspace, hostile, signalled, lacking = node.run(
        Payload("cat /etc/image; ls", copied=copied, image=COPIED),
        Payload('echo "$PATH$FOOLED"; ls /job /tmp', image="hostile"),
        Payload("kill -s SEGV $$", image="plain"),
        Payload("true", image="empty"),
    )

    # A file of the workspace is the image, and no file of the payload.
    assert of_workspace["stdout"] == "an image\nrun.sh\n"
    # Nothing of an image acts before its payload, or says how it runs.
    assert (hostile["exit_code"], hostile["stderr"]) == (0, "")
    assert hostile["stdout"] == "/usr/bin:/bin\n/job:\nrun.sh\n\n/tmp:\n"
    assert (signalled["exit_code"], signalled["signal"]) == (None, 11)
    # A program that the image lacks is the payload's failure.
    assert (lacking["exit_code"], lacking["is_image_at_fault"]) in {(127, False), (None, True)}


def test_an_image_that_is_none_or_is_not_to_be_seen_or_fetched_fails_its_job(node: Node) -> None:
    at_fault = [
        *("broken.sif", "damaged.sif", "missing.sif", "/etc", "/", "/proc/self/root", "/var/tmp"),
        "docker://127.0.0.1:1/none",
    ]
    # A good one after two, for many at fault in a row would end the taking of such jobs.
    images = [*at_fault]
    for place in (6, 4, 2):
        images.insert(place, "plain")

    told = node.run(*(Payload("true", image=each) for each in images), at_once=1)

    found = [
        (image, each["exit_code"], each["is_image_at_fault"], each["tags"])
        for image, each in zip(images, told, strict=True)
    ]
    assert [each for each in found if each[0] != "plain"] == [
        (image, None, True, ["apptainer"]) for image in at_fault
    ]
    assert [each[1] for each in found if each[0] == "plain"] == [0, 0, 0]


def test_many_images_at_fault_end_the_taking_of_such_jobs(node: Node) -> None:
    told = node.run(*3 * [Payload("true", image="broken.sif")])

    assert [] in [each["tags"] for each in told]


def test_a_container_has_the_network_of_the_queue(node: Node) -> None:
    payload = Payload("cat /proc/net/dev | grep -c :; cat /etc/hosts", network="none")

    [told] = replace(node, fencing=replace(node.fencing, fence="apptainer")).run(payload)

    assert told["stdout"].splitlines() == ["1", "127.0.0.1 localhost", "::1 localhost"]


def test_roots_pilots_start_no_containers_of_users(node: Node) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can be root's pilot")

    [told] = replace(node.fencing, account="root").run_all(
        Payload("true", image=str(node.images / "plain"))
    )

    assert "fails" in told
