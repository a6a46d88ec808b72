from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.examples.production import Production

FOLDER = Path(__file__).parents[2] / "examples" / "montecarlo"
STEPS = ("StageIn", "Run", "StageOut", "CleanUp")
PARTS = [f"{number:02d}" for number in range(1, 13)]
EVENTS = 1_500


@pytest.fixture
def production(tmp_path):
    return Production(FOLDER, tmp_path / "first", events=EVENTS)


@pytest.fixture(scope="module")
def ended(processes, tmp_path_factory):
    """A production of which every node ran once."""
    production = Production(FOLDER, tmp_path_factory.mktemp("ended") / "first", events=EVENTS)
    production.run(*production.order())
    return production


def result(production, name):
    return json.loads((production.files / name).read_text())


def test_the_dag_is_twelve_jobs_of_four_steps_and_two_nodes_for_the_result(production):
    steps = {f"{step}{part}" for step in STEPS for part in PARTS}

    assert set(production.nodes) == steps | {"Merge", "Draw"}
    assert production.nodes["Merge"].parents == {f"StageOut{part}" for part in PARTS}
    assert production.nodes["Draw"].parents == {"Merge"}
    assert all(node.retries for node in production.nodes.values())


def test_each_part_has_its_own_seed_and_one_number_in_all_of_its_steps(production):
    nodes = production.nodes

    assert len({nodes[f"Run{part}"].macros["seed"] for part in PARTS}) == 12
    assert all(nodes[f"{step}{part}"].macros["part"] == part for step in STEPS for part in PARTS)


def test_every_input_is_shipped_or_the_output_of_an_earlier_node(production):
    known = {path.name for path in FOLDER.iterdir()}

    for name in production.order():
        node = production.nodes[name]
        assert known.issuperset([node.get("executable"), *node.files("transfer_input_files")])
        known.update(node.files("transfer_output_files"))


def test_every_step_starts_by_itself_and_is_readable_by_python_3_9():
    for script in FOLDER.glob("*.py"):
        assert os.access(script, os.X_OK)
        assert script.read_text().startswith("#!/usr/bin/env python3\n")
        ast.parse(script.read_text(), feature_version=(3, 9))


@pytest.mark.process
def test_every_event_is_counted_exactly_once(ended):
    merged = result(ended, "merged.json")
    counted = merged["entries"] + merged["underflow"] + merged["overflow"]

    assert [part["part"] for part in merged["parts"]] == PARTS
    assert merged["events"] == 12 * EVENTS
    assert sum(merged["counts"]) == merged["entries"]
    assert 0.4 * merged["events"] < counted < merged["events"]
    assert merged["counts"] == [
        sum(column)
        for column in zip(
            *(result(ended, f"hist_{part}.json")["counts"] for part in PARTS), strict=True
        )
    ]


def test_the_peak_is_the_z_boson(ended):
    summary = result(ended, "summary.json")

    assert summary["jobs"] == 12
    assert summary["events"] == 12 * EVENTS
    assert summary["peak_gev"] == pytest.approx(91.19, abs=0.3)
    assert 2.5 < summary["fwhm_gev"] < 5.0
    assert 0 < summary["peak_error_gev"] < 0.3
    assert [part["seed"] for part in summary["parts"]] == [910000 + n for n in range(1, 13)]


def test_the_plot_is_well_formed_and_needs_nothing_from_elsewhere(ended):
    picture = (ended.files / "mass.svg").read_text()
    root = ElementTree.fromstring(picture)

    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    texts = {element.text for element in root.iter() if element.text}
    assert "Invariant mass m(μ⁺μ⁻) [GeV]" in texts
    assert "nan" not in picture
    assert "href" not in picture
    assert "url(" not in picture


def test_nothing_stays_behind_at_the_site(ended):
    assert list(ended.working_area.iterdir()) == []
    assert list(ended.export_area.iterdir()) == []


@pytest.mark.process
def test_a_part_run_twice_at_every_step_gives_the_same_bytes(ended, production):
    for step in STEPS:
        production.run(f"{step}03", f"{step}03")

    again = (production.files / "hist_03.json").read_bytes()
    assert again == (ended.files / "hist_03.json").read_bytes()
    assert list(production.working_area.iterdir()) == []


def test_another_seed_gives_another_histogram(ended):
    assert result(ended, "hist_01.json")["counts"] != result(ended, "hist_02.json")["counts"]


@pytest.mark.process
def test_two_productions_at_one_site_do_not_meet(production, tmp_path):
    other = Production(FOLDER, tmp_path / "second", dag_id="8", events=EVENTS)
    other.working_area, other.export_area = production.working_area, production.export_area

    for step in STEPS[:3]:
        production.run(f"{step}01")
        other.run(f"{step}01")
    other.run("CleanUp01")

    assert [path.name for path in production.working_area.iterdir()] == ["7-01"]
    assert [path.name for path in production.export_area.iterdir()] == ["7-hist_01.json"]


@pytest.mark.process
def test_a_run_killed_half_way_leaves_no_histogram_and_can_be_repeated(ended, production):
    production.run("StageIn01")
    command, sandbox, environment = production.prepare("Run01")
    command[-1] = "1000000"
    with subprocess.Popen(
        command, cwd=sandbox, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    assert not (production.working_area / "7-01" / "histogram.json").exists()

    production.run("Run01", "StageOut01")

    assert result(production, "hist_01.json") == result(ended, "hist_01.json")


@pytest.mark.process
def test_a_run_without_its_inputs_asks_for_the_stage_in(production):
    failed = production.attempt("Run01")

    assert failed.returncode == 1
    assert "lacks parameters.json, calibration.csv: was it staged in" in failed.stderr


@pytest.mark.process
def test_stage_out_refuses_a_damaged_histogram(production):
    production.run("StageIn01", "Run01")
    histogram = production.working_area / "7-01" / "histogram.json"
    histogram.write_text(histogram.read_text().replace('"seed": 910001', '"seed": 910002'))

    failed = production.attempt("StageOut01")

    assert failed.returncode == 1
    assert "does not have the checksum that it was written with" in failed.stderr
    assert not (production.files / "hist_01.json").exists()


@pytest.mark.process
def test_clean_up_never_deletes_what_is_not_its_own(production):
    production.run("StageIn01")
    letter = production.working_area / "7-01" / "letter.txt"
    letter.write_text("keep me")

    failed = production.attempt("CleanUp01")

    assert "also holds letter.txt: nothing was removed" in failed.stderr
    assert letter.exists()


def merge_of(ended, tmp_path, **changes):
    """Merge the ended production's parts after replacing some (None takes the part away)."""
    parts = {f"hist_{part}.json": f"hist_{part}.json" for part in PARTS} | changes
    for name, source in parts.items():
        if source:
            (tmp_path / name).write_bytes((ended.files / source).read_bytes())
    command, _, environment = ended.prepare("Merge")
    command[1] = str(ended.files / command[1])
    return subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.process
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"hist_05.json": None}, "1 of 12 parts are missing: hist_05.json"),
        ({"hist_05.json": "hist_04.json"}, "hist_05.json holds part 04"),
        ({"hist_13.json": "hist_04.json"}, "not among the 12 parts: hist_13.json"),
        ({"hist_05.json": "parameters.json"}, "hist_05.json is no sealed histogram"),
    ],
    ids=["missing", "twice", "foreign", "no histogram"],
)
def test_merge_refuses_parts_that_are_not_there_exactly_once(ended, tmp_path, changes, reason):
    refused = merge_of(ended, tmp_path, **changes)

    assert refused.returncode == 1
    assert reason in refused.stderr
    assert not (tmp_path / "merged.json").exists()


@pytest.mark.process
def test_merge_refuses_parts_with_equal_seeds(production):
    production.nodes["Run02"].macros["seed"] = production.nodes["Run01"].macros["seed"]
    for part in ("01", "02"):
        production.run(*(f"{step}{part}" for step in STEPS))
    production.nodes["Merge"].commands.update(
        arguments="--parts 2", transfer_input_files="hist_01.json, hist_02.json"
    )

    refused = production.attempt("Merge")

    assert "parts 01 and 02 have the same seed 910001" in refused.stderr
