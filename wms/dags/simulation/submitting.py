"""Submitting a DAG to the simulation: the real submission, then the simulated run."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction
from django.utils import timezone

from wms.core.actors import Actor
from wms.core.errors import Finding, InvalidInput, PilotageError
from wms.dags.simulation.behaviour import Behaviour
from wms.dags.simulation.options import Options
from wms.dags.simulation.outcomes import Outcome, outcome_of, refused
from wms.dags.simulation.running import Simulation
from wms.dags.simulation.supplying import PROGRAMS
from wms.dags.simulation.surroundings import Surroundings
from wms.dags.submission.runs import RunRequest, check_options, create_run
from wms.dags.submission.workspaces import put_file


def submit_and_run(
    request: RunRequest,
    behaviour: Behaviour,
    options: Options,
    surroundings: Surroundings,
    *,
    has_all_programs: bool = False,
    late_files: Mapping[str, bytes] | None = None,
) -> Outcome:
    """Submit a DAG and let it run by the virtual clock, in the caller's transaction.

    `has_all_programs`: scripts whose executables are missing run as if these were there.
    `late_files` come into the workspace after the submission.
    """
    now = timezone.now()
    try:
        with transaction.atomic():
            check_options(request.options)
            dag = create_run(request, actor=Actor.person(request.owner))
    except InvalidInput as error:
        return refused(error.findings, request.workspace)
    except PilotageError as error:
        return refused([Finding(str(error))], request.workspace)
    for path, content in (late_files or {}).items():
        put_file(request.workspace, path, content)
    surroundings.bind(dag, now=now)
    supplied = None if has_all_programs else PROGRAMS
    simulation = Simulation(dag, behaviour, options, began_at=now, supplied=supplied)
    return outcome_of(simulation.run())
