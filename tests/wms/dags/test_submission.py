from __future__ import annotations

import io
import time
from pathlib import Path

import pytest

from tests.wms.conftest import SUBMIT_FILE
from wms.core.actors import Actor
from wms.core.errors import InvalidInput, NotPermitted
from wms.core.models import AuditEntry, Role, User
from wms.dags.models import Dag, Edge, Node
from wms.dags.submission.runs import check_options
from wms.dags.submission.submit import DagSubmission, submit_dag
from wms.jobs.models import Blob, Workspace

EXAMPLE = Path(__file__).parents[3] / "examples" / "montecarlo"
SAMPLES = Path(__file__).parents[2] / "samples"


def assert_nothing_is_stored() -> None:
    assert not Dag.objects.exists()
    assert not Workspace.objects.exists()
    assert not Blob.objects.exists()


def test_the_example_production_is_stored_with_its_fifty_nodes(alice: User) -> None:
    files = {
        path.name: io.BytesIO(path.read_bytes())
        for path in EXAMPLE.iterdir()
        if path.suffix in {".sub", ".py", ".json", ".csv"} and path.name != "montecarlo.sub"
    }

    dag = submit_dag(
        DagSubmission(
            dag_name="montecarlo.dag",
            dag_text=(EXAMPLE / "montecarlo.dag").read_text(),
            files=files,
            description_text=(EXAMPLE / "montecarlo.sub").read_text(),
            description_name="montecarlo.sub",
        ),
        owner=alice,
        actor=Actor.person(alice),
    )

    assert dag.state == "idle"
    assert dag.node_count == Node.objects.filter(dag=dag).count() == 50
    assert dag.ad_attributes["WANT_USCMS_MATCHMAKER"] == "True"
    assert dag.ad_attributes["Requirements"] == "Is_USCMS_Site =?= True"
    assert Edge.objects.filter(parent__dag=dag).count() == 12 * 4 + 1
    assert AuditEntry.objects.get().action == "submit DAG"


def test_the_submit_file_of_the_uscms_report_describes_a_dag(submit) -> None:
    text = (SAMPLES / "uscms_group.sub").read_text()

    dag = submit("JOB A step.sub", description_text=text, description_name="group.sub")

    assert dag.ad_attributes == {
        "WANT_USCMS_MATCHMAKER": "True",
        "Requirements": "Is_USCMS_Site =?= True",
        "Rank": "-CurMatches/MaxMatches",
    }
    assert dag.environment_template.startswith("$$(SiteEnvironment);PATH=$ENV(PATH)")


@pytest.mark.parametrize(
    ("text", "files", "file", "line", "message"),
    [
        ("JOB A step.sub\nFOO", {}, "test.dag", 2, "unknown command FOO"),
        ("JOB A step.sub\nPARENT B CHILD A", {}, "test.dag", 2, "unknown parent B"),
        (
            "JOB A step.sub\nJOB B step.sub\nPARENT A CHILD B\nPARENT B CHILD A",
            {},
            "test.dag",
            3,
            "cycle: A -> B -> A",
        ),
        ("JOB A none.sub", {}, "test.dag", 1, "submit file none.sub of node A is missing"),
        (
            "JOB A a.sub",
            {"a.sub": "executable = step.sh\nwhat is this\nqueue"},
            "a.sub",
            2,
            "expected `name = value`",
        ),
        (
            "JOB A a.sub",
            {"a.sub": "executable = step.sh\nqueue 5 x"},
            "a.sub",
            2,
            "not a queue statement: queue 5 x",
        ),
        ("JOB A a.sub", {"a.sub": "queue"}, "a.sub", None, "no executable is named"),
        (
            "JOB A a.sub",
            {"a.sub": "executable = gone.sh\nqueue"},
            "a.sub",
            1,
            "executable of node A is missing, and no node makes it: gone.sh",
        ),
        (
            "JOB A a.sub",
            {"a.sub": "executable = step.sh\n\ntransfer_input_files = x_$(JOB).dat\nqueue"},
            "a.sub",
            3,
            "no node makes it: x_A.dat",
        ),
        (
            "JOB A a.sub",
            {"a.sub": "executable = step.sh\nrequirements = (a <\nqueue"},
            "a.sub",
            2,
            "requirements: not a ClassAd expression",
        ),
        (
            "JOB A a.sub",
            {"a.sub": "executable = step.sh\nrequest_memory = much\nqueue"},
            "a.sub",
            2,
            "request_memory is not an amount of memory: much",
        ),
        (
            "JOB A a.sub",
            {"a.sub": f"executable = /{'a' * 2000}\nqueue"},
            "a.sub",
            1,
            "executable is longer than 1024 characters",
        ),
        (
            "JOB A a.sub",
            {"a.sub": "executable = step.sh\nrequest_cpus = two\nqueue"},
            "a.sub",
            2,
            "request_cpus is not a whole number: two",
        ),
        (
            "JOB A a.sub",
            {"a.sub": "executable = step.sh\ntransfer_output_files = ../../etc/passwd\nqueue"},
            "a.sub",
            2,
            "leads outside of the workspace",
        ),
    ],
)
def test_bad_input_is_refused_with_its_place_and_nothing_is_stored(
    submit, text: str, files: dict[str, str], file: str, line: int | None, message: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        submit(text, files=files)

    (finding,) = caught.value.findings
    assert message in finding.message
    assert (finding.file, finding.line) == (file, line)
    assert_nothing_is_stored()


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../b", "", "a\\b", "a\nb", "./x"])
def test_a_file_name_that_could_escape_is_refused(submit, name: str) -> None:
    with pytest.raises(InvalidInput):
        submit("JOB A step.sub", files={name: "x"})

    assert_nothing_is_stored()


@pytest.mark.parametrize("name", ["d" * 300, "d\0", "../d"])
def test_the_name_of_the_description_is_checked_as_well(submit, name: str) -> None:
    with pytest.raises(InvalidInput):
        submit("JOB A step.sub", description_text="queue", description_name=name)

    assert_nothing_is_stored()


def test_text_with_a_zero_byte_is_refused(submit) -> None:
    with pytest.raises(InvalidInput, match="zero byte"):
        submit('JOB A step.sub\nVARS A x="\0"')


def test_a_submit_file_that_is_not_text_is_refused(alice: User) -> None:
    files = {"step.sub": io.BytesIO(b"\xff\xfe"), "step.sh": io.BytesIO(b"")}

    with pytest.raises(InvalidInput, match="not UTF-8"):
        submit_dag(
            DagSubmission("a.dag", "JOB A step.sub", files),
            owner=alice,
            actor=Actor.person(alice),
        )


def test_all_faults_are_told_at_once(submit) -> None:
    with pytest.raises(InvalidInput) as caught:
        submit("JOB A a.sub\nJOB B none.sub\nFOO", files={"a.sub": "+x = (\nqueue"})

    assert len(caught.value.findings) == 3


def test_faults_of_dag_files_descriptions_and_missing_programs_are_told_together(submit) -> None:
    faulty = (
        "executable = gone.sh\nrequest_memory = lots\nrequest_cpus = two\n+CPUTimeSeconds = x\n"
    )
    files = {"a.sub": f"{faulty}requirements = (a <\nqueue"}

    with pytest.raises(InvalidInput) as caught:
        submit("JOB A a.sub\nRETRY A many\n", files=files)

    assert [(each.file, each.line) for each in caught.value.findings] == [
        *(("a.sub", line) for line in (1, 2, 3, 4, 5)),
        ("test.dag", 2),
    ]


@pytest.mark.parametrize(
    ("text", "description", "places"),
    [
        # What B would make, nobody knows.
        ("JOB A a.sub\nJOB B\n", "executable = gone.sh\nqueue", [("test.dag", 2)]),
        # A value of VARS is missing, or a command, or what a macro has.
        ("JOB A a.sub\nVARS A x\n", "executable = $(x)\nqueue", [("test.dag", 2)]),
        ("JOB A a.sub\n", "executable gone.sh\nrequest_cpus = a\nqueue", [("a.sub", 1)]),
        ("JOB A a.sub\n", "x = $(y)\ny = $(x)\nexecutable = $(x)\nqueue", [("a.sub", 1)]),
    ],
)
def test_faults_that_only_follow_from_others_are_not_told(
    submit, text: str, description: str, places: list[tuple[str, int]]
) -> None:
    with pytest.raises(InvalidInput) as caught:
        submit(text, files={"a.sub": description})

    assert [(each.file, each.line) for each in caught.value.findings] == places


def test_a_misspelt_executable_is_told_with_its_line(submit) -> None:
    with pytest.raises(InvalidInput) as caught:
        submit("JOB A a.sub\n", files={"a.sub": "arguments = 1\nexecutble = step.sh\nqueue"})

    [fault] = caught.value.findings
    assert (fault.file, fault.line) == ("a.sub", 2)
    assert "executble" in fault.message


def test_the_same_idempotency_key_gives_the_same_dag(submit, charlie: User) -> None:
    first = submit("JOB A step.sub", idempotency_key="k")
    again = submit("JOB A step.sub", idempotency_key="k")
    others = submit("JOB A step.sub", idempotency_key="k", owner=charlie)

    assert first.pk == again.pk != others.pk
    assert Dag.objects.count() == 2


def test_a_viewer_may_not_submit(submit) -> None:
    viewer = User.objects.create_user("vera", role=Role.VIEWER)

    with pytest.raises(NotPermitted, match="vera"):
        submit("JOB A step.sub", owner=viewer)


def test_inputs_made_by_other_nodes_need_not_be_uploaded(submit) -> None:
    makes = "executable = step.sh\ntransfer_output_files = part_$(JOB).json\nqueue"
    takes = "executable = step.sh\ntransfer_input_files = part_A.json\nqueue"

    dag = submit(
        "JOB A make.sub\nJOB B take.sub\nPARENT A CHILD B",
        files={"make.sub": makes, "take.sub": takes},
    )

    assert dag.node_count == 2


def test_a_description_may_depend_on_the_site(submit) -> None:
    text = SUBMIT_FILE.replace("$(JOB)\n", "$ENV(Area)/$$(Name)\ntransfer_input_files = $$(F)\n", 1)

    assert submit("JOB A step.sub", files={"step.sub": text}).node_count == 1


def test_a_description_of_many_commands_is_read_soon_for_every_node(submit) -> None:
    lines = "".join(f"name{number} = $(JOB)\n" for number in range(900))
    text = "\n".join(f"JOB N{number} step.sub" for number in range(100))

    began_s = time.process_time()
    dag = submit(text, files={"step.sub": f"executable = /bin/true\n{lines}"})

    assert time.process_time() - began_s < 5
    assert dag.node_count == 100


@pytest.mark.parametrize(
    ("name", "value", "bounds"),
    [
        ("data_attempts", 0, "1 to 100"),
        ("data_attempts", 101, "1 to 100"),
        ("max_rescue", 1000, "0 to 999"),
        ("max_jobs", 2**31, "0 to 2147483647"),
    ],
)
def test_options_out_of_their_bounds_are_refused(name: str, value: int, bounds: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name}: must be from {bounds}"):
        check_options({name: value})
