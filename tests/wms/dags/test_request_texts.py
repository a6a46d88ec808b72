"""Macros and references in the requests of DATA nodes."""

from __future__ import annotations

import pytest

from wms.core.errors import InvalidInput
from wms.dags.submission.request_texts import (
    NodeValues,
    SiteReferences,
    checked_text,
    final_text,
)
from wms.placement.request_ad import parse_requests

AD = """[
  dap_type = "transfer";
  src_url = "file:$(JOB)-$(part)";
  dest_url = "$$(Storage)/$(DAGManJobId)/$ENV(Folder:x)";
  size = $$([1000 * Blocks]);
]"""
NODE = NodeValues("A", {"part": "01", "+attribute": "$(x)"})
SITE = SiteReferences(
    {"Folder": "runs"}, {"Storage": "http://s.example", "Bad": 'x"; y = "'}, lambda _: "5000"
)


def test_a_request_is_filled_in_at_the_site():
    [spec] = parse_requests(final_text(AD, NODE, {"DAGManJobId": "7"}, SITE))

    assert (spec.source_url, spec.destination_url) == ("file:A-01", "http://s.example/7/runs")
    assert spec.size_bytes == 5000


def test_what_only_the_site_tells_is_no_fault_before():
    [spec] = parse_requests(checked_text(AD, NODE))

    assert spec.source_url == "file:A-01"
    assert spec.unknown == {"dest_url", "size"}


def test_appended_values_win_and_values_may_have_macros():
    node = NodeValues("A", {"part": "01", "x": "$(part)y"}, {"part": "02"})

    assert checked_text("$(x)", node) == "02y"


@pytest.mark.parametrize("text", ["$$(Bad)", "$$(Missing)", "$ENV(Missing)"])
def test_a_value_that_is_missing_or_would_leave_its_quotes_is_refused(text):
    with pytest.raises(InvalidInput, match="not defined"):
        final_text(text, NODE, {}, SITE)


def test_faults_of_a_node_are_found_with_its_own_values():
    with pytest.raises(InvalidInput, match="no pair of schemes"):
        parse_requests(
            checked_text(
                '[dap_type = "transfer"; src_url = "file:a"; dest_url = "file:b"; '
                'alt_protocols = "$(how)"]',
                NodeValues("A", {"how": "fly"}),
            )
        )
