"""Files that DAG files and submit descriptions name, as the client finds them on disk."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from pilotage_client.errors import UsageError
from pilotage_client.files.bodies import Archive, Form, Part, text_part
from pilotage_client.files.dag_scan import is_dag_text
from pilotage_client.files.found import dag_files, job_files


def write_all(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_a_dag_names_its_descriptions_programs_inputs_splices_scripts_and_included_files(
    own_place: Path,
) -> None:
    write_all(
        own_place,
        {
            "x.dag": (
                "JOB A a.sub DIR sub\nVARS A part=\"1\"\nINCLUDE more.inc\n"
                "SPLICE S s.dag DIR sub\nSUBDAG EXTERNAL I inner.dag\nDATA D move.stork\n"
                "SCRIPT DEFER 4 60 PRE A pre.sh $JOB\nCONFIG dag.config\n"
                "DOT x.dot INCLUDE head.dot\n"
                "JOB L {\n  executable = line.sh\n}\n# JOB Z not.sub\n"
            ),
            "more.inc": "JOB B shared\nSUBMIT-DESCRIPTION shared {\n executable = b.sh\n}\n",
            "sub/a.sub": "executable = a.sh\ntransfer_input_files = in_$(part).dat, folder\n",
            "sub/a.sh": "", "sub/in_1.dat": "", "sub/in_2.dat": "", "sub/folder/deep/f": "",
            "sub/s.dag": "JOB T t.sub\n", "sub/t.sub": "executable = t.sh\n", "sub/t.sh": "",
            "sub/pre.sh": "", "inner.dag": "JOB U u.sub\n", "u.sub": "executable=/bin/true\n",
            "move.stork": "", "dag.config": "", "head.dot": "", "line.sh": "", "b.sh": "",
            "not.sub": "", "unnamed": "",
        },
    )  # fmt: skip

    found = dag_files(["x.dag"])

    assert sorted(found.files) == sorted(
        [
            "x.dag", "more.inc", "sub/a.sub", "sub/a.sh", "sub/in_1.dat", "sub/folder/deep/f",
            "sub/s.dag", "sub/t.sub", "sub/t.sh", "sub/pre.sh", "inner.dag", "u.sub", "move.stork",
            "dag.config", "head.dot", "line.sh", "b.sh",
        ]
    )  # fmt: skip
    assert (found.dags, found.directory, found.root) == (["x.dag"], "", "")


def test_what_lies_beside_the_folder_is_sent_with_the_folder_around_both(own_place: Path) -> None:
    write_all(own_place, {"run/x.dag": "JOB A ../common/a.sub\n", "common/a.sub": "queue\n"})

    found = dag_files(["run/x.dag"])

    assert sorted(found.files) == ["common/a.sub", "run/x.dag"]
    assert (found.dags, found.directory, found.root) == (["run/x.dag"], "run", str(own_place))


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        ("queue n in (1, 3)", ["d1", "d3"]),
        ("queue n from (\n1\n3\n)", ["d1", "d3"]),
        ("queue n from t.csv", ["d1", "d2", "t.csv"]),
        ("queue n matching files d[23]", ["d2", "d3"]),
        ("queue 3", ["d1", "d2", "d3"]),
    ],
)
def test_names_with_macros_are_filled_in_by_the_queue_statement(
    own_place: Path, queue: str, expected: list[str]
) -> None:
    write_all(own_place, {"d1": "", "d2": "", "d3": "", "t.csv": "1\n2\n"})
    name = "$(n)" if "matching" in queue else "d$(n)"

    found = job_files(f"executable=/bin/true\ntransfer_input_files = {name}\n{queue}\n", own_place)

    assert sorted(found.files) == expected


def test_a_rescue_beside_a_dag_is_sent_and_told_unless_one_begins_afresh(own_place: Path) -> None:
    write_all(own_place, {"x.dag": "JOB A a.sub\n", "x.dag.rescue001": "DONE A\n"})

    found, afresh = dag_files(["x.dag"]), dag_files(["x.dag"], is_afresh=True)

    assert "x.dag.rescue001" in found.files
    assert found.notices
    assert list(afresh.files) == ["x.dag"]


def test_files_without_a_folder_in_common_are_refused(own_place: Path) -> None:
    write_all(own_place, {"x.dag": "CONFIG /etc/hostname\n"})

    with pytest.raises(UsageError):
        dag_files(["x.dag"])
    with pytest.raises(UsageError):
        dag_files(["none.dag"])


@pytest.mark.parametrize(
    ("text", "is_dag"),
    [
        ("# a\nJOB A a.sub\n", True),
        ("submit-description x {\n", True),
        ("executable = a\nqueue\n", False),
        ("job = x\nqueue\n", False),
        ("", False),
    ],
)
def test_a_dag_is_told_from_a_submit_file_by_its_first_command(text: str, is_dag: bool) -> None:
    assert is_dag_text(text) is is_dag


def test_an_archive_and_a_form_are_as_long_as_they_say(own_place: Path) -> None:
    long_name = "n" * 180 + "/" + "m" * 120
    write_all(own_place, {"a": "x" * 700, long_name: "", "é/b": "y" * 512})
    files = {name: own_place / name for name in ("a", long_name, "é/b")}
    told: list[tuple[int, int]] = []

    archive = Archive(files)
    whole = b"".join(archive)
    parts = [text_part("dag", "a"), Part("archive", archive, 'a".tar')]
    form = Form(parts, lambda *sent: told.append(sent))
    body = b"".join(form)

    assert (len(whole), len(body)) == (archive.length, form.length)
    assert told[-1] == (form.length, form.length)
    with tarfile.open(fileobj=io.BytesIO(whole)) as packed:
        assert {m.name: m.size for m in packed} == {"a": 700, long_name: 0, "é/b": 512}
    assert whole == b"".join(Archive(files))


def test_a_file_that_changes_while_it_is_sent_is_refused(own_place: Path) -> None:
    write_all(own_place, {"a": "x" * 700})
    archive = Archive({"a": own_place / "a"})
    (own_place / "a").write_text("short")

    with pytest.raises(UsageError):
        b"".join(archive)
