"""Outputs, logs and checkpoint files of a payload, selected for upload; long logs shortened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..files import sandbox
from ..files.job_directories import JobDirectories
from ..resources.limits import Limits
from ..server.report_delivery import Upload


class JobOutputs:
    """Logs and outputs to upload; `missing` and `problems` name the others and the reasons."""

    def __init__(
        self,
        path: str,
        names: Sequence[str],
        directories: JobDirectories,
        limits: Limits,
        *,
        elsewhere: Iterable[str] = (),
    ) -> None:
        """`path` is the prefix of the attempt's addresses, `names` are the announced outputs.

        Those that are to go `elsewhere` are left out.
        """
        self._path = path
        self._names = names
        self._directories = directories
        self._limits = limits
        self._elsewhere = frozenset(elsewhere)
        self.missing: list[str] = []
        #: Announced outputs that are folders, with the number of files in each.
        self.folders: dict[str, int] = {}
        self.problems: list[str] = []

    def logs(self, stdout: Path, stderr: Path) -> list[Upload]:
        """Uploads of stdout and stderr, shortened where they are long."""
        uploads = []
        for kind, path in (("stdout", stdout), ("stderr", stderr)):
            try:
                log_file = sandbox.bounded_log(path) if path.is_file() else None
            except OSError as error:
                # A payload that prints until the disk is full leaves no room for shortening.
                self.problems.append(f"{kind} was not stored: {error}")
                continue
            if log_file is not None and log_file.stat().st_size:
                uploads.append(self._upload(kind, kind, log_file))
        return uploads

    def outputs(self) -> list[Upload]:
        """Uploads of the announced files that exist, as long as all together are not too large."""
        uploads: dict[str, Upload] = {}
        limit_mb = self._limits.output_sandbox_mb
        total_mb = 0.0
        for announced in self._names:
            if announced in self._elsewhere:
                continue
            for name in self._files_of(announced):
                source = sandbox.find_output(self._directories.sandbox, name)
                if source is None:
                    self.missing.append(name)
                    continue
                total_mb += source.stat().st_size / 2**20
                if limit_mb is not None and total_mb > limit_mb:
                    self.missing.append(name)
                    self.problems.append(
                        f"output {name} was not sent: up to it the outputs have {total_mb:.1f} MB, "
                        f"over the limit of {limit_mb:g} MB"
                    )
                    continue
                uploads[name] = self._upload("output", name, source)
        return list(uploads.values())

    def checkpoint(self) -> list[Upload]:
        """Uploads of the files of a checkpoint; `missing` names those that are not there."""
        uploads: dict[str, Upload] = {}
        for announced in self._names:
            for name in self._files_of(announced):
                source = sandbox.find_output(self._directories.sandbox, name)
                if source is None:
                    self.missing.append(name)
                else:
                    uploads[name] = self._upload("incoming", name, source)
        return list(uploads.values())

    def folders_json(self) -> list[dict[str, Any]]:
        """The announced folders, as a report tells them."""
        return [{"name": name, "files": number} for name, number in self.folders.items()]

    def _files_of(self, announced: str) -> list[str]:
        """The announced file itself, or the files in it if it is a folder."""
        directory = self._directories.sandbox
        if not announced.endswith("/") and not sandbox.is_folder(directory, announced):
            return [announced]
        if not sandbox.is_folder(directory, announced):
            self.missing.append(announced)
            return []
        try:
            names = sandbox.files_below(directory, announced)
        except (sandbox.BadPath, OSError) as error:
            self.missing.append(announced)
            self.problems.append(f"output {announced} was not sent: {error}")
            return []
        self.folders[announced] = len(names)
        return names

    def _upload(self, kind: str, name: str, source: Path) -> Upload:
        return Upload(
            path=f"{self._path}/files/{kind}/{name}",
            source=source,
            label=f"{kind} {name}",
            output=name if kind == "output" else "",
        )
