from __future__ import annotations

import io
from collections.abc import Mapping
from itertools import count
from types import SimpleNamespace

import pytest

from wms.dags.language.origin import Origin
from wms.dags.submission import checking
from wms.dags.submission.checking import CheckedDag, check_dag

SUB = "executable = /bin/true\nqueue\n"
REQUEST = '[ dap_type = "transfer"; src_url = "file:///x"; dest_url = "file:///y" ]'


def checked(text: str, files: Mapping[str, str | bytes] | None = None, **options) -> CheckedDag:
    """Checked submission of `case.dag` and other files, without a database."""
    given = {"case.dag": text, **(files or {})}
    streams = {
        name: io.BytesIO(content if isinstance(content, bytes) else content.encode())
        for name, content in given.items()
    }
    return check_dag(["case.dag"], files=streams, owner=None, **options)


def found(
    text: str, files: Mapping[str, str | bytes] | None = None, **options
) -> list[tuple[str, int | None]]:
    """File and line of each fault."""
    return [(each.file, each.line) for each in checked(text, files, **options).findings]


def test_a_whole_submission_is_read() -> None:
    dag = checked(
        "JOB A a.sub\nJOB B {\n executable = /bin/true\n}\nJOB C a.sub DIR d\nDATA D d.stork\n"
        "FINAL F a.sub",
        {"a.sub": SUB, "d/a.sub": SUB, "d.stork": REQUEST},
    )

    assert (dag.findings, dag.warnings) == ([], [])
    assert dag.submit_files.keys() == {"a.sub", "d/a.sub", dag.dag.nodes["B"].source}


def test_a_placement_that_nothing_transfers_is_refused_with_its_line() -> None:
    dag = checked(
        'DATA D d.stork\nDATA E {\n dap_type = "transfer";\n src_url = "file:a";\n'
        ' dest_url = "srm://h/b";\n alt_protocols = "file-file, gsiftp-file";\n}\n',
        {"d.stork": REQUEST.replace("file:", "gsiftp:", 1)},
    )
    line = next(n for n, each in enumerate(REQUEST.split("\n"), 1) if "src_url" in each)

    assert [(each.file, each.line, each.field) for each in dag.findings] == [
        ("d.stork", line, "src_url")
    ]
    # Another pair is left.
    assert [(each.line, each.field) for each in dag.warnings] == [
        (4, "src_url"),
        (6, "alt_protocols"),
    ]


def test_a_placement_by_a_program_is_refused_until_that_can_be_run(settings, tmp_path) -> None:
    placement = settings.PILOTAGE["PLACEMENT"] | {"MODULES": str(tmp_path)}
    settings.PILOTAGE = settings.PILOTAGE | {"PLACEMENT": placement}
    request = REQUEST.replace("file:///x", "nest://h/x")
    program = tmp_path / "stork.transfer.nest-file"

    unknown = checked("DATA D d.stork", {"d.stork": request}).findings
    program.write_text("#!/bin/sh\n")
    closed = checked("DATA D d.stork", {"d.stork": request}).findings
    program.chmod(0o755)
    known = checked("DATA D d.stork", {"d.stork": request}).findings

    assert [[each.field for each in told] for told in (unknown, closed)] == [["src_url"]] * 2
    assert program.name in closed[0].message
    assert program.name not in unknown[0].message
    assert known == []


def test_a_dag_without_nodes_is_one() -> None:
    assert found("# nothing") == []


def test_faults_of_all_files_are_told_at_once() -> None:
    told = found(
        "JOB A a.sub\nJOB B {\n\n what\n}\nDATA D d.stork\nRETRY A x\nSPLICE S s.dag\n",
        {
            "a.sub": "executable = x\nwhat\nqueue",
            "d.stork": "[\n dap_type = 5;\n]",
            "s.dag": "WHAT",
        },
    )

    assert told == [
        ("a.sub", 2),
        ("case.dag", 4),
        ("case.dag", 7),
        ("d.stork", 1),
        ("d.stork", 1),
        ("d.stork", 2),
        ("s.dag", 1),
    ]


def test_an_inline_request_tells_its_faults_with_the_lines_of_the_dag_file() -> None:
    told = checked('JOB A a.sub\nDATA D {\n[ dap_type = "transfer";\n  src_url = 5; ]\n}')

    assert [each.line for each in told.findings if each.field == "src_url"] == [4]


def test_a_description_that_was_not_uploaded_is_told_once_with_a_node() -> None:
    text = "JOB A a.sub\nJOB B a.sub\nDATA D d.stork\nSERVICE S s.sub"

    findings = checked(text).findings

    assert [(each.line, each.command) for each in findings] == [
        (1, "JOB"),
        (3, "DATA"),
        (4, "SERVICE"),
    ]
    for finding, source in zip(findings, ["a.sub", "d.stork", "s.sub"], strict=True):
        assert source in finding.message


@pytest.mark.parametrize(
    "text", ["JOB A a.sub\nSCRIPT PRE A /bin/x", "SUBDAG EXTERNAL A a.sub", "JOB A a.sub"]
)
def test_what_may_come_later_is_told_as_a_warning(text: str) -> None:
    dag = checked(text, allow_missing_files=text == "JOB A a.sub")

    assert dag.findings == []
    assert dag.submit_files == {}
    assert [each.line for each in dag.warnings] == [1]
    assert "a.sub" in dag.warnings[0].message


@pytest.mark.parametrize("option", ["NOOP", "DONE"])
def test_what_is_not_run_needs_no_description(option: str) -> None:
    dag = checked(f"JOB A a.sub {option}\nSUBDAG EXTERNAL S s.dag {option}")

    assert (dag.findings, dag.warnings) == ([], [])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"JOB B b\xff.sub", "the line is not UTF-8 text: byte 8 of it is 0xff"),
        (b"JOB B b\0.sub", "the line contains a zero byte"),
        (b"# \0", "the line contains a zero byte"),
    ],
)
def test_a_line_that_is_no_text_is_told_so(line: bytes, message: str) -> None:
    content = b"JOB A a.sub\n# d\xe9j\xe0 vu\n" + line + b"\n"

    told = checked("SPLICE S s.dag\nRETRY X 1", {"s.dag": content, "a.sub": SUB}).findings

    assert [(each.file, each.line, each.message) for each in told if each.file == "s.dag"] == [
        ("s.dag", 3, message)
    ]
    assert "unknown node X" in [each.message for each in told if each.file == "case.dag"]


def test_comments_hold_any_bytes_in_dag_files_and_descriptions() -> None:
    latin = "# Größe\n \t# día\n".encode("latin-1")
    files = {
        "s.dag": latin + b"JOB A a.sub\n// d\xe9j\xe0\nJOB B \\\n# \xe4\nb.sub\n",
        "a.sub": latin + SUB.encode(),
        "b.sub": SUB,
    }

    assert found("SPLICE S s.dag", files) == []


def test_the_nodes_are_checked_with_their_descriptions() -> None:
    (fault,) = checked(
        'JOB A a.sub\nVARS A cores="many"', {"a.sub": "request_cpus = $(cores)\n" + SUB}
    ).findings

    assert (fault.file, fault.line) == ("case.dag", 2)
    assert "request_cpus" in fault.message


def test_inputs_may_come_from_nodes_whose_outputs_are_not_known() -> None:
    files = {"b.sub": "transfer_input_files = x, y\n" + SUB, "a.sub": SUB, "y": ""}

    text = "JOB A a.sub\nJOB B b.sub"

    (finding,) = checked(text, files).findings
    assert (finding.file, finding.line) == ("b.sub", 1)
    assert finding.message.endswith(" x")
    dag = checked("JOB A none.sub\nJOB B b.sub", files, allow_missing_files=True)
    assert dag.findings == []
    assert [each.line for each in dag.warnings] == [1, 1]
    told = found(text, {**files, "a.sub": "what\nqueue"})
    assert [file for file, _ in told] == ["a.sub"]


def test_the_bounds_are_those_of_the_settings(settings) -> None:
    limits = {"MAX_DAG_NODES": 2, "MAX_DAG_TEXT_BYTES": 100}
    settings.PILOTAGE = {**settings.PILOTAGE, **limits}

    three_nodes = "JOB A a NOOP\nJOB B a NOOP\nJOB C a NOOP"

    assert found(three_nodes) == [("case.dag", 3)]
    assert found("INCLUDE b", {"b": "#" * 101}) == [("b", None)]


def test_a_dag_in_a_directory_is_checked_there() -> None:
    files = {"d/in.dag": "JOB A a.sub", "d/a.sub": SUB}
    streams = {name: io.BytesIO(text.encode()) for name, text in files.items()}

    dag = check_dag(["d/in.dag"], files=streams, owner=None, origin=Origin("d"))

    assert dag.findings == []
    assert dag.dag.nodes["A"].source == "d/a.sub"


def test_a_check_that_takes_too_long_is_a_fault(settings) -> None:
    settings.PILOTAGE = {**settings.PILOTAGE, "MAX_CHECK_S": -1}

    (finding,) = checked("JOB A a.sub", {"a.sub": SUB}).findings

    assert finding.file == "case.dag"
    assert "-1 s" in finding.message


def test_an_inner_dag_may_be_given_less_time_but_not_more(settings) -> None:
    def messages(limit_s: float) -> str:
        findings = checked("JOB A a.sub", {"a.sub": SUB}, limit_s=limit_s).findings
        return " ".join(each.message for each in findings)

    assert messages(1e6) == ""
    assert "-1 s" in messages(-1)

    settings.PILOTAGE = {**settings.PILOTAGE, "MAX_CHECK_S": -2}
    assert "-2 s" in messages(1e6)


def test_descriptions_are_read_no_longer_than_the_time_allows(monkeypatch) -> None:
    # The DAG file is read within the first three looks at the clock.
    seconds = count()
    monkeypatch.setattr(checking, "time", SimpleNamespace(monotonic=seconds.__next__))
    text = "\n".join(f"JOB N{n} s{n}.sub" for n in range(8))

    (finding,) = checked(text, {f"s{n}.sub": SUB for n in range(8)}, limit_s=6).findings

    assert (finding.file, finding.line) == ("case.dag", 4)
    assert "6 s" in finding.message
    assert "3 descriptions" in finding.message


@pytest.mark.parametrize(
    "line",
    ["arguments = {}", "requirements = {}", "request_memory = {}", "+X = {}", "environment = {}",
     "transfer_input_files = {}", "queue {}"],
)  # fmt: skip
def test_macros_nested_thousands_deep_are_a_fault_of_their_line(line: str) -> None:
    text = line.format("$(" * 5000 + "a" + ")" * 5000)

    told = checked("JOB A a.sub", {"a.sub": f"executable = /bin/true\n{text}\nqueue\n"}).findings

    assert ("a.sub", 2) in {(each.file, each.line) for each in told}
    assert any("20 macros" in each.message for each in told)


@pytest.mark.parametrize(
    "deep", ["(" * 5000 + "1" + ")" * 5000, "{" * 5000 + "}" * 5000, "!" * 5000 + "true",
             "-" * 5000 + "1", "true?" * 5000 + "1" + ":1" * 5000],
)  # fmt: skip
def test_expressions_nested_thousands_deep_are_a_fault_of_their_line(deep: str) -> None:
    sub = f"executable = /bin/true\nrequirements = {deep}\nqueue\n"

    told = checked("JOB A a.sub", {"a.sub": sub}).findings

    assert [(each.file, each.line) for each in told] == [("a.sub", 2)]


@pytest.mark.parametrize(
    ("lines", "fact"),
    [
        ("arguments = " + "$(" * 400 + ")" * 400 + "\nqueue", "20 macros"),
        ("queue x in [" + "1" * 5000 + ":] (a)", "9 digits"),
        ("queue x in [:" + "1" * 10 + "] (a)", "9 digits"),
        ("queue " + "1*" * 9000 + "1" * 5000, "1*1*1*"),
    ],
)
def test_what_is_nested_deeply_or_has_very_many_digits_is_a_fault_of_its_line(
    lines: str, fact: str
) -> None:
    findings = checked("JOB A a.sub", {"a.sub": f"{lines}\nexecutable = /bin/true\n"}).findings

    assert [each for each in findings if each.line == 1 and fact in each.message], findings


def test_a_request_may_take_longer_the_more_it_sends_but_not_forever(settings) -> None:
    settings.PILOTAGE = {**settings.PILOTAGE, "MAX_CHECK_S": 60}

    limits = [checking.request_deadline(size).limit_s for size in (0, 10**6, 10 * 10**6, 10**9)]

    assert limits == [5, 7, 25, 60]
