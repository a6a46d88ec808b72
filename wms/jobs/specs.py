"""Specification of a job to be submitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from matching.task_queues.needs import Needs

#: Stands in the texts of a job for the number of its cluster, which is known once it is stored.
CLUSTER_MARK = "\ue000"


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A job to be submitted. Its files have their names in the job's directory, the executable in
    the whole workspace. With `mentions_cluster` CLUSTER_MARK stands for the cluster's number in
    its texts.

    `max_retries` is how often a payload that failed is run again. `periodic` are the expressions
    that decide about the job while it is in the queue and when it ends; see `wms.jobs.expressions`.
    `avoided_hosts` have failed another job that did the same.
    """

    name: str
    executable: str
    needs: Needs
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    input_files: tuple[str, ...] = ()
    output_files: tuple[str, ...] = ()
    stdout_name: str = ""
    stderr_name: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    wall_limit_s: int = 86_400
    max_attempts: int = 5
    priority: int = 1
    max_retries: int = 0
    periodic: Mapping[str, str] | None = None
    request_disk_mb: int = 0
    directory: str = ""
    mentions_cluster: bool = False
    avoided_hosts: tuple[str, ...] = ()
