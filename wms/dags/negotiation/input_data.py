"""Input data of a DAG in the negotiation: the sites that they tie it to, or that it prefers.

They stand in the sets of inputs that the DAG names since its submission, which are kept up to date
(`wms.jobs.input_data.refreshing`): a cycle reads them with the request, and resolves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DagInputs:
    """Sites that a DAG's input data tie it to, None: to no site; a sentence on where these are.

    `tenths` of the input data that may come from afar are near sites, by their names.
    """

    sites: Sequence[str] | None
    told: str
    tenths: Mapping[str, int]


def input_data_of(
    near_sites: Sequence[str] | None,
    near_told: str | None,
    far_sites: Sequence[str] | None,
    far_told: str | None,
    tenths: Mapping[str, int] | None,
) -> DagInputs | None:
    """Input data by the columns of a DAG's two sets; None where they make no difference.

    What may come from afar ties the DAG too as long as it is nowhere: then to no site at all.
    """
    if near_sites is None and far_sites is None and not tenths:
        return None
    sites = near_sites
    if far_sites is not None:
        far = set(far_sites)
        sites = list(far_sites) if sites is None else [each for each in sites if each in far]
    ties = ((near_sites, near_told), (far_sites, far_told))
    told = " ".join(text for each, text in ties if each is not None and text)
    return DagInputs(sites, told, tenths or {})
