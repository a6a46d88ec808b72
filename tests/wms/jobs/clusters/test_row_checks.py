"""Tables that people write: rows are counted and found as if each line were read by itself."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wms.jobs.clusters.parameters import row_checks
from wms.jobs.clusters.parameters.row_checks import row_fault, scan_table
from wms.jobs.clusters.parameters.row_index import RowIndex, row_of
from wms.jobs.clusters.parameters.tables import Kind, row_values

_LINES = st.lists(
    st.one_of(
        st.sampled_from(["1,2", "a b", "3, 4", "# no", "", "  ", "x,y,z", "é,ß", "a\tb", " a,b"]),
        st.text(alphabet="ab1, \t#'./\r", max_size=12),
    ),
    max_size=40,
)


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_checks, "CHUNK_BYTES", 16)


@given(lines=_LINES, columns=st.integers(1, 3), has_end=st.booleans())
def test_a_pass_over_chunks_finds_what_a_pass_over_lines_does(
    lines: list[str], columns: int, has_end: bool
) -> None:
    content = ("\n".join(lines) + ("\n" if has_end else "")).encode()
    rows = [(at, row) for at, line in enumerate(content.split(b"\n"), 1) if (row := row_of(line))]

    scan = scan_table(io.BytesIO(content), file="t", columns=columns)

    faults = [at for at, row in rows if row_fault(row, scan.kind, columns)]
    assert [each.line for each in scan.faults] == faults
    assert scan.built.row_count == len(rows)
    index = RowIndex.from_bytes(scan.built.index(is_exact=False).to_bytes(), is_exact=False)
    read = index.read(io.BytesIO(content), range(len(rows)))
    assert [read[place].encode() for place in range(len(rows))] == [row for _, row in rows]


def test_rows_are_found_from_anywhere() -> None:
    content = "".join(f"{number}\n" for number in range(1000)).encode()
    index = scan_table(io.BytesIO(content), file="t", columns=1).built.index(is_exact=False)

    wanted = [999, 0, 500, 501, 3]

    assert index.read(io.BytesIO(content), wanted) == {place: str(place) for place in wanted}


def test_a_row_without_end_is_refused_without_reading_it_again_and_again() -> None:
    scan = scan_table(io.BytesIO(b"x" * 2_000_000), file="t", columns=1)

    assert [each.line for each in scan.faults] == [1]


@pytest.mark.parametrize(
    ("row", "kind", "values"),
    [
        ("New York, 5", Kind.COMMAS, ("New York", "5")),
        ("a -x 1,2", Kind.BLANKS, ("a", "-x 1,2")),
        ("a\x1f b", Kind.CELLS, ("a", " b")),
        ("a b", Kind.WORDS, ("a b", "")),
    ],
)
def test_values_of_a_row(row: str, kind: Kind, values: tuple[str, str]) -> None:
    read = row_values(["x", "y"], row, kind)

    assert (read["x"], read["y"], read["item"]) == (*values, row)
