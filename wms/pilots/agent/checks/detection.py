"""Detection of a node's software by built-in checks: Apptainer, CVMFS repositories, GPUs, CUDA.

They publish what they find, and no node fails them, also where one is not over in time.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import threading
import time
from collections.abc import Sequence

from ..programs import NoAnswer, answer_of
from .finding import Finding, Given

#: Time for one program to answer, and for all repositories to be listed.
COMMAND_TIMEOUT_S = 15.0
LISTING_TIMEOUT_S = 15.0
CVMFS_ROOT = "/cvmfs"
_VERSION = re.compile(r"\d+(?:\.\d+)+[\w.+-]{0,40}")
_CUDA = re.compile(r"CUDA Version:\s*(\d{1,3}\.\d{1,3})")
_ERROR_LENGTH = 200


def apptainer(given: Given) -> Finding:
    """Program that starts containers, Apptainer or Singularity, and its version."""
    del given
    program = shutil.which("apptainer") or shutil.which("singularity")
    if program is None:
        return Finding(attributes={"Available": False})
    name = os.path.basename(program)
    try:
        version = _VERSION.search(answer_of([program, "--version"], COMMAND_TIMEOUT_S))
    except NoAnswer as error:
        return Finding(metrics={name: str(error)}, attributes={"Available": False})
    found = {"Available": True, "Program": name}
    return Finding(attributes=found | ({"Version": version.group()} if version else {}))


def cvmfs(given: Given) -> Finding:
    """Repositories of the setting, below `root`, that can be listed in time and are not empty."""
    settings = given["settings"]
    names = settings.get("repositories", [])
    found = _listable(settings.get("root", CVMFS_ROOT), names)
    present = [name for name in names if name in found]
    missing = [name for name in names if name not in found]
    return Finding(
        metrics={"missing": ", ".join(missing)[:_ERROR_LENGTH]} if missing else {},
        attributes={"Available": not missing, "Repositories": ",".join(present)},
    )


def gpu(given: Given) -> Finding:
    """GPUs of the node, with model, least memory and driver, and the CUDA that this supports."""
    del given
    program = shutil.which("nvidia-smi")
    if program is None:
        return Finding(attributes={"Count": 0})
    query = [program, "--query-gpu=name,memory.total,driver_version"]
    try:
        rows_text = answer_of([*query, "--format=csv,noheader,nounits"], COMMAND_TIMEOUT_S)
        lines = rows_text.strip().splitlines()
        header = answer_of([program], COMMAND_TIMEOUT_S)
    except NoAnswer as error:
        return Finding(metrics={"nvidia_smi": str(error)})
    rows = [[cell.strip() for cell in line.split(",")] for line in lines]
    rows = [row for row in rows if len(row) == 3]
    found: dict[str, object] = {"Count": len(rows)}
    if rows:
        found.update(Model=rows[0][0], DriverVersion=rows[0][2])
    memory_mb = [int(memory) for _, memory, _ in rows if memory.isdigit()]
    if memory_mb:
        found["MemoryMb"] = min(memory_mb)
    cuda = _CUDA.search(header)
    if cuda:
        found["CudaVersion"] = float(cuda.group(1))
    return Finding(attributes=found)


def _listable(root: str, names: Sequence[str]) -> list[str]:
    """Directories that have entries; a mount that hangs has none, and delays no other."""
    found: list[str] = []

    def look(name: str) -> None:
        # Of those that fail, nothing is to be told.
        with contextlib.suppress(OSError), os.scandir(os.path.join(root, name)) as entries:
            if next(entries, None) is not None:
                found.append(name)

    threads = [threading.Thread(target=look, args=(name,), daemon=True) for name in names]
    for thread in threads:
        thread.start()
    until = time.monotonic() + LISTING_TIMEOUT_S
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return list(found)
