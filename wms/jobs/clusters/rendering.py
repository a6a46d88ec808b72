"""Renderer of clusters: makes the job of each row of the table from the submit description.

References to the site are left for the claim. Also the changes that people made for all jobs of a
cluster (`Overrides`), applied to each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from matching.descriptions.macro_functions import SEED
from matching.descriptions.macros import Budget
from wms.core.errors import PilotageError
from wms.jobs.clusters.parameters.tables import Place, Tables, row_values
from wms.jobs.description.compiled_description import CompiledDescription
from wms.jobs.description.job_ad import RETRY
from wms.jobs.description.job_fields import checked_length
from wms.jobs.description.job_paths import JobPaths
from wms.jobs.description.renderer_inputs import CannotRender, CommandSet, Identity, SiteValues
from wms.jobs.description.stages import stages_of
from wms.jobs.description.submit_file import SubmitFile
from wms.jobs.specs import JobSpec, SharedValues

_NO_SITE = SiteValues()


@dataclass(frozen=True, slots=True)
class Overrides:
    """Changes for all jobs of a cluster since its submission; None is not changed."""

    priority: int | None = None
    sites: tuple[str, ...] | None = None
    banned_sites: tuple[str, ...] | None = None
    memory_mb: int | None = None

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Overrides:
        """Overrides from the column of a cluster."""
        known: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in stored.items()
        }
        return cls(**known)

    @property
    def needs(self) -> dict[str, Any]:
        """Those of the needs."""
        names = ("sites", "banned_sites", "memory_mb")
        given = {name: getattr(self, name) for name in names}
        return {name: value for name, value in given.items() if value is not None}

    def applied_to(self, spec: JobSpec) -> JobSpec:
        """The job with these."""
        if self == _NO_OVERRIDES:
            return spec
        if self.priority is not None:
            spec = replace(spec, priority=self.priority)
        return replace(spec, needs=replace(spec.needs, **self.needs)) if self.needs else spec


_NO_OVERRIDES = Overrides()


class ClusterRenderer:
    """Makes jobs of the rows of a cluster's tables; the description is compiled once.

    No site is known: `$$(...)` and `$ENV(...)` are filled in by the claim. Raises CannotRender.
    """

    def __init__(
        self,
        description: SubmitFile,
        identity: Identity,
        *,
        cluster_id: int,
        name: str,
        overrides: Overrides | None = None,
    ) -> None:
        self._name = name
        self._overrides = overrides or _NO_OVERRIDES
        number = str(cluster_id)
        self._given = {"cluster": number, "clusterid": number, SEED: f"{number}/", RETRY: "0"}
        self._stages = list(stages_of(description))
        self._compiled = [
            CompiledDescription(
                CommandSet(
                    {n: text for n, text in stage.commands.items() if n not in stage.own_names},
                    stage.attributes,
                    faulty=frozenset(description.faulty),
                ),
                identity,
                _NO_SITE,
                is_late=True,
            )
            for stage in self._stages
        ]
        faults = [fault for compiled in self._compiled for fault in compiled.faults]
        if faults:
            raise CannotRender.together(faults)
        self._names = [stage.queue.names for stage in self._stages]
        #: Whether all jobs of a statement are the same.
        self.is_same = [
            stage.own_names.isdisjoint(compiled.names)
            for stage, compiled in zip(self._stages, self._compiled, strict=True)
        ]
        self._same: dict[int, JobSpec] = {}
        self._paths = JobPaths()
        self._shared = [self._shared_values(compiled) for compiled in self._compiled]

    def job(self, place: Place, row: str, tables: Tables) -> JobSpec:
        """The job of a row. Raises CannotRender."""
        if place.statement in self._same:
            return self._same[place.statement]
        try:
            spec = self._overrides.applied_to(self._spec(place, row, tables))
        except CannotRender:
            raise
        except (ValueError, PilotageError) as error:
            raise CannotRender(str(error)) from error
        if self.is_same[place.statement]:
            self._same[place.statement] = spec
        return spec

    def _spec(self, place: Place, row: str, tables: Tables) -> JobSpec:
        compiled = self._compiled[place.statement]
        process, index = str(place.process), str(place.row)
        values = self._given | {
            "process": process,
            "procid": process,
            "step": str(place.step),
            "row": index,
            "itemindex": index,
        }
        values |= row_values(self._names[place.statement], row, tables.kind(place.statement))
        budget = Budget()
        fields = compiled.fields(values, {}, budget)
        fields["attributes"] = compiled.attributes(values, {}, budget)
        fields |= self._paths.workspace_paths(fields, "")
        spec = JobSpec(name=self._name, shared=self._shared[place.statement], **fields)
        checked_length(spec)
        return spec

    def _shared_values(self, compiled: CompiledDescription) -> SharedValues:
        """What the jobs of a statement have in common."""
        values = compiled.shared({})
        values |= self._paths.shared_paths(values, "")
        if "needs" in values and self._overrides.needs:
            values["needs"] = replace(values["needs"], **self._overrides.needs)
        return SharedValues.of(values)
