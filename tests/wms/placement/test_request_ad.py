from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wms.core.errors import InvalidInput
from wms.placement.request_ad import FileLocation, file_location, pair_of, parse_request

GOOD = """[
  // the first file
  dap_type = "transfer";
  src_url = "FILE:in/x";
  dest_url = "file:///pool/x";
  alt_protocols = "gsiftp-file, http-file";
]"""


def faults(text: str, **more: str) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        parse_request(text, **more)
    return [str(each) for each in caught.value.findings]


def test_a_request_is_read_in_the_new_and_in_the_old_format():
    new = parse_request(GOOD)
    old = parse_request('Dap_Type = "transfer"\nSrc_URL = "file:a"\nDest_Url = "file:b"\n')

    assert (new.source_url, new.destination_url) == ("file:in/x", "file:///pool/x")
    assert new.alternatives == (("gsiftp", "file"), ("http", "file"))
    assert (old.source_url, old.destination_url) == ("file:a", "file:b")


def test_values_may_be_expressions():
    spec = parse_request(
        '[Host = "http://h"; dap_type = "transfer"; src_url = strcat(Host, "/x"); '
        'dest_url = "file:x"; size = 6 * 7]'
    )

    assert spec.source_url == "http://h/x"
    assert spec.expected_bytes == 42


def test_all_faults_are_told_with_their_lines():
    text = 'dap_type = "fly"\nsrc_url = 5\nalt_protocols = "http, a-b-c"\nsize = -1\nchecksum = "x"'

    told = faults(text, file="x.stork")

    assert [each.split(": ")[0] for each in told] == [
        "x.stork:1", "x.stork:2", "x.stork:1", "x.stork:3", "x.stork:3", "x.stork:5", "x.stork:4",
    ]  # fmt: skip
    for fault, name in zip(told, ("fly", "src_url", "dest_url"), strict=False):
        assert name in fault


def test_what_does_not_parse_is_told_with_its_line():
    text = '[\n dap_type = "transfer";\n src_url = ;\n]'

    assert faults(text, file="x.stork")[0].startswith("x.stork:3")


@pytest.mark.parametrize("kind", ["reserve", "release", "stage", "remove", "requestpath"])
def test_what_stork_did_besides_is_refused_by_name(kind):
    text = f'dap_type = "{kind}"\nsrc_url = "file:a"\ndest_url = "file:b"'

    [fault] = faults(text)
    assert fault.startswith("dap_type:1: ")
    assert kind in fault


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("file:x", FileLocation("run/x", False)),
        ("file:./d//x", FileLocation("run/d/x", False)),
        ("file:../x", FileLocation("x", False)),
        ("file:d/", FileLocation("run/d", False, True)),
        ("file:.", FileLocation("run", False, True)),
        ("file:..", FileLocation("", False, True)),
        ("file:a%20b", FileLocation("run/a b", False)),
        ("file:a?b#c", FileLocation("run/a?b#c", False)),
        ("file:///pool/x", FileLocation("/pool/x", True)),
        ("file:/pool/x", FileLocation("/pool/x", True)),
        ("file://localhost/pool//x/", FileLocation("/pool/x", True, True)),
    ],
)
def test_where_a_file_address_leads(url, place):
    assert file_location(url, directory="run") == place


@pytest.mark.parametrize(
    "url",
    ["file:../../x", "file:%2e%2e/../x", "file://else/x", "file:///a/../b", "file:a%00", "file://"],
)
def test_a_file_address_that_leads_nowhere_is_refused(url):
    with pytest.raises(InvalidInput):
        file_location(url, directory="run")


@given(st.text(alphabet="./%2efabc?#-", max_size=30), st.sampled_from(["", "d", "d/e"]))
def test_no_relative_address_leaves_the_workspace(name, directory):
    try:
        place = file_location(f"file:{name}", directory=directory)
    except InvalidInput:
        return
    if not place.is_absolute:
        assert not place.path.startswith("/")
        assert ".." not in place.path.split("/")


@given(
    st.lists(st.tuples(st.text(max_size=3), st.text(max_size=3)), min_size=1), st.integers(1, 99)
)
def test_every_pair_has_its_turn(pairs, number):
    assert pair_of(pairs, number) == pair_of(pairs, number + len(pairs))
    assert pair_of(pairs, 1) == pairs[0]
