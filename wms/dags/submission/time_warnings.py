"""Warnings at submission about jobs that ask for more time than any queue offers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from matching.task_queues.needs import Needs
from wms.core.errors import Finding
from wms.dags.language.spec import NodeSpec
from wms.dags.submission.command_locations import command_text, location_of_command
from wms.jobs.description.needs import written_name
from wms.jobs.description.submit_file import SubmitFile
from wms.sites.vocabulary import Vocabulary

_DURATION = "allowed_execute_duration"


class LongestDurations:
    """Longest `allowed_execute_duration` of each description, with a node that has it."""

    def __init__(self) -> None:
        self._longest: dict[str, tuple[int, NodeSpec]] = {}

    def add(self, node: NodeSpec, fields: Mapping[str, Any]) -> None:
        """Add the duration of a node's job."""
        duration_s = fields.get("wall_limit_s")
        if duration_s is not None and duration_s > self._longest.get(node.source, (-1,))[0]:
            self._longest[node.source] = duration_s, node

    def beyond(self, longest_s: int) -> Iterator[tuple[int, NodeSpec]]:
        """Durations above this limit, with their nodes."""
        return (entry for entry in self._longest.values() if entry[0] > longest_s)


def time_warnings(
    submit_files: Mapping[str, SubmitFile],
    nodes_by_needs: Iterable[tuple[Needs, NodeSpec]],
    durations: LongestDurations,
    offered: Vocabulary | None,
) -> list[Finding]:
    """Warnings about times above the longest that a queue has today; each once.

    `nodes_by_needs` has the different needs of the nodes, each with a node that has them.
    """
    if offered is None or offered.longest_s is None or offered.longest_cpu_s is None:
        return []
    longest_s, longest_cpu_s = offered.longest_s, offered.longest_cpu_s
    name = written_name("cpu_time_s")
    asked = {
        Finding(
            f"{name}: no queue has {needs.cpu_time_s} s for a job today, the longest has"
            f" {longest_cpu_s} s: it will find no pilot",
            *location_of_command([name], node, submit_files[node.source]),
        )
        for needs, node in nodes_by_needs
        if needs.cpu_time_s > longest_cpu_s
    }
    limited = {
        Finding(
            f"{_DURATION}: no queue has {duration_s} s for a job today: it is stopped after"
            f" {longest_s} s at the latest",
            *location_of_command([_DURATION], node, submit_files[node.source]),
        )
        for duration_s, node in durations.beyond(longest_s)
        # The default is nobody's wish.
        if command_text(_DURATION, submit_files[node.source])
    }
    return [*asked, *limited]
