"""Sentences of faults and warnings that users read: the only tests that compare them.

Other tests compare files, lines, commands and names.
"""

from __future__ import annotations

import pytest

from tests.wms.dags.driving import match
from tests.wms.dags.language.parsing import faults, read, warnings
from tests.wms.dags.test_needs import sub
from wms.core.errors import InvalidInput
from wms.dags.language.origin import Origin
from wms.dags.submission.submit import submission_warnings

#: Second line of a DAG file whose first line is JOB A, and a part of the fault's message.
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
    "TIMEOUT A RUN -1": "RUN in seconds is a whole number of at least 0, found: -1",
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
def test_the_message_of_a_fault_has_its_file_line_and_command(line: str, message: str) -> None:
    (finding,) = read(f"JOB A a.sub\n{line}\n").findings

    assert (finding.file, finding.line) == ("case.dag", 2)
    assert message in finding.message
    assert finding.command == line.split()[0].upper()


@pytest.mark.parametrize(
    ("name", "origin", "advice"),
    [
        (
            "/home/alice/run/x.sub",
            Origin(),
            "it is an absolute name. Send the folder /home/alice/run, or one above it, and give "
            "its path as root, as in root=/home/alice/run",
        ),
        ("/x.sub", Origin("d"), "it is an absolute name. Send a copy, and name that"),
        (
            "../../common/x.sub",
            Origin("d"),
            "Send the folder above (..), which has common/x.sub, and give as directory "
            "the folder in it from which names are looked up",
        ),
        (
            "/home/alice/other/x.sub",
            Origin("run", "/home/alice/proj"),
            "it is not below the root /home/alice/proj. Send /home/alice with all that is needed "
            "in it, and give root=/home/alice",
        ),
        (
            "../../../bob/x.sub",
            Origin("run", "/home/alice/proj"),
            "it is not below the root /home/alice/proj. Send /home with all that is needed in it, "
            "and give root=/home",
        ),
        (
            "/data/x.sub",
            Origin("run", "/home/alice/proj"),
            "it is not below the root /home/alice/proj. Send a copy, and name that",
        ),
    ],
)
@pytest.mark.parametrize("command", ["JOB A {}", "SPLICE A {}", "INCLUDE {}", "JOB A a DIR {}"])
def test_the_message_for_a_name_outside_of_the_workspace_has_advice(
    command: str, name: str, origin: Origin, advice: str
) -> None:
    ((_, line, message),) = faults(command.format(name), origin=origin)

    assert line == 1
    assert message.startswith(f"{name} leads outside of the workspace")
    assert message.endswith(advice)


_JOIN = "JOB X x\nSPLICE S in\nSPLICE T in\n"
_PINNED = {"in": "JOB A a\nPIN_IN A 1\nPIN_OUT A 1\n"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("FINAL F f\nRETRY F 1", "F is a FINAL node, which cannot have RETRY"),
        (
            "PROVISIONER P p\nPROVISIONER Q q",
            "a DAG has one PROVISIONER node at most: P of line 1 is it",
        ),
        ("SPLICE S in\nRETRY S 1", "unknown node S: it is a splice, RETRY needs a node"),
        ("JOB A a\nJOB B b\nPARENT A CHILD B\nPARENT B CHILD A",
         "the nodes form a cycle: A -> B -> A"),
        (
            f"{_JOIN}PARENT X CHILD T\nCONNECT S T",
            "splice T has parents in line 4: its in-pins cannot be joined",
        ),
        (
            f"{_JOIN}CONNECT S T\nPARENT X CHILD T",
            "splice T is joined by its pins in line 4: it has no parents",
        ),
    ],
)  # fmt: skip
def test_the_message_of_a_fault_that_concerns_several_lines(text: str, message: str) -> None:
    assert [words for _, _, words in faults(text, _PINNED)] == [message]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('JOB A a\nVARS A x="1"\nVARS A X="2"',
         "X was given as x in line 2: the last one counts"),
        ("MAXJOBS c 2\nMAXJOBS c 1", "category c had the limit 2: the last one counts"),
        ("MAXJOBS c 0", "no node of category c is ever started: its limit is 0"),
        ("DOT /tmp/x.dot", "/tmp/x.dot is not in the workspace: the file is called x.dot here"),
        ("ENV GET PATH", "ENV GET has no effect: there is no environment of who submits"),
    ],
)  # fmt: skip
def test_the_message_of_a_warning(text: str, message: str) -> None:
    assert [words for _, _, words in warnings(text)] == [message]


#: A line of a description, and the warning of a submission in which site-a has one queue, with the
#: tag cvmfs and an hour of time.
SUBMISSION_WARNINGS = {
    '+Sites = "T2_X"': "+Sites: there is no site T2_X today",
    '+Tags = "gpu"': "+Tags: no queue offers the tag gpu today",
    '+Platforms = "arm"': "+Platforms: no queue offers the platform arm today",
    '+Queues = "site-a/gone"': "+Queues: no site has a queue site-a/gone today",
    '+BannedSites = "T3"': "+BannedSites: there is no site T3 today",
    '+SubmitPools = "pool"': "+SubmitPools: no queue is in the submit pool pool today",
    '+Middlewares = "slurm"': "+Middlewares: no queue gets its pilots by slurm today",
    '+Setup = "Test"': "+Setup: no queue belongs to the setup Test today",
    "+CPUTimeSeconds = 4000": (
        "+CPUTimeSeconds: no queue has 5000 s for a job today, the longest has 3540 s: it will"
        " find no pilot"
    ),
    "allowed_execute_duration = 7200": (
        "allowed_execute_duration: no queue has 7200 s for a job today: it is stopped after"
        " 3540 s at the latest"
    ),
    "+BannedSite = 1": "+BannedSite means nothing here; +BannedSites does",
    "request_cpu = 4": "request_cpu means nothing here; request_cpus does",
    "unknown = 3": "unknown means nothing here: it is kept with the job",
    "getenv = true": (
        "getenv has no effect here: the submitter's environment is not known here; use environment"
    ),
    "max_cpus = 4": "max_cpus means nothing here; +MaxCpus does",
    "accounting_group = x": (
        "accounting_group means nothing here: it is the whole DAG's, and belongs in the DAG's"
        " description"
    ),
    "priority = 850": "priority 850 counts as 10: it is from 0 to 10 here",
    "requirements = TARGET.Cpu >= 1": (
        "requirements: no pilot has an attribute Cpu; did you mean Cpus?"
    ),
    "output = $$(Gate)": "output: no site's ad has Gate today",
    "output = $$([MY.Theirs])": "output: neither the job nor the DAG has theirs",
    "output = $$([Theirs])": (
        "output: neither the job nor the DAG nor any site's ad has theirs today"
    ),
}


@pytest.mark.django_db
@pytest.mark.parametrize(("line", "message"), SUBMISSION_WARNINGS.items())
def test_the_message_of_a_warning_of_a_submission(
    submit, make_site, line: str, message: str
) -> None:
    make_site("site-a", attributes="Known = 1", queue={"tags": ["cvmfs"], "wall_time_s": 3600})
    match(submit("JOB A step.sub", files=sub()))

    dag = submit("JOB A step.sub", files=sub(line))

    assert [each.message for each in submission_warnings(dag)] == [message]


#: A line of a description, and the fault of a submission.
SUBMISSION_FAULTS = {
    'arguments = "\'x"': "a single quote is not closed",
    "request_cpus = two": "request_cpus is not a whole number: two",
    "request_cpus = 0": "request_cpus: cores must be from 1 to 100000, not 0",
    "request_memory = much": "request_memory is not an amount of memory: much",
    "+Tags = 5": '+Tags must be words in quotes, as in "a, b" or {"a", "b"}, not 5',
    "transfer_input_files = x": (
        "transfer_input_files of node A is missing, and no node makes it: x"
    ),
    "queue x from gone.txt": "queue of node A is missing, and no node makes it: gone.txt",
    "universe = vm": "universe vm: pilots start no virtual machines",
    "transfer_input_files = ftp://b/k": (
        "ftp://b/k is a URL that pilots do not move, they know http, https, s3, lfn: let a DATA"
        " node move it, or the payload itself"
    ),
    "output = http://b/k": (
        "http://b/k is a URL, and no file of the workspace: pilots read URLs (http, https, s3, lfn)"
        " in transfer_input_files and write them (http, https, s3) by transfer_output_remaps; let"
        " a DATA node bring or take it, or the payload itself"
    ),
}


@pytest.mark.django_db
@pytest.mark.parametrize(("line", "message"), SUBMISSION_FAULTS.items())
def test_the_message_of_a_fault_of_a_submission(submit, line: str, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        submit("JOB A step.sub", files=sub(line))

    assert [each.message for each in caught.value.findings] == [message]


def test_the_message_about_a_description_that_was_not_uploaded(submit, db) -> None:
    with pytest.raises(InvalidInput) as caught:
        submit("JOB A gone.sub")

    assert [each.message for each in caught.value.findings] == [
        "submit file gone.sub of node A is missing"
    ]
