"""Places of findings about a cluster: line of a description, member of JSON, row of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from wms.core.errors import Finding
from wms.jobs.clusters.json_description import ROWS, JsonDescription
from wms.jobs.clusters.parameters.new_tables import NewTable
from wms.jobs.clusters.parameters.tables import CELL_END, Place
from wms.jobs.description.submit_file import SubmitFile

_SHOWN = 80


@dataclass(slots=True)
class Places:
    """Where a description's commands stand. `made` is what was made of one in JSON."""

    file: str
    made: JsonDescription | None = None
    description: SubmitFile | None = None

    def located(self, finding: Finding) -> Finding:
        """A finding by line, with its place in what was sent."""
        if self.made is None or finding.file not in ("", self.file):
            return finding
        return self.made.located(finding)

    def of_command(self, message: str, names: Sequence[str]) -> Finding:
        """A finding about the first of these commands and attributes that is given."""
        lines = self.description.lines if self.description is not None else {}
        numbers = (lines.get(name.removeprefix("+").lower()) for name in names)
        line = next((number for number in numbers if number), None)
        found = self.located(Finding(message, file=self.file, line=line))
        if self.made is not None and not found.field and names:
            return replace(found, field=names[0])
        return found

    def of_queue(self, message: str) -> Finding:
        """A finding about the queue statements."""
        queues = self.description.queues if self.description is not None else []
        line = queues[-1].line if queues else None
        return self.located(Finding(message, file=self.file, line=line))

    def of_row(self, message: str, names: Sequence[str], place: Place, table: NewTable) -> Finding:
        """A finding about a row, or about the command that cannot be made of it."""
        shown = table.text_of(place.row).replace(CELL_END, ", ")[:_SHOWN]
        if self.made is not None and self.made.rows is not None:
            return Finding(message, field=f"{ROWS}[{place.row}]")
        if table.file:
            line = table.line_of(place.row)
            return Finding(message, file=table.file, line=line)
        told = f"job {place.process}" + (f" ({shown})" if shown else "")
        return self.of_command(f"{told}: {message}", names)
