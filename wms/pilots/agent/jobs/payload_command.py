"""Command and environment of a payload, as its enclosure shows it the node or its image."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ..fence.base import Enclosure
from ..fence.container import IMAGE_PATH
from .job_description import Job

#: Variables of the pilot's environment that a payload sees; the job's own come on top.
PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ")


def payload_command(job: Job, executable: str, enclosure: Enclosure) -> list[str]:
    """Command of the payload, with its standard input if it has one."""
    command = [executable, *job.arguments]
    if not job.stdin:
        return command
    # Fences give a payload nothing to read: the shell opens the file, and becomes the payload.
    path = f"{enclosure.home}/{job.stdin}"
    return ["/bin/sh", "-c", 'exec <"$0" && exec "$@"', path, *command]


def payload_environment(
    job: Job, enclosure: Enclosure, published: Mapping[str, str], server_url: str
) -> dict[str, str]:
    """Variables of the payload: its own, before those of the pilot, before `published` ones.

    One that has a token is told where it is, and the portal, at `server_url`, that it is for.
    """
    passed_on = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    if not enclosure.has_node_system:
        # What the node's say does not hold in the image.
        passed_on = {"PATH": IMAGE_PATH}
    network = enclosure.network
    return {
        **published,
        **passed_on,
        "HOME": enclosure.home,
        "TMPDIR": enclosure.tmp,
        "PILOTAGE_JOB": str(job.job),
        "PILOTAGE_ATTEMPT": str(job.attempt),
        "PILOTAGE_JOB_ATTRIBUTES": enclosure.attributes_file,
        "PILOTAGE_CORES": str(job.share.cores),
        "PILOTAGE_MEMORY_MB": str(job.share.memory_mb),
        "PILOTAGE_GPUS": str(job.share.gpus),
        **({"PILOTAGE_PORTAL": server_url} if network.portal or job.bearer else {}),
        # Where programs of WLCG look for one.
        **({"BEARER_TOKEN_FILE": enclosure.token_file} if job.bearer else {}),
        "OMP_NUM_THREADS": str(job.share.cores),
        **job.environment,
    }
