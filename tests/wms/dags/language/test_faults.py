"""Every kind of fault, with its place."""

from __future__ import annotations

import pytest

from matching.deadline import Deadline
from tests.wms.dags.language.parsing import faults, read, well_read
from wms.core.errors import Finding
from wms.dags.language.parser import parse_dag

#: What stands behind a JOB line for A, and what is told about line 2.
LINES = {
    "JOB": "expected: JOB name description",
    "JOB A b.sub": "A is defined twice, first in line 1",
    "JOB parent a.sub": "parent cannot be a name",
    "JOB All_Nodes a.sub": "All_Nodes cannot be a name",
    "JOB A+B a.sub": "a name cannot contain +",
    "JOB " + "n" * 256 + " a.sub": "a name has 1 to 255 characters",
    "JOB 'B C' a.sub": "a name has neither blanks",
    "JOB B b.sub extra": "unexpected at the end: extra",
    "JOB B b.sub DIR": "DIR needs a directory",
    "JOB B ../b.sub": "leads outside of the workspace",
    "JOB B /etc/b.sub": "leads outside of the workspace",
    "JOB B b.sub DIR ..": "leads outside of the workspace",
    'JOB B ""': "the name of a file is empty",
    "JOB B " + "n" * 256: "has 256 bytes; the name of a file or a directory has at most 255",
    "JOB B " + "é" * 128: "has 256 bytes; the name of a file or a directory has at most 255",
    "JOB B b.sub DIR " + "n" * 256: "has 256 bytes",
    "JOB B " + "d/" * 511 + "b.su DIR d": "has 1028 bytes; in a workspace it has at most 1024",
    'JOB B "b.sub': "a quote is not closed",
    "JOB B {": "the description is not closed by }",
    "JOB B @=END": "the description is not closed by @END",
    "FINAL F f.sub DONE": "a FINAL node cannot have DONE",
    "SERVICE S s.sub NOOP": "a SERVICE node cannot have NOOP",
    "SUBDAG S s.dag": "expected: SUBDAG EXTERNAL name file",
    "SUBDAG EXTERNAL S": "expected: SUBDAG EXTERNAL name file",
    "SUBDAG EXTERNAL S ../s.dag": "leads outside",
    "SUBDAG EXTERNAL S " + "s" * 242: "rescues of this DAG could not be stored",
    "DATA D": "expected: DATA name request",
    "SUBMIT-DESCRIPTION s": "expected: SUBMIT-DESCRIPTION name {",
    "SPLICE S": "expected: SPLICE name file",
    "SPLICE S s.dag": "file s.dag of SPLICE is not there",
    "SPLICE A s.dag": "A is defined twice",
    "SPLICE S ../s.dag": "leads outside",
    "INCLUDE": "expected: INCLUDE file",
    "INCLUDE s.dag": "file s.dag of INCLUDE is not there",
    "INCLUDE case.dag": "recursive INCLUDE detected: case.dag -> case.dag",
    "SPLICE S case.dag": "recursive SPLICE detected: case.dag -> case.dag",
    "REJECT": "marked by REJECT",
    "JOBS B b.sub": "unknown command JOBS",
    "PARENT A A": "expected: PARENT names... CHILD names...",
    "PARENT A CHILD": "at least one name each",
    "PARENT CHILD A": "at least one name each",
    "PARENT X Y A CHILD A": "unknown parent X, Y",
    "PARENT A CHILD X": "unknown child X",
    "WEAK A CHILD A": "expected: WEAK PARENT",
    "SCRIPT PRE A": "expected: SCRIPT",
    "SCRIPT DEFER 1 PRE A x": "the time of DEFER in seconds is a whole number of at least 0",
    "JOB B i.dag.condor.sub": "i.dag.condor.sub is DAGMan's own: use SUBDAG EXTERNAL, with i.dag",
    "SCRIPT LATER A x": "a script is PRE, POST or HOLD, found: LATER",
    "SCRIPT PRE X x": "unknown node X",
    "SCRIPT DEFER x 1 PRE A x": "the status of DEFER is a whole number",
    "SCRIPT DEFER 1 -1 PRE A x": "the time of DEFER in seconds is a whole number",
    "SCRIPT DEBUG f BOTH PRE A x": "DEBUG takes STDOUT, STDERR or ALL, found: BOTH",
    "SCRIPT DEBUG ../f ALL PRE A x": "leads outside",
    "SCRIPT PRE A ../x": "leads outside",
    "SCRIPT PRE A /" + "x" * 1024: "the program of a script has a path of at most 1024 characters",
    "SCRIPT DEBUG " + "f" * 256 + " ALL PRE A x": "has 256 bytes",
    "PRE_SKIP A": "expected: PRE_SKIP name code",
    "PRE_SKIP A 256": "found: 256",
    "PRE_SKIP A -1": "found: -1",
    "PRE_SKIP X 1": "unknown node X",
    "RETRY A": "expected: RETRY name number",
    "RETRY": "expected: RETRY name number",
    "RETRY A -1": "found: -1",
    "RETRY A 1001": "from 0 to 1000, found: 1001",
    "RETRY A ٣": "found: ٣",
    "RETRY X 1": "unknown node X",
    "RETRY A 1 UNLESS-EXIT": "unexpected after the number of retries: UNLESS-EXIT",
    "RETRY A 1 UNLESS-EXIT x": "UNLESS-EXIT is a whole number, found: x",
    "RETRY A 1 WITH": "WITH needs a change",
    "RETRY A 1 WITH memory": "expected command*=factor or command=value, found: memory",
    "RETRY A 1 WITH memory*=much": "changed by a factor above 0, found: much",
    "RETRY A 1 WITH memory*=0.0": "changed by a factor above 0",
    "ABORT-DAG-ON A": "expected: ABORT-DAG-ON name code",
    "ABORT-DAG-ON A 1 RETURN": "expected: ABORT-DAG-ON name code",
    "ABORT-DAG-ON A x": "found: x",
    "ABORT-DAG-ON A 1 RETURN 256": "found: 256",
    "ABORT-DAG-ON A 1 RETURN -1": "found: -1",
    "TOLERANCE A": "expected: TOLERANCE",
    "TOLERANCE A 1 SOMEHOW": "expected: TOLERANCE",
    "TOLERANCE A %": "a tolerance is a whole number of at least 0, found: ",
    "TOLERANCE A 15 WAIT %": "expected: TOLERANCE",
    "TOLERANCE A 15% %": "found: 15%",
    "TOLERANCE A -1": "found: -1",
    "TIMEOUT A": "expected: TIMEOUT",
    "TIMEOUT A QUEUE": "expected: TIMEOUT",
    "TIMEOUT A QUEUE 1 QUEUE 2": "expected: TIMEOUT",
    "TIMEOUT A WALK 1": "expected: TIMEOUT",
    "TIMEOUT A RUN 0": "RUN in seconds is a whole number of at least 1, found: 0",
    "ALWAYS-RUN-POST": "expected: ALWAYS-RUN-POST name",
    "ALWAYS-RUN-POST X": "unknown node X",
    "VARS A": "expected: VARS name",
    "VARS A APPEND": "expected: VARS name",
    "VARS A x": 'expected key="value", found: x',
    'VARS A ="1"': 'expected key="value"',
    'VARS A +="1"': "needs a letter or a digit",
    'VARS A Queue="1"': "cannot begin with queue",
    'VARS A x="1': "a quote is not closed",
    'VARS A x="1"y': 'x: the value goes on behind its quote: "1"y',
    "VARS A x=1 y=": 'y has no value: write y="" for an empty one',
    "VARS A x = = 1": "x has no value",
    "VARS A x = 1 = 2": 'expected key="value", found: = 2',
    'VARS A "x"=1': 'the name of a variable has no quotes: "x"',
    "VARS A x=don't": "a quote is not closed",
    'VARS A x="a "b c" d"': 'x: the value goes on behind its quote: "a "b',
    'VARS A x="a" b "c"': 'expected key="value", found: b "c"',
    'VARS "A x=1': "a quote is not closed",
    'VARS X x="1"': "unknown node X",
    'VARS A x="$$([1 +])"': "x: $$([1 +])",
    "PRIORITY A": "expected: PRIORITY name number",
    "PRIORITY A 99999999999": "found: 99999999999",
    "CATEGORY A": "expected: CATEGORY name category",
    "CATEGORY X c": "unknown node X",
    "CATEGORY A " + "c" * 256: "1 to 255 characters",
    "MAXJOBS c": "expected: MAXJOBS category number",
    "MAXJOBS c -1": "found: -1",
    "MAXJOBS c few": "found: few",
    "DONE": "expected: DONE name",
    "DONE X": "unknown node X",
    "SAVE_POINT_FILE": "expected: SAVE_POINT_FILE",
    "SAVE_POINT_FILE X": "unknown node X",
    "SAVE_POINT_FILE ALL_NODES": "unknown node ALL_NODES",
    "SAVE_POINT_FILE A ../f": "leads outside",
    "SAVE_POINT_FILE A " + "f" * 252: "an older save point could not be kept beside it",
    "NODE_STATUS_FILE": "expected: NODE_STATUS_FILE",
    "NODE_STATUS_FILE f 5 often": "found: often",
    "JOBSTATE_LOG": "expected: JOBSTATE_LOG",
    "DOT": "expected: DOT file",
    "DOT f SOMETIMES": "unexpected after the file: SOMETIMES",
    "DOT f INCLUDE": "the name of a file is empty",
    "CONFIG": "expected: CONFIG file",
    "CONFIG c": "file c of CONFIG is not there",
    "ENV": "expected: ENV SET",
    "ENV PUT a=b": "expected: ENV SET",
    "ENV SET a": "expected NAME=value, found: a",
    "SET_JOB_ATTR a": "expected: SET_JOB_ATTR name = value",
    "SET_JOB_ATTR a = (": "a: not a ClassAd expression",
    "PIN_IN A": "expected: PIN_IN node number",
    "PIN_OUT A 0": "of at least 1, found: 0",
    "PIN_OUT X 1": "unknown node X",
    "CONNECT A": "expected: CONNECT splice splice",
    "CONNECT A A": "A is a node: CONNECT joins the pins of splices",
    "CONNECT S T": "unknown splice S",
}


@pytest.mark.parametrize(("line", "message"), LINES.items(), ids=[line[:40] for line in LINES])
def test_a_fault_is_told_with_its_line_and_command(line: str, message: str) -> None:
    (finding,) = read(f"JOB A a.sub\n{line}\n").findings

    assert (finding.file, finding.line) == ("case.dag", 2)
    assert message in finding.message
    assert finding.command == line.split()[0].upper()


@pytest.mark.parametrize(
    "line",
    [
        "RETRY F 1", "ABORT-DAG-ON F 1", "PRIORITY F 1", "CATEGORY F c", "DONE F",
        "SAVE_POINT_FILE F", "PIN_IN F 1",
    ],
)  # fmt: skip
def test_a_final_node_cannot_have_it(line: str) -> None:
    (fault,) = faults(f"FINAL F f.sub\n{line}")

    assert fault[1:] == (2, f"F is a FINAL node, which cannot have {line.split()[0]}")


@pytest.mark.parametrize("line", ["RETRY S 1", "PRE_SKIP S 1", "PRIORITY S 1", "PARENT A CHILD S"])
def test_a_service_cannot_have_it(line: str) -> None:
    (fault,) = faults(f"JOB A a.sub\nSERVICE S s.sub\n{line}")

    assert fault[1] == 3
    assert "S is a SERVICE node" in fault[2]


@pytest.mark.parametrize("line", ["RETRY P 1", "ABORT-DAG-ON P 1", "PARENT P CHILD A"])
def test_a_provisioner_cannot_have_it(line: str) -> None:
    (fault,) = faults(f"JOB A a.sub\nPROVISIONER P p.sub\n{line}")

    assert fault[1] == 3
    assert "P is a PROVISIONER node" in fault[2]


def test_a_second_provisioner_is_refused_with_its_description() -> None:
    assert faults("PROVISIONER P p.sub\nPROVISIONER Q {\nexecutable = x\n}\nJOB A a.sub") == [
        ("case.dag", 2, "a DAG has one PROVISIONER node at most: P of line 1 is it")
    ]


@pytest.mark.parametrize(
    "line",
    [
        "RETRY S 1", "SCRIPT PRE S x", 'VARS S x="1"', "PRIORITY S 1", "CATEGORY S c",
        "SAVE_POINT_FILE S",
    ],
)  # fmt: skip
def test_a_splice_is_no_node_for_commands(line: str) -> None:
    (fault,) = faults(f"SPLICE S in.dag\n{line}", {"in.dag": "JOB A a.sub"})

    assert fault[1] == 2
    assert fault[2].startswith("unknown node S: it is a splice")


def test_all_faults_are_told_at_once_in_the_order_of_files_and_lines() -> None:
    told = faults(
        "RETRY A x\nJOB\nPARENT A CHILD B\nJOB A s\nINCLUDE b.dag\nSPLICE S a.dag",
        {"a.dag": "\nWHAT", "b.dag": "JOB A s\nWHAT"},
    )

    assert [(file, line) for file, line, _ in told] == [
        ("a.dag", 2),
        ("b.dag", 1),
        ("b.dag", 2),
        ("case.dag", 1),
        ("case.dag", 2),
        ("case.dag", 3),
    ]


def test_what_only_follows_from_a_fault_is_not_told() -> None:
    text = "JOB A a.sub WHAT\nSPLICE S none.dag\nPARENT A CHILD S\nRETRY A 1\nCONNECT S S"

    assert [line for _, line, _ in faults(text)] == [1, 2]


def test_a_fault_in_a_file_that_many_splices_read_is_told_once() -> None:
    text = "\n".join(f"SPLICE S{n} in.dag" for n in range(50))

    assert faults(text, {"in.dag": "JOB A a.sub\nRETRY A x"}) == [
        ("in.dag", 2, "the number of retries is a whole number from 0 to 1000, found: x")
    ]


def test_the_lines_of_a_description_that_is_refused_are_no_commands() -> None:
    told = faults("JOB A a.sub\nJOB A {\n executable = x\n}\nSUBMIT-DESCRIPTION s more {\n x\n}")

    assert [line for _, line, _ in told] == [2, 5]


def test_the_list_of_faults_is_bounded() -> None:
    assert len(faults("WHAT\n" * 10_000)) == 200


def test_a_dag_file_that_is_not_there_is_a_fault() -> None:
    assert parse_dag(["x.dag"], {}.get).findings == [
        Finding("DAG file x.dag is not there", file="x.dag")
    ]
    assert parse_dag(["../x.dag"], {"../x.dag": "JOB A a"}.get).findings


def test_a_cycle_is_told_at_one_of_its_arcs_in_the_right_file() -> None:
    files = {"in.dag": "JOB A a\nJOB B b\n\nPARENT A CHILD B\nPARENT B CHILD A"}

    (finding,) = read("JOB X x\nSPLICE S in.dag\nPARENT X CHILD S", files).findings

    assert (finding.file, finding.line) == ("in.dag", 4)
    assert finding.message == "the nodes form a cycle: S+A -> S+B -> S+A"


def test_a_node_that_waits_for_itself_is_a_cycle() -> None:
    dag = read("JOB A a\nPARENT A CHILD A")

    assert dag.statistics.cycle == ["A", "A"]
    assert dag.findings[0].line == 2


def test_a_cycle_by_pins_is_told_at_the_line_that_joins_them() -> None:
    files = {"in.dag": "JOB A a\nPIN_IN A 1\nPIN_OUT A 1"}

    (finding,) = read("SPLICE S in.dag\nSPLICE T in.dag\nCONNECT S T\nCONNECT T S", files).findings

    assert finding.line == 3
    assert finding.command == "CONNECT"


def test_a_long_cycle_is_told_in_short_and_kept_whole() -> None:
    count = 100_000
    lines = [f"JOB N{n} s\nPARENT N{n} CHILD N{(n + 1) % count}" for n in range(count)]

    dag = read("\n".join(lines))

    assert len(dag.statistics.cycle) == count + 1
    assert len(dag.findings[0].message) < 1000


@pytest.mark.parametrize("name", ["A", "ALL_NODES"])
@pytest.mark.parametrize("quote", ['"', "'"])
def test_the_variables_of_a_node_are_bounded(name: str, quote: str) -> None:
    lines = [f"VARS {name} x{n}={quote}1{quote}" for n in range(1_000)]
    text = "JOB A a\n" + "\n".join(lines)

    assert len(well_read(text).nodes["A"].variables or ()) == 1_000
    assert len(well_read(f"{text}\n{lines[0]}").nodes["A"].variables or ()) == 1_000
    told = faults(f"{text}\nVARS A y={quote}1{quote}")
    assert told == [("case.dag", 1_002, "a node has at most 1000 variables")]


def test_a_line_with_too_many_variables_is_a_fault() -> None:
    pairs = " ".join(f'x{n}="1"' for n in range(1_001))

    assert faults(f"JOB A a\nVARS A {pairs}") == [
        ("case.dag", 2, "a node has at most 1000 variables")
    ]


class Clock:
    """Goes on by a second whenever somebody looks at it."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        self.now_s += 1
        return self.now_s


@pytest.mark.parametrize(
    ("text", "limit_s"),
    [
        ("JOB A a\n" + "# nothing\n" * 2_000, 20),
        ("JOB A a\n" + 'VARS ALL_NODES x="1"\n' * 200, 20),
        ("SPLICE S s\n" * 200, 20),
        ("JOB A a\n" + "RETRY A 1\n" * 2_000, 20),
    ],
)
def test_reading_ends_when_the_time_is_up(text: str, limit_s: float) -> None:
    clock = Clock()

    dag = parse_dag(
        ["a.dag"], {"a.dag": text, "s": "JOB B b"}.get, deadline=Deadline(clock, limit_s)
    )

    assert clock.now_s == limit_s + 2
    told = [each for each in dag.findings if "longer than" in each.message]
    assert [each.message for each in told] == [
        "checking the DAG takes longer than 20 s, and this was reached"
    ]
    assert (told[0].line or 0) > 1


def test_a_very_long_value_has_no_references() -> None:
    value = "$$(Memory)" * 20_000

    assert faults(f'JOB A a\nVARS A x="{value}"') == [
        ("case.dag", 2, "x: a value with $$ has at most 131072 characters")
    ]
