"""Input data in the answer about a waiting job: what they have to do with its waiting."""

from __future__ import annotations

from collections.abc import Sequence

from matching.negotiation.explanation import MatchVerdict
from wms.jobs.input_data.wanted import Located


def with_inputs(
    verdict: MatchVerdict, summary: str, inputs: Located | None, own_sites: Sequence[str]
) -> tuple[MatchVerdict, str]:
    """Verdict and summary for a job with these inputs, which may run at `own_sites` alone, or
    anywhere where there are none.

    What keeps it from all sites passes by itself, when there is a replica near one.
    """
    if inputs is None or inputs.sites is None:
        return verdict, summary
    if not inputs.sites:
        return MatchVerdict.NOT_NOW, f"It waits for its input data. {inputs.told}"
    if own_sites and not set(own_sites) & set(inputs.sites):
        told = f"It waits for its input data at {', '.join(own_sites)}, where it may run only."
        return MatchVerdict.NOT_NOW, f"{told} {inputs.told}"
    return verdict, f"{inputs.told} {summary}"
