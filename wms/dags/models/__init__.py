"""Models of DAGs: DAGs, nodes, runs of scripts, events, policies and trials."""

from __future__ import annotations

from wms.dags.models.dags import Dag, DagEvent
from wms.dags.models.follow import FollowedCluster, FollowedLog, FollowedProcess
from wms.dags.models.growth import Growth
from wms.dags.models.joins import Condition, Join
from wms.dags.models.matches import LeftCluster, MatchRecord
from wms.dags.models.nodes import Edge, Node, NodeEvent, NodeTimer, NodeWork, SubmitDescription
from wms.dags.models.policies import MatchmakingPolicy, NegotiationCycle
from wms.dags.models.runs import Rescue, ScriptRun, SharedLimit
from wms.dags.models.trials import Trial, TrialEvent

__all__ = [
    "Condition",
    "Dag",
    "DagEvent",
    "Edge",
    "FollowedCluster",
    "FollowedLog",
    "FollowedProcess",
    "Growth",
    "Join",
    "LeftCluster",
    "MatchRecord",
    "MatchmakingPolicy",
    "NegotiationCycle",
    "Node",
    "NodeEvent",
    "NodeTimer",
    "NodeWork",
    "Rescue",
    "ScriptRun",
    "SharedLimit",
    "SubmitDescription",
    "Trial",
    "TrialEvent",
]
