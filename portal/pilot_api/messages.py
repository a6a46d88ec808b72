"""What pilots send and receive, between JSON and the values of the domain."""

from __future__ import annotations

from typing import Any

from matching.needs import Resource
from portal.pilot_api.bodies import MAX_AMOUNT, Fields
from wms.jobs.attempts import PayloadEnd
from wms.pilots.models import Pilot
from wms.pilots.services import AttemptRef, HeartbeatAnswer, Work


def read_node(fields: Fields) -> dict[str, Any]:
    """The facts of a worker node; unknown ones are dropped."""
    texts = ("hostname", "platform", "python", "agent_version")
    numbers = ("cores", "memory_mb", "disk_mb")
    return {
        **{name: fields.text(name, max_length=255) for name in texts},
        **{name: fields.integer(name, maximum=MAX_AMOUNT) for name in numbers},
    }


def read_attempts(fields: Fields) -> list[AttemptRef]:
    """The attempts that a pilot says it has."""
    return [
        AttemptRef(each.integer("job", maximum=2**63 - 1), each.integer("attempt"))
        for each in fields.objects("jobs")
    ]


def read_resource(fields: Fields, pilot: Pilot) -> Resource:
    """What the pilot offers now: never more than its queue does.

    Whoever holds a pilot's token cannot draw jobs that the queue was not made for. Only the name
    of the platform is the node's, where the queue leaves it open.
    """
    queue = pilot.queue
    fields.texts("tags")
    return Resource(
        site=queue.site.name,
        cpu_time_s=min(fields.amount("cpu_time_s"), queue.wall_time_s),
        cores=min(fields.integer("cores"), queue.cores),
        memory_mb=min(fields.amount("memory_mb"), queue.memory_mb),
        platform=queue.platform or fields.text("platform", max_length=64),
        tags=tuple(sorted(queue.tags)),
    )


def read_end(fields: Fields) -> PayloadEnd:
    """How a payload ended."""
    return PayloadEnd(
        exit_code=fields.integer("exit_code", maximum=255) if fields.has("exit_code") else None,
        signal=fields.integer("signal", maximum=255) if fields.has("signal") else None,
        wall_s=fields.number("wall_s"),
        cpu_s=fields.number("cpu_s"),
        max_rss_mb=fields.number("max_rss_mb"),
        reason=fields.text("reason"),
        missing_outputs=fields.texts("missing_outputs"),
    )


def heartbeat_json(answer: HeartbeatAnswer) -> dict[str, Any]:
    """The commands that travel back to a pilot."""
    commands: list[dict[str, Any]] = [
        {"command": "kill", "job": ref.job_id, "attempt": ref.number} for ref in answer.kill
    ]
    if answer.is_drained:
        commands.append({"command": "drain"})
    return {"commands": commands}


def work_json(work: Work | None) -> dict[str, Any]:
    """A claimed job, or that there is none."""
    if work is None:
        return {"job": None, "reason": "no waiting job fits this pilot"}
    job = work.job
    inputs = [
        {"path": path, "sha256": blob.sha256, "size_bytes": blob.size_bytes}
        for path, blob in work.inputs.items()
    ]
    return {
        "job": {
            "job": work.attempt.job_id,
            "attempt": work.attempt.number,
            "name": job.name,
            "executable": job.executable,
            "arguments": job.arguments,
            "environment": job.environment,
            "inputs": inputs,
            "outputs": job.output_files,
            "wall_limit_s": job.wall_limit_s,
        }
    }
