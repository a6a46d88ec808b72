"""The DAG language: DAGMan's, and what Pilotage adds to it."""

from __future__ import annotations

from wms.dags.language.parser import MAX_FINDINGS, DagFile, NodeSpec, parse_dag

__all__ = ["MAX_FINDINGS", "DagFile", "NodeSpec", "parse_dag"]
