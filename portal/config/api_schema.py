"""Settings of the OpenAPI schema: title, hooks, and the names of its enumerations."""

from __future__ import annotations

from typing import Any

SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "Pilotage API",
    "DESCRIPTION": "Submit and steer workflows, and read what runs where.\n\n"
    "A token has so many requests in a time, in all and for each of the scopes `read`, `submit`, "
    "`control`, `site` and `admin`: a request counts for the scopes that it needs. Answers tell in "
    "`RateLimit-Policy` and `RateLimit` what there is and what is left, by the policies `token`, "
    "`user` and those of the scopes. One request too many is answered 429 with `Retry-After` and "
    "the type `/problems/rate-exceeded/`, whose `violated-policies` names what is used up.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    # What is sent and what is answered differ: files are sent as bytes, and all members answered.
    "COMPONENT_SPLIT_REQUEST": True,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "portal.api.schema.tell_null",
        "portal.api.schema.tell_refusals",
        "portal.api.schema.tell_fields",
    ],
    "PATH_CONVERTER_OVERRIDES": {"int8": {"type": "integer", "minimum": 0, "maximum": 2**63 - 1}},
    "SWAGGER_UI_DIST": "SIDECAR",
    # The browser takes longer than a reader waits to draw all endpoints at once.
    "SWAGGER_UI_SETTINGS": {
        "deepLinking": True,
        "docExpansion": "none",
        "defaultModelsExpandDepth": -1,
    },
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "ENUM_NAME_OVERRIDES": {
        "Role": "wms.core.models.Role",
        "TokenScope": "wms.core.models.Scope",
        "NoticeKind": "wms.notices.models.Notice.Kind",
        "NoticeRule": "wms.notices.models.Rule",
        "NoticeSubject": "wms.notices.models.SubjectKind",
        "FailureKind": "wms.failures.models.Kind",
        "FailureGroupState": "wms.failures.states.GroupState",
        "DagState": "wms.dags.states.DagState",
        "DagCause": "wms.dags.states.DagCause",
        "InputCause": "wms.jobs.states.InputCause",
        "NodeState": "wms.dags.states.NodeState",
        "NodeCause": "wms.dags.states.NodeCause",
        "NodeKind": "wms.dags.states.NodeKind",
        "ScriptState": "wms.dags.states.ScriptState",
        "ScriptKind": "wms.dags.states.ScriptKind",
        "TrialKind": "wms.dags.trials.states.TrialKind",
        "TrialState": "wms.dags.trials.states.TrialState",
        "PlacementKind": "wms.placement.states.RequestKind",
        "PlacementState": "wms.placement.states.RequestState",
        "ClusterState": "wms.jobs.clusters.states.ClusterState",
        "ClusterCause": "wms.jobs.clusters.states.ClusterCause",
        "JobState": "wms.jobs.states.JobState",
        "JobCause": "wms.jobs.states.JobCause",
        "PilotState": "wms.pilots.states.PilotState",
        "PilotTest": "wms.pilots.states.PilotTest",
        "SiteState": "wms.sites.states.SiteState",
        "ScheduleState": "wms.schedules.states.ScheduleState",
        "ScheduleOutcome": "wms.schedules.states.RunOutcome",
        "BulkState": "wms.bulk.states.BulkState",
        "BulkOutcome": "wms.bulk.states.Outcome",
        "AttemptFileKindEnum": "wms.jobs.models.AttemptFile.Kind",
        "AboutDag": ["dag"],
        "AboutJob": ["job"],
        "AboutSite": ["site"],
        "OutcomeEnum": "wms.jobs.models.Attempt.Outcome",
    },
}
