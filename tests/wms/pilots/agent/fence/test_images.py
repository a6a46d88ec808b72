"""Payloads in containers of their jobs' images, by a real Apptainer."""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.batch_systems.apptainer import apptainer_node
from tests.batch_systems.container_images import make_file, make_folder
from tests.batch_systems.services import Unavailable
from tests.wms.pilots.agent.fence.fenced_pilot import TOKEN
from tests.wms.pilots.agent.fence.fencing import USER, Fencing, Payload

#: What a hostile image has where Apptainer or a loader would look.
_HOSTILE = "echo fooled >&2; touch /job/fooled /tmp/fooled\nexport FOOLED=1 PATH=/evil\n"


@dataclass(frozen=True)
class Node:
    """A node with Apptainer, and a folder of it with images."""

    fencing: Fencing
    images: Path

    def fenced(self, image: str, **changes: object) -> Fencing:
        """What runs payloads in an image of this name, or of this path or address."""
        path = image if "/" in image else str(self.images / image)
        return replace(self.fencing, image=path, shared=(str(self.images),), **changes)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def node(processes: None) -> Iterator[Node]:
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
    yield Node(Fencing("none", account, folder / "work", node=root), images)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("image", ["plain", "plain.sif"])
def test_a_payload_runs_in_its_image_with_its_folders_and_variables(node: Node, image: str) -> None:
    told = node.fenced(image).run(
        'cat /etc/image in.txt; touch "$TMPDIR/x" /dev/shm/x && echo "$HOME $TMPDIR"; '
        'echo made >"$HOME/out.txt"; echo "$A-B$COLOUR"; ls /usr/lib; touch /etc/x || exit 3',
        inputs={"in.txt": "in\n"},
        environment={"COLOUR": 'it\'s "blue"\n$green', "A-B": "1"},
        outputs=("out.txt",),
    )

    assert (told["exit_code"], told["signal"], told["reason"]) == (3, None, "")
    assert told["stdout"] == 'an image\nin\n/job /tmp\n-Bit\'s "blue"\n$green\n'
    assert told["outputs"] == {"out.txt": "made\n"}
    assert told["is_removed"]


def test_a_file_of_the_workspace_is_the_image_and_no_file_of_the_payload(node: Node) -> None:
    fencing = node.fenced("plain.sif")

    told = replace(fencing, image="tools.sif").run(
        "cat /etc/image; ls", copied={"tools.sif": str(node.images / "plain.sif")}
    )

    assert told["stdout"] == "an image\nrun.sh\n"


@pytest.mark.parametrize("image", ["plain", "plain.sif"])
def test_a_payload_in_an_image_is_as_confined_as_behind_a_fence(node: Node, image: str) -> None:
    told = node.fenced(image).run(
        'cat "$PILOT_DIR/secret"; ls "$PILOT_DIR"; cat /proc/[0-9]*/environ | grep -c token-of; '
        "grep -E 'NoNewPrivs|CapEff|CapBnd|Seccomp:' /proc/self/status; "
        "mount -t tmpfs none /tmp || echo no mount; unshare -U true || echo no namespace; "
        'ls /proc/self/fd | grep -c .; kill -9 "$PILOT"; env | grep -c -i -E "apptainer|singul"'
    )

    assert TOKEN not in told["stdout"] + told["stderr"]
    assert told["stdout"].split() == [
        *("0", "CapEff:", "0000000000000000", "CapBnd:", "0000000000000000"),
        *("NoNewPrivs:", "1", "Seccomp:", "2", "no", "mount", "no", "namespace", "4", "0"),
    ]


def test_nothing_of_an_image_acts_before_its_payload_or_says_how_it_runs(node: Node) -> None:
    told = node.fenced("hostile").run('echo "$PATH$FOOLED"; ls /job /tmp')

    assert (told["exit_code"], told["stderr"]) == (0, "")
    assert told["stdout"] == "/usr/bin:/bin\n/job:\nrun.sh\n\n/tmp:\n"


@pytest.mark.parametrize("image", ["plain", "plain.sif"])
def test_a_payload_in_an_image_may_end_in_good_order(node: Node, image: str) -> None:
    script = "trap 'cat /etc/image; exit 5' TERM; echo ready; sleep 60 & wait"

    told = node.fenced(image).run(script, limits={"wall_s": 3.0})

    assert told["stdout"] == "ready\nan image\n"
    assert (told["exit_code"], told["stopped_by"]) == (5, "watchdog")


def test_a_signal_that_ends_a_payload_in_an_image_is_told(node: Node) -> None:
    told = node.fenced("plain").run("kill -s SEGV $$")

    assert (told["exit_code"], told["signal"]) == (None, 11)


def test_a_program_that_the_image_lacks_is_the_payloads_failure(node: Node) -> None:
    told = node.fenced("empty").run("true")

    assert (told["exit_code"], told["is_image_at_fault"]) in {(127, False), (None, True)}


@pytest.mark.parametrize(
    "image",
    ["broken.sif", "damaged.sif", "missing.sif", "/etc", "/", "/proc/self/root", "/var/tmp"],
)
def test_an_image_that_is_none_or_is_not_to_be_seen_fails_its_job(node: Node, image: str) -> None:
    told = node.fenced(image).run("true")

    assert (told["exit_code"], told["is_image_at_fault"]) == (None, True)
    assert told["tags"] == ["apptainer"]


def test_an_image_that_cannot_be_fetched_fails_its_job(node: Node) -> None:
    told = node.fenced("docker://127.0.0.1:1/none").run("true")

    assert (told["exit_code"], told["is_image_at_fault"]) == (None, True)


def test_many_images_at_fault_end_the_taking_of_such_jobs(node: Node) -> None:
    fencing = node.fenced("broken.sif")

    told = [fencing.run_all(*3 * [Payload("true")])]

    assert [] in [each["tags"] for each in told[0]]


def test_a_container_has_the_network_of_the_queue(node: Node) -> None:
    told = node.fenced("plain", fence="apptainer", network="none").run(
        "cat /proc/net/dev | grep -c :; cat /etc/hosts"
    )

    assert told["stdout"].splitlines() == ["1", "127.0.0.1 localhost", "::1 localhost"]


@pytest.mark.parametrize("changes", [{"account": "root"}])
def test_roots_pilots_start_no_containers_of_users(node: Node, changes: dict[str, str]) -> None:
    with pytest.raises(pytest.skip.Exception):
        node.fenced("plain", **changes).run("true")
