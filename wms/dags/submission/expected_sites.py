"""Warnings about a DAG that no site takes as the sites are now, made when it is checked.

By the rules of the negotiation, with nothing bound to the sites and none closed for a time. The
nodes count by their different needs, so the number of nodes does not matter.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from matching.negotiation.acceptance import accept, homeless_node
from matching.negotiation.cycle_sites import Offer
from matching.negotiation.decision import Bounds, Request
from matching.negotiation.near_misses import NearMiss, near_misses
from matching.negotiation.node_fit import NodeFit
from matching.negotiation.unmatched_reasons import Kind, Leftover
from wms.core.errors import Finding
from wms.core.models import User
from wms.dags.negotiation.cycle import read_offers
from wms.dags.negotiation.input_data import DagInputs, input_data_of
from wms.dags.negotiation.node_fit import current_fitter
from wms.dags.negotiation.requests import submitter_key
from wms.dags.states import Binding
from wms.dags.submission.checking import CheckedDag
from wms.dags.submission.node_inputs import inputs_of_nodes
from wms.dags.submission.node_needs import stored_needs
from wms.jobs.input_data.wanted import Located, locate

#: Time for the sites' answers, and for the search of what would help.
_BOUNDS = Bounds(time.monotonic, request_s=1.0, decision_s=1.0)
#: Other reasons pass by themselves.
_LASTING = frozenset({Kind.NO_SITE, Kind.NODES, Kind.FAULT})
_MISSES_SHOWN = 2


def site_warnings(
    checked: CheckedDag, *, name: str, owner: User, file: str, now: datetime
) -> list[Finding]:
    """Warning that no site takes the DAG, and what would help; none where no site has an ad.

    `file` is the place that it is told of.
    """
    offers = [replace(offer, closed="", allowance=None) for offer in read_offers(now)]
    if not offers:
        # A portal without sites knows nothing about them.
        return []
    request = _request(checked, name, owner)
    left = _obstacle(request, offers, now)
    if left is None or left.kind not in _LASTING:
        return []
    text = f"as the sites are now, none takes this DAG: {left.text}"
    if left.kind is Kind.NO_SITE and not left.names_attributes:
        found = near_misses(request, offers, now, bounds=_BOUNDS)
        text = " ".join([text, *map(_told, found[:_MISSES_SHOWN])])
    return [Finding(text, file=file)]


def _request(checked: CheckedDag, name: str, owner: User) -> Request:
    description = checked.description
    group = description.group.name if description.group else ""
    values = {
        "MyType": "Job",
        "TargetType": "Machine",
        "Owner": owner.username,
        "DagName": name,
        "NodesTotal": len(checked.dag.nodes),
        "NodesUnfinished": len(checked.dag.nodes),
        "Rematches": 0,
        **({"AccountingGroup": group} if group else {}),
    }
    needs = stored_needs(checked.nodes_by_needs, done=())
    inputs, input_node = _located_inputs(checked, owner)
    near = None if inputs is None else inputs.sites
    fit: NodeFit | None = None
    nearness: tuple[tuple[int, int], ...] = ()
    if needs["node_needs"]:
        fitter = current_fitter(stopwatch=time.monotonic, limit_s=_BOUNDS.decision_s)
        text = json.dumps(needs["node_needs"])
        fit = fitter.fit(text, owner=owner.username, group=group, near=near)
        nearness = () if inputs is None else fitter.near(inputs.tenths)
    return Request(
        dag_id=0,
        expressions=description.attributes,
        values=values,
        submitter=submitter_key(owner.pk, None),
        group=group,
        node_fit=fit,
        nodes=needs["need_nodes"] if near is None else [*needs["need_nodes"], input_node],
        bound_singly=description.binding is Binding.JOB,
        inputs="" if inputs is None else inputs.told,
        nearness=nearness,
    )


def _located_inputs(checked: CheckedDag, owner: User) -> tuple[DagInputs | None, str]:
    """Where the input data of the nodes are now, and the name of one node that has any."""
    if checked.description.binding is Binding.JOB or not checked.nodes_by_inputs:
        return None, ""
    near, far, node = inputs_of_nodes(
        checked.nodes_by_inputs, checked.dag, checked.placed, owner=owner, done=()
    )
    wanted = [each for each in (near, far) if each is not None]
    found = dict(zip(wanted, locate(wanted), strict=True))
    of_near = found[near] if near is not None else Located()
    of_far = found[far] if far is not None else Located()
    columns = of_near.sites, of_near.told, of_far.sites, of_far.told, of_far.tenths
    return input_data_of(*columns), node


def _obstacle(request: Request, offers: Sequence[Offer], now: datetime) -> Leftover | None:
    accepted = accept([request], offers, now, bounds=_BOUNDS)[request.dag_id]
    if accepted.leftover is None:
        return homeless_node(request, accepted.site_ids) if request.bound_singly else None
    names = {offer.site_id: offer.name for offer in offers}
    return accepted.leftover.with_more(request.unmet_needs(accepted.leftover.unfit, names))


def _told(miss: NearMiss) -> str:
    would = "would fit" if miss.is_enough else "would agree, were there queues for its nodes"
    fitting = f"1 site {would}" if miss.after == 1 else f"{miss.after} sites {would}"
    if miss.attribute == "Requirements":
        change = f"with {miss.new} for {miss.old}" if miss.new else f"without {miss.old}"
        return f"{change[0].upper()}{change[1:]} in its Requirements, {fitting}."
    return f"With {miss.attribute} = {miss.new}, {fitting}."
