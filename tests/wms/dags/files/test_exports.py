from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import classad2
import htcondor2
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests import factories
from tests.wms.dags.files.samples import sample
from tests.wms.dags.files.story import START, Story, all_outcomes
from wms.core.errors import NotFound
from wms.core.models import User
from wms.dags.exports.catalogue import EXPORTS, export, export_name
from wms.dags.models import Edge, Node

NOW = datetime.fromtimestamp(START + 91, UTC)


def text_of(story: Story, kind: str, now: datetime = NOW) -> str:
    return "".join(export(story.dag, kind, now=now))


def ads_of(text: str) -> list[dict[str, Any]]:
    ads = classad2.parseAds(text, classad2.ParserType.New)
    return [{name: ad.eval(name) for name in ad} for ad in ads]


def events_of(story: Story, tmp_path: Path) -> list[Any]:
    """The exported log as HTCondor's own reader has it."""
    log = tmp_path / "nodes.log"
    log.write_text(text_of(story, "eventlog"))
    return list(htcondor2.JobEventLog(str(log)).events(0))


@pytest.fixture
def story(alice: User) -> Story:
    return Story(alice)


def test_the_jobstate_log_is_the_one_of_dagman(alice: User) -> None:
    expected = sample("all_outcomes/sample.jobstate.log").splitlines()

    written = text_of(all_outcomes(alice), "jobstate").splitlines()

    # A job is never suspended here, and its number tells which process it is of the cluster.
    assert written == [line for line in expected if "SUSPENDED" not in line]


def test_the_node_status_file_is_the_one_of_dagman(alice: User) -> None:
    assert text_of(all_outcomes(alice), "status") == sample("all_outcomes/sample.status")


def test_the_metrics_have_the_fields_of_dagman(alice: User) -> None:
    expected = json.loads(sample("all_outcomes/sample.dag.metrics"))

    written = json.loads(text_of(all_outcomes(alice), "metrics"))

    ours = {"version", "start_time", "end_time", "duration", "jobs_failed", "jobs_succeeded"}
    assert expected.keys() <= written.keys()
    for field in expected.keys() - ours:
        assert written[field] == expected[field], field
    assert int(written["start_time"]) == int(expected["start_time"])
    assert written["version"].startswith("Pilotage")
    assert (written["nodes"], written["nodes_failed"], written["nodes_succeeded"]) == (10, 3, 6)
    assert (written["jobs_submitted"], written["jobs_succeeded"]) == (11, 5)
    assert (written["graph_height"], written["graph_width"]) == (3, 7)
    assert (written["num_edges"], written["num_vertices"]) == (11, 10)


def test_the_event_log_tells_htcondor_what_its_own_log_told(alice: User, tmp_path: Path) -> None:
    def told(event: Any) -> tuple[Any, ...]:
        more = [event.get(name) for name in ("ReturnValue", "TerminatedBySignal", "LogNotes")]
        process = event.proc if event.cluster else event["Subproc"]
        return (int(event.type), event.cluster, process, event.timestamp, *more)

    log = tmp_path / "real.log"
    log.write_text(sample("all_outcomes/sample.dag.nodes.log"))
    real = [told(event) for event in htcondor2.JobEventLog(str(log)).events(0)]
    suspensions = {10, 11}

    written = [told(event) for event in events_of(all_outcomes(alice), tmp_path)]

    assert sorted(map(str, written)) == sorted(
        str(event) for event in real if event[0] not in suspensions
    )


def test_the_picture_is_the_one_of_dagman(alice: User) -> None:
    story = Story(alice, name="features", dag_files=["features.dag"])
    story.add("First", "Skipped", "Inline", "Sub", state="done").add("Aborter", state="failed")
    story.add("Late", state="futile").add("Cleanup", kind="final", state="done")
    story.add("S1+X", "S1+Y", state="done").add("Side", kind="service", state="submitted")
    story.arcs("First", "Skipped Inline Sub S1+X").arcs("Skipped Inline Sub S1+Y", "Aborter")
    story.arcs("Aborter", "Late").arcs("S1+X", "S1+Y")

    written = text_of(story, "dot", datetime(2026, 11, 20, 13, 52, 28, tzinfo=UTC))

    assert written == sample("features/features.dot")


@pytest.mark.parametrize(
    ("state", "look"),
    [
        ("waiting", 'shape=ellipse label="A (I)"'),
        ("ready", 'shape=ellipse label="A (I)"'),
        ("pre_running", 'shape=ellipse label="A (Pre)" style=dotted'),
        ("submitted", 'shape=ellipse label="A (R)" peripheries=2'),
        ("post_running", 'shape=ellipse label="A (Post)" style=dotted'),
        ("done", 'shape=ellipse label="A (Done)" style=bold'),
        ("failed", 'shape=box label="A (E)"'),
    ],
)
def test_the_picture_shows_the_state_of_a_node(story: Story, state: str, look: str) -> None:
    story.add("A", state=state)

    assert f'    "A" [{look}];\n' in text_of(story, "dot")


def test_a_weak_arc_is_dashed(story: Story) -> None:
    story.add("A", 'B"').arcs("A", 'B"', is_weak=True)

    (line,) = [each for each in text_of(story, "dot").splitlines() if "->" in each]

    assert line.split() == ['"A"', "->", '"B\\""', "[style=dashed];"]


def test_the_picture_tells_conditions_joins_and_gates(alice: User) -> None:
    dag = factories.deciding_dag(alice)

    told = "".join(export(dag, "dot", now=NOW)).splitlines()

    def line(beginning: str) -> str:
        [found] = [each.strip() for each in told if each.strip().startswith(beginning)]
        return found

    assert "Six corners" in told[1]
    assert line('"M" [') == '"M" [shape=ellipse label="M (I)\\nneeds any of 3"];'
    assert line('"g" [').startswith('"g" [shape=hexagon')
    assert "Skipped" in line('"C" [')
    assert 'style=solid color=darkgreen label="(ExitCode == 0)"' in line('"A1" -> "B"')
    ruled_out = line('"A1" -> "C"')
    assert "style=dotted" in ruled_out
    assert 'tooltip="(ExitCode > 0) is false, with ExitCode = 0"' in ruled_out
    assert line('"B" -> "M"') == '"B" -> "M";'


def test_the_status_file_tells_what_jobs_of_a_running_node_do(story: Story) -> None:
    story.add("A", "B").dag_event("match", state="halted")
    story.move("make ready", "A").submit("A", 50, 3).run(50).job("hold", 150, "why not")
    story.job("match", 250, host="node1")

    head, first, second, end = ads_of(text_of(story, "status"))

    assert (head["DagStatus"], head["NodesQueued"], head["NodesUnready"]) == (3, 1, 1)
    assert (head["JobProcsHeld"], head["JobProcsIdle"]) == (1, 2)
    assert (first["Node"], first["NodeStatus"], first["StatusDetails"]) == ("A", 3, "idle")
    assert (first["JobProcsQueued"], first["JobProcsHeld"]) == (3, 1)
    assert (second["Node"], second["NodeStatus"], second["JobProcsQueued"]) == ("B", 0, 0)
    assert end["Type"] == "StatusEnd"


def test_the_status_file_quotes_what_users_write(story: Story) -> None:
    reason = 'said "no"\\ and */ went ]'
    story.add('A"x', state="failed", state_reason=reason)

    _, node, _ = ads_of(text_of(story, "status"))

    assert (node["Node"], node["StatusDetails"]) == ('A"x', reason)


def test_what_was_under_way_when_the_dag_was_removed_has_failed(alice: User) -> None:
    story = Story(alice, name="removed", dag_files=["removed.dag"])
    story.add("A", state="done").add("B", state="submitted").add("C")
    story.set(state="removed", state_reason="why not", status=4, exit_code=2)

    written = text_of(story, "status", datetime(2026, 11, 20, 13, 54, 14, tzinfo=UTC))

    assert written == sample("recovery_and_removed/removed.status")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"state": "idle"}, '3; /* "STATUS_SUBMITTED ()" */'),
        ({"state": "held", "state_reason": "x"}, '3; /* "STATUS_SUBMITTED (held)" */'),
        (
            {"state": "halted", "ending_event": "fail", "ending_status": 3},
            '3; /* "STATUS_SUBMITTED (aborted)" */',
        ),
        ({"state": "completed"}, '5; /* "STATUS_DONE (success)" */'),
        ({"state": "failed", "status": 2}, '6; /* "STATUS_ERROR (failed)" */'),
        ({"state": "failed", "status": 3}, '6; /* "STATUS_ERROR (aborted)" */'),
        ({"state": "failed", "status": 5}, '6; /* "STATUS_ERROR (cycle)" */'),
        ({"state": "failed", "status": 3, "exit_code": 0}, '5; /* "STATUS_DONE (success)" */'),
        ({"state": "removed", "status": 4}, '6; /* "STATUS_ERROR (removed)" */'),
    ],
)
def test_the_status_file_tells_how_the_dag_fares(
    story: Story, changes: dict[str, Any], words: str
) -> None:
    story.set(**changes)

    assert f"  DagStatus = {words}\n" in text_of(story, "status")


def test_final_is_listed_and_services_are_not(story: Story) -> None:
    story.add("A").add("Side", kind="service").add("Clean", kind="final")

    ads = ads_of(text_of(story, "status"))

    assert [ad["Node"] for ad in ads if ad["Type"] == "NodeStatus"] == ["A", "Clean"]
    assert ads[0]["NodesTotal"] == 2


def test_a_node_that_its_pre_script_skipped_is_told(story: Story, tmp_path: Path) -> None:
    story.add("A").dag_event("match").move("make ready", "A").move("start pre", "A")
    story.script("pre", "A", 9).move("skip", "A", "PRE_SKIP")

    lines = [line.split()[1:] for line in text_of(story, "jobstate").splitlines()]
    [event] = events_of(story, tmp_path)

    assert lines[1:] == [
        ["A", "PRE_SCRIPT_STARTED", "-", "-", "-", "1"],
        ["A", "PRE_SCRIPT_FAILURE", "-", "-", "-", "1"],
        ["A", "PRESKIP", "0.2147483647", "-", "-", "1"],
    ]
    assert (int(event.type), event.proc, event["Subproc"]) == (34, 2147483647, 1)


def test_a_script_that_said_not_yet_is_told_once(story: Story) -> None:
    script = {"executable": "post.sh", "arguments": [], "defer_status": 1, "defer_s": 2}
    story.add("A", features={"scripts": {"post": script}}).dag_event("match")
    story.move("make ready", "A").submit("A", 50).run(50).job("complete", 50, exit_code=0)
    story.move("start post", "A").script("post", "A", 1).script("post", "A", 0, run=1)
    story.move("succeed", "A")

    text = text_of(story, "jobstate")

    assert re.findall("POST_[A-Z_]+", text) == [
        "POST_SCRIPT_STARTED",
        "POST_SCRIPT_TERMINATED",
        "POST_SCRIPT_SUCCESS",
    ]


def test_a_submission_that_failed_is_told_with_the_post_script(
    story: Story, tmp_path: Path
) -> None:
    story.add("A").dag_event("match").move("make ready", "A")
    story.move("start post", "A", "submit failed").script("post", "A", 1)
    story.move("fail", "A", "exit code 1")

    lines = [line.split()[1:] for line in text_of(story, "jobstate").splitlines()]
    [event] = events_of(story, tmp_path)

    assert ["A", "SUBMIT_FAILURE", "-", "-", "-", "1"] in lines
    assert ["A", "POST_SCRIPT_FAILURE", "-", "-", "-", "1"] in lines
    assert (int(event.type), event.cluster, event["ReturnValue"]) == (16, -1, 1)


def test_the_event_log_tells_signals_losses_and_evictions(story: Story, tmp_path: Path) -> None:
    story.add("A", "B", "C").dag_event("match")
    for pk, name in enumerate("ABC", start=50):
        story.move("make ready", name).submit(name, pk).run(pk)
    story.job("reschedule", 50, "the pilot\n...\nwas lost").run(50, "node2")
    story.job("fail", 50, "killed", signal=9, cpu_s=90061.0)
    reasons = {51: "lost", 52: "output files are missing"}
    story.job("fail", 51, reasons[51]).job("fail", 52, reasons[52], exit_code=0)

    events = events_of(story, tmp_path)[6:]

    assert [(int(e.type), e.cluster) for e in events] == [
        (4, 50),
        (1, 50),
        (5, 50),
        (9, 51),
        (9, 52),
    ]
    evicted, executed, terminated, lost, missing = events
    assert "\n" not in evicted["Reason"]
    assert evicted["Reason"].endswith("was lost")
    assert executed["ExecuteHost"] == "<node2>"
    assert terminated["TerminatedBySignal"] == 9
    assert terminated["RunRemoteUsage"].startswith("Usr 1 01:01:01")
    assert (lost["Reason"], missing["Reason"]) == (reasons[51], reasons[52])


def test_an_inner_dag_is_told_like_a_job(story: Story, tmp_path: Path) -> None:
    story.add("Sub", kind="subdag").dag_event("match").move("make ready", "Sub")
    story.move("submit", "Sub", inner=7).move("fail", "Sub", "the inner DAG 7 ended with 1")

    lines = text_of(story, "jobstate").splitlines()
    events = events_of(story, tmp_path)

    assert [line.split()[2] for line in lines[1:]] == [
        "SUBMIT",
        "EXECUTE",
        "JOB_TERMINATED",
        "JOB_FAILURE",
    ]
    assert [int(event.type) for event in events] == [0, 1, 5]
    assert events[2]["ReturnValue"] == 1


def test_attempts_are_counted_on_from_the_run_before(alice: User) -> None:
    before = all_outcomes(alice)
    story = Story(alice, previous_run=before.dag).add("A").dag_event("match")
    story.move("make ready", "A").submit("A", 500)

    assert text_of(story, "jobstate").endswith(" A SUBMIT 500.0 - - 11\n")


def test_metrics_of_a_dag_that_goes_on_have_no_exit_code(story: Story) -> None:
    story.add("A").add("Sub", kind="subdag", state="done").add("F", kind="final")
    story.add("Side", kind="service").add("Prov", kind="provisioner")

    written = json.loads(text_of(story, "metrics"))

    assert written["exitcode"] is None
    assert written["has_final_node"] is True
    assert (written["dag_nodes"], written["dag_nodes_succeeded"]) == (1, 1)
    assert (written["service_nodes"], written["provisioner_nodes"]) == (1, 1)
    assert (written["jobs"], written["total_nodes"], written["total_nodes_run"]) == (3, 4, 1)


def test_metrics_of_an_inner_dag_name_the_outer_one(story: Story, alice: User) -> None:
    story.add("Sub", kind="subdag")
    inner = Story(alice, parent_node=story.nodes["Sub"], root=story.dag)

    written = json.loads(text_of(inner, "metrics"))

    assert written["parent_dagman_id"] == str(story.dag.pk)


def test_files_have_the_names_that_the_dag_file_asks_for(alice: User) -> None:
    story = Story(alice, dag_files=["case.dag", "b.dag"], exports={"dot": "my.dot", "status": ""})

    names = {kind: export_name(story.dag, kind) for kind in EXPORTS}

    assert names == {
        "status": "case.dag.status",
        "jobstate": "case.dag.jobstate.log",
        "dot": "my.dot",
        "metrics": "case.dag.metrics",
        "eventlog": "case.dag.nodes.log",
    }


def test_a_kind_that_there_is_not_is_refused(story: Story) -> None:
    with pytest.raises(NotFound, match="pdf"):
        export(story.dag, "pdf", now=NOW)


@pytest.mark.slow
@pytest.mark.parametrize("kind", EXPORTS)
def test_the_number_of_queries_does_not_depend_on_the_number_of_nodes(
    alice: User, kind: str
) -> None:
    # Of all outcomes the DAG has the number 3.
    small, large = all_outcomes(alice), Story(alice, pk=4)
    nodes = Node.objects.bulk_create(
        Node(dag=large.dag, name=f"N{number}", ordinal=number) for number in range(2500)
    )
    Edge.objects.bulk_create(Edge(parent=nodes[0], child=node) for node in nodes[1:])
    counts = []
    for story in (small, large):
        with CaptureQueriesContext(
            connection,
        ) as queries:
            text_of(story, kind)
        counts.append(len(queries))

    assert counts[0] == counts[1]
