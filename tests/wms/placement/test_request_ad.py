from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wms.core.errors import InvalidInput
from wms.placement.addresses import FileLocation, checked_url, file_location
from wms.placement.request_ad import parse_requests

GOOD = """[
  // the first file
  dap_type = "transfer";
  src_url = "FILE:in/x";
  dest_url = "file:///pool/x";
  alt_protocols = "gsiftp-file, http-file";
]"""


def faults(text: str, **more: str) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        parse_requests(text, **more)
    return [str(each) for each in caught.value.findings]


def test_a_request_is_read_in_the_new_and_in_the_old_format():
    [new] = parse_requests(GOOD)
    [old] = parse_requests('Dap_Type = "transfer"\nSrc_URL = "file:a"\nDest_Url = "file:b"\n')

    assert (new.source_url, new.destination_url) == ("file:in/x", "file:///pool/x")
    assert new.alternatives == (("gsiftp", "file"), ("http", "file"))
    assert (old.source_url, old.destination_url) == ("file:a", "file:b")


def test_values_may_be_expressions():
    [spec] = parse_requests(
        '[Host = "http://h"; dap_type = "transfer"; src_url = strcat(Host, "/x"); '
        'dest_url = "file:x"; size = 6 * 7]'
    )

    assert spec.source_url == "http://h/x"
    assert spec.size_bytes == 42


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


CHAPTER = """[
  dap_type = "allocate";
  dest_host = "houdini.example.com";
  size = "200MB";
  duration = "60 minutes";
  allocation_id = 1;
]
// then the file
[
  dap_type = "transfer";
  src_url = "srb://ghidorac.example.edu/home/1.dat";
  dest_url = "nest://turkey.example.edu/1.dat";
]
[ dap_type = "release"; dest_host = "houdini.example.com"; allocation_id = 1 ]
"""


def test_many_requests_of_a_text_are_read_in_their_order():
    allocation, transfer, release = parse_requests(CHAPTER)

    assert (allocation.kind, allocation.host) == ("allocate", "houdini.example.com")
    assert (allocation.size_bytes, allocation.duration_s) == (200 * 2**20, 3600)
    assert (allocation.allocation, release.allocation) == ("1", "1")
    assert (transfer.kind, transfer.pairs) == ("transfer", [("srb", "nest")])
    assert [each.line for each in (allocation, transfer, release)] == [1, 9, 14]


def test_old_and_released_names_of_attributes_mean_the_same():
    [old] = parse_requests(
        'dap_type = "reserve"\ndest_host = "h"\nreserve_size = "1 GB"\nduration = "2 h"\n'
        "reserve_id = 7"
    )

    assert (old.kind, old.size_bytes, old.duration_s) == ("allocate", 2**30, 7200)
    assert old.allocation == "7"


def test_faults_of_many_requests_have_the_lines_of_the_text():
    text = CHAPTER.replace('"60 minutes"', '"soon"').replace('"srb://', '"srb:')

    told = faults(text, file="x.stork")

    assert [each.split(": ")[0] for each in told] == ["x.stork:5", "x.stork:11"]


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('[dap_type = "fly"; src_url = "file:a"; dest_url = "file:b"]', "dap_type"),
        ('[dap_type = "requestpath"; src_url = "file:a"; dest_url = "file:b"]', "dap_type"),
        ('[dap_type = "stage"; dest_url = "file:b"]', "src_url"),
        ('[dap_type = "remove"; src_url = "file:d/"]', "src_url"),
        ('[dap_type = "transfer"; src_url = "http:///x"; dest_url = "file:b"]', "src_url"),
        ('[dap_type = "transfer"; src_url = "http://h:99999/x"; dest_url = "file:b"]', "src_url"),
        ('[dap_type = "transfer"; src_url = "http://u:p@h/x"; dest_url = "file:b"]', "src_url"),
        ('[dap_type = "transfer"; src_url = "http://h/%0ax"; dest_url = "file:b"]', "src_url"),
        ('[dap_type = "transfer"; src_url = "file:a"; dest_url = "file:b\\tc"]', "dest_url"),
        (
            '[dap_type = "reserve"; dest_host = "h/x"; size = 5; duration = "1 h"; '
            "allocation_id = 1]",
            "dest_host",
        ),
        (
            '[dap_type = "reserve"; dest_host = "h"; size = 0; duration = "1 h"; '
            "allocation_id = 1]",
            "size",
        ),
        (
            '[dap_type = "reserve"; dest_host = "h"; size = 5; duration = 60; allocation_id = 1]',
            "duration",
        ),
        (
            '[dap_type = "reserve"; dest_host = "h"; size = 5; duration = "1 h"; '
            'allocation_id = "a b"]',
            "allocation_id",
        ),
        ('[dap_type = "release"; dest_host = "h"]', "allocation_id"),
    ],
)
def test_a_faulty_attribute_is_named(text, field):
    with pytest.raises(InvalidInput) as caught:
        parse_requests(text)

    assert [each.field for each in caught.value.findings] == [field]


@pytest.mark.parametrize("text", ['[dap_type = "x"] y', "[ [ a = 1 ]", "[a = 1]]"])
def test_text_that_is_no_row_of_ads_is_refused(text):
    assert len(faults(text)) == 1


def test_an_attribute_that_is_missing_is_told_with_the_line_of_its_ad():
    with pytest.raises(InvalidInput) as caught:
        parse_requests(f'{GOOD}\n[ dap_type = "stage" ]')

    [fault] = caught.value.findings
    assert (fault.field, fault.line) == ("src_url", 8)


def test_checksums_of_three_kinds_are_told_apart():
    [spec] = parse_requests(
        '[dap_type = "transfer"; src_url = "file:a"; dest_url = "file:b"; '
        f'checksum = "{"A" * 64}, md5:{"b" * 32} adler32:0123ABCD"]'
    )

    assert spec.checksums.sha256 == "a" * 64
    assert (spec.checksums.md5, spec.checksums.adler32) == ("b" * 32, "0123abcd")


@given(st.text(alphabet="htp:/@%[]0a.-é #?\\", max_size=20))
def test_what_passes_as_an_address_has_a_host_or_is_a_file(rest):
    try:
        url = checked_url(f"http:{rest}")
    except InvalidInput:
        return
    assert urlsplit(url).hostname


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
        ("file:////data/example.dat", FileLocation("/data/example.dat", True)),
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
