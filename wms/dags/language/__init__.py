"""The DAG language: DAGMan's, and what Pilotage adds to it."""

from __future__ import annotations

from wms.dags.language.bounds import MAX_FINDINGS
from wms.dags.language.parser import parse_dag
from wms.dags.language.spec import DagSpec, NodeSpec

DagFile = DagSpec

__all__ = ["MAX_FINDINGS", "DagFile", "DagSpec", "NodeSpec", "parse_dag"]
