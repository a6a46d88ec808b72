"""The example production whose files are moved by DATA nodes."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tests.factories import pilot, run_job, turn
from tests.wms.dags.scripts.conftest import files_of
from wms.core.actors import Actor
from wms.dags.submission.checking import check_dag
from wms.dags.submission.submit import DagSubmission, submit_dag
from wms.placement import runner
from wms.placement.models import PlacementRequest
from wms.sites.models import Queue
from wms.sites.services import QueueSpec, SiteSpec, configure_site

FOLDER = Path(__file__).parents[3] / "examples" / "montecarlo"
NAMES = [path.name for path in FOLDER.iterdir() if path.suffix != ".md"]


def test_the_whole_dag_has_no_fault():
    files = {name: io.BytesIO((FOLDER / name).read_bytes()) for name in NAMES}

    checked = check_dag(["placed.dag"], files=files, owner=None)

    assert (checked.findings, len(checked.dag.nodes)) == ([], 50)


@pytest.fixture
def areas(tmp_path, settings) -> dict[str, Path]:
    """The working areas of two sites, which the portal reaches."""
    made = {name: tmp_path / name for name in ("near", "far")}
    for area in made.values():
        area.mkdir()
    values = {"ROOTS": [str(tmp_path)]}
    settings.PILOTAGE = settings.PILOTAGE | {"PLACEMENT": settings.PILOTAGE["PLACEMENT"] | values}
    return made


@pytest.mark.slow
@pytest.mark.django_db
def test_the_files_follow_the_dag_to_its_site(alice, olga, areas):
    for name, area in areas.items():
        configure_site(
            SiteSpec(
                name=name, environment=f"SiteWorkingArea={area}",
                attributes="Is_USCMS_Site = true" if name == "near" else "",
            ),
            [QueueSpec(name="main", element="host", max_pilots=2)], actor=Actor.person(olga),
        )  # fmt: skip
    text = (FOLDER / "placed.dag").read_text().partition("# Part 02")[0].replace(" Merge", "")
    dag = submit_dag(
        DagSubmission(
            dag_name="placed.dag",
            dag_text=text,
            files={name: io.BytesIO((FOLDER / name).read_bytes()) for name in NAMES},
            description_name="montecarlo.sub",
            description_text=(FOLDER / "montecarlo.sub").read_text(),
        ),
        owner=alice,
        actor=Actor.person(alice),
    )
    turn()
    runner.run_due()
    folder = areas["near"] / f"{dag.pk}-01"
    assert {each.name for each in folder.iterdir()} == {"parameters.json", "calibration.csv"}

    turn()
    (folder / "histogram.json").write_text("counts")
    assert run_job(pilot(Queue.objects.get(site__name="near"))).state == "done"
    for _ in range(3):
        turn()
        runner.run_due()

    dag.refresh_from_db()
    assert dag.state == "completed", dag.state_reason
    assert files_of(dag)["hist_01.json"] == "counts"
    assert list(folder.iterdir()) == list(areas["far"].iterdir()) == []
    assert PlacementRequest.objects.filter(state="completed").count() == 6
