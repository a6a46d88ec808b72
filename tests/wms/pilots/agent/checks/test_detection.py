"""Detection of software on a node, with programs that stand in for those of the node."""

from __future__ import annotations

from pathlib import Path

import pytest

from wms.pilots.agent.checks.detection import apptainer, cvmfs, gpu

pytestmark = pytest.mark.process

GPUS = """#!/bin/sh
if [ $# -gt 0 ]; then
  echo 'NVIDIA A100-SXM4-40GB, 40960, 550.54.15'
  echo 'NVIDIA A100-SXM4-40GB, 40536, 550.54.15'
else
  echo '| NVIDIA-SMI 550.54.15   Driver Version: 550.54.15   CUDA Version: 12.4     |'
fi
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of all programs that can be found."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def put(folder: Path, name: str, script: str) -> None:
    file = folder / name
    file.write_text(script)
    file.chmod(0o755)


def test_a_node_without_the_software_passes_and_says_so(programs: Path) -> None:
    assert apptainer({}).attributes == {"Available": False}
    assert gpu({}).attributes == {"Count": 0}
    assert not apptainer({}).reason
    assert not gpu({}).reason


@pytest.mark.parametrize(
    ("name", "words", "version"),
    [
        ("apptainer", "apptainer version 1.3.4-1.el9", "1.3.4-1.el9"),
        ("singularity", "singularity-ce version 4.1.2", "4.1.2"),
    ],
)
def test_apptainer_is_told_with_its_version(
    programs: Path, name: str, words: str, version: str
) -> None:
    put(programs, name, f"#!/bin/sh\necho '{words}'\n")

    found = apptainer({}).attributes

    assert found == {"Available": True, "Program": name, "Version": version}


def test_an_apptainer_that_does_not_start_is_none(programs: Path) -> None:
    put(programs, "apptainer", "#!/bin/sh\necho no user namespaces\nexit 255\n")

    found = apptainer({})

    assert found.attributes == {"Available": False}
    assert "exit code 255" in found.metrics["apptainer"]
    assert not found.reason


def test_gpus_are_told_with_the_cuda_of_their_driver(programs: Path) -> None:
    put(programs, "nvidia-smi", GPUS)

    assert gpu({}).attributes == {
        "Count": 2,
        "Model": "NVIDIA A100-SXM4-40GB",
        "MemoryMb": 40536,
        "DriverVersion": "550.54.15",
        "CudaVersion": 12.4,
    }


def test_a_driver_that_fails_publishes_nothing_and_fails_no_node(programs: Path) -> None:
    put(programs, "nvidia-smi", "#!/bin/sh\necho 'NVIDIA-SMI has failed'\nexit 9\n")

    found = gpu({})

    assert found.attributes == {}
    assert "has failed" in found.metrics["nvidia_smi"]
    assert not found.reason


def test_repositories_are_there_if_they_can_be_listed_and_are_not_empty(tmp_path: Path) -> None:
    (tmp_path / "sw.example.org" / "v1").mkdir(parents=True)
    (tmp_path / "empty.example.org").mkdir()
    names = ["sw.example.org", "empty.example.org", "gone.example.org"]

    some = cvmfs({"settings": {"root": str(tmp_path), "repositories": names}})
    one = cvmfs({"settings": {"root": str(tmp_path), "repositories": names[:1]}})

    assert some.attributes == {"Available": False, "Repositories": "sw.example.org"}
    assert some.metrics == {"missing": "empty.example.org, gone.example.org"}
    assert one.attributes == {"Available": True, "Repositories": "sw.example.org"}
    assert not some.reason
