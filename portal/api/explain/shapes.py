"""Serializers of explain requests (why something does not run) and of the answers."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from matching.ads.classads import MAX_AD_BYTES
from matching.negotiation.explanation import MatchVerdict
from matching.negotiation.node_fit import NeedCode
from portal.api.shapes import InputsSerializer, StrictSerializer
from wms.explain.queue_changes import NEEDS, OFFERS

_MAX_ID = 2**63 - 1
_MAX_CHANGES = 100
#: What can be changed in a question about what.
_CHANGES = {
    "dag": ("dag", "sites"),
    "ad": ("dag", "sites"),
    "site": ("dag", "sites", "queues"),
    "job": ("needs", "queues"),
    "task_queue": ("needs", "queues"),
}
_SUBJECTS = ("dag", "job", "task_queue", "site", "ad")


class ChangesSerializer(StrictSerializer):
    """What-if changes: attributes with other expressions; an empty one removes the attribute."""

    dag = serializers.DictField(
        child=serializers.CharField(allow_blank=True, max_length=MAX_AD_BYTES), required=False
    )
    sites = serializers.DictField(
        child=serializers.DictField(
            child=serializers.CharField(allow_blank=True, max_length=MAX_AD_BYTES)
        ),
        required=False,
        help_text="By the sites' names.",
    )
    needs = serializers.DictField(
        child=serializers.CharField(allow_blank=True, max_length=MAX_AD_BYTES),
        required=False,
        help_text="Of the jobs, for questions about a job or a TaskQueue: " + ", ".join(NEEDS),
    )
    queues = serializers.DictField(
        child=serializers.DictField(
            child=serializers.CharField(allow_blank=True, max_length=MAX_AD_BYTES)
        ),
        required=False,
        help_text="What queues offer, by `SITE` or `SITE/QUEUE`: " + ", ".join(OFFERS),
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Bound the number of changes."""
        lists = [attrs.get("dag", {}), attrs.get("needs", {})]
        lists += [*attrs.get("sites", {}).values(), *attrs.get("queues", {}).values()]
        count = sum(map(len, lists))
        if count > _MAX_CHANGES:
            raise serializers.ValidationError(f"at most {_MAX_CHANGES} attributes can be changed")
        return attrs


class QuestionSerializer(StrictSerializer):
    """Object to be explained: exactly one of `dag`, `job`, `task_queue`, `site` and `ad`."""

    dag = serializers.IntegerField(required=False, min_value=1, max_value=_MAX_ID)
    job = serializers.IntegerField(required=False, min_value=1, max_value=_MAX_ID)
    task_queue = serializers.IntegerField(required=False, min_value=1, max_value=_MAX_ID)
    site = serializers.CharField(required=False, max_length=64)
    ad = serializers.CharField(
        required=False, max_length=MAX_AD_BYTES, help_text="An ad in any of the three formats."
    )
    changes = ChangesSerializer(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Exactly one subject; changes only where they mean something."""
        subjects = [name for name in _SUBJECTS if name in attrs]
        if len(subjects) != 1:
            raise serializers.ValidationError(f"name exactly one of {', '.join(_SUBJECTS)}")
        allowed = _CHANGES[subjects[0]]
        useless = [name for name in attrs.get("changes", {}) if name not in allowed]
        if useless:
            message = f"{', '.join(useless)} means nothing here: change {' or '.join(allowed)}"
            raise serializers.ValidationError({"changes": message})
        return attrs


class ConjunctSerializer(serializers.Serializer[Any]):
    """One conjunct of Requirements: how many pass it alone, and with all those before it.

    For so many of the others it is undefined, an error, or no truth value.
    """

    text = serializers.CharField()
    alone = serializers.IntegerField()
    together = serializers.IntegerField()
    undefined = serializers.IntegerField()
    error = serializers.IntegerField()
    no_truth = serializers.IntegerField()


class RefusalSerializer(serializers.Serializer[Any]):
    """Sites that refuse by one conjunct of their own Requirements."""

    text = serializers.CharField()
    sites = serializers.ListField(child=serializers.CharField())
    otherwise_fitting = serializers.IntegerField()


class UnmetNeedSerializer(serializers.Serializer[Any]):
    """Sites that would take the DAG, but have no queue that can run one of its nodes."""

    node = serializers.CharField(help_text="One of the nodes that need this.")
    code = serializers.ChoiceField([code.value for code in NeedCode])
    text = serializers.CharField(
        help_text="What is needed, and the largest amount there, with the unit."
    )
    sites = serializers.ListField(child=serializers.CharField())


class UndefinedNameSerializer(serializers.Serializer[Any]):
    """An attribute that nobody defines, and what may have been meant."""

    name = serializers.CharField()
    used_in = serializers.CharField()
    suggestion = serializers.CharField(allow_blank=True)


class CandidateSerializer(serializers.Serializer[Any]):
    """A site that would take it now."""

    site = serializers.CharField()
    dag_rank = serializers.FloatField()
    site_rank = serializers.FloatField()
    load = serializers.FloatField()
    input_tenths = serializers.IntegerField(
        help_text="So many tenths of its input data are near, where they may come from afar."
    )


class MissSerializer(serializers.Serializer[Any]):
    """One change, and how many sites fit before and after it."""

    attribute = serializers.CharField()
    old = serializers.CharField(allow_blank=True)
    new = serializers.CharField(allow_blank=True)
    before = serializers.IntegerField()
    after = serializers.IntegerField()
    is_enough = serializers.BooleanField(
        help_text="False where these sites would agree, and have no queue for one of its nodes."
    )


class SiteAnswerOfDagSerializer(serializers.Serializer[Any]):
    """A site's answer to a DAG whose jobs are bound at the claim."""

    site = serializers.CharField()
    accepts = serializers.BooleanField()
    reason = serializers.CharField(allow_blank=True, help_text="Why it does not.")


class TurnSerializer(serializers.Serializer[Any]):
    """The place in the order of the idle DAGs, counted from 1."""

    submitter_place = serializers.IntegerField()
    submitters = serializers.IntegerField()
    own_place = serializers.IntegerField()
    own_dags = serializers.IntegerField()


class AvoidedSerializer(serializers.Serializer[Any]):
    """A site that the DAG does not go back to before a time, and why it left."""

    site = serializers.CharField()
    until = serializers.DateTimeField()
    reason = serializers.CharField(allow_blank=True)


class QueueFitSerializer(serializers.Serializer[Any]):
    """A queue and a job's needs: why it never can run it, or not now."""

    site = serializers.CharField()
    queue = serializers.CharField()
    refusal = serializers.CharField(allow_blank=True)
    closed = serializers.CharField(allow_blank=True)
    pending_pilots = serializers.IntegerField()
    running_pilots = serializers.IntegerField()


@extend_schema_field(
    {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}}
)
class NamesByStandField(serializers.Field[Any, Any, Any, Any]):
    """Names of sites by how they stand to the DAG."""

    def to_representation(self, value: Any) -> dict[str, list[str]]:
        """The standings as words."""
        return {stand.value: list(names) for stand, names in (value or {}).items()}


@extend_schema_field({"type": "object", "additionalProperties": {"type": "integer"}})
class CountsByStandField(serializers.Field[Any, Any, Any, Any]):
    """Numbers of DAGs by how they and the site stand."""

    def to_representation(self, value: Any) -> dict[str, int]:
        """The standings as words."""
        return {stand.value: count for stand, count in value.items()}


class SitesSerializer(serializers.Serializer[Any]):
    """Match of a DAG with all sites; `willing` counts sites that match and can run each node,
    whatever their state.
    """

    verdict = serializers.ChoiceField([verdict.value for verdict in MatchVerdict])
    summary = serializers.CharField()
    would_match = serializers.BooleanField()
    sites = serializers.IntegerField()
    willing = serializers.IntegerField()
    conjuncts = ConjunctSerializer(many=True)
    refusals = RefusalSerializer(many=True)
    unmet = UnmetNeedSerializer(many=True)
    undefined = UndefinedNameSerializer(many=True)
    candidates = CandidateSerializer(many=True)
    stands = NamesByStandField()
    is_cut = serializers.BooleanField(help_text="There was no time to count everything.")


class DagsSerializer(serializers.Serializer[Any]):
    """Match of a site with the idle DAGs."""

    dags = serializers.IntegerField()
    stands = CountsByStandField()
    unseen = serializers.IntegerField(help_text="DAGs that there was no time for.")
    conjuncts = ConjunctSerializer(many=True)


class AboutField(serializers.ChoiceField):
    """Kind of what an answer is about, by which programs tell answers apart."""

    def __init__(self, kind: str) -> None:
        super().__init__([kind], read_only=True)

    def get_attribute(self, instance: Any) -> str:
        """The kind, whatever the answer."""
        return str(next(iter(self.choices)))


class DagAnswerSerializer(serializers.Serializer[Any]):
    """Why a DAG, or a pasted ad, has no site; `after` is with the changes."""

    about = AboutField("dag")
    verdict = serializers.ChoiceField([verdict.value for verdict in MatchVerdict])
    summary = serializers.CharField()
    turn = TurnSerializer(allow_null=True)
    avoided = AvoidedSerializer(many=True)
    sites = SiteAnswerOfDagSerializer(
        many=True, help_text="All sites' answers to a DAG with binding = job; else none."
    )
    explanation = SitesSerializer()
    misses = MissSerializer(many=True)
    after = SitesSerializer(allow_null=True)


class QueuesSerializer(serializers.Serializer[Any]):
    """Match of needs with queues after the changes."""

    verdict = serializers.ChoiceField([verdict.value for verdict in MatchVerdict])
    summary = serializers.CharField()
    queues = QueueFitSerializer(many=True)
    unknown = serializers.ListField(child=serializers.CharField())


class SiteJobsSerializer(serializers.Serializer[Any]):
    """Waiting jobs, and how many of them a queue of the site offers enough for.

    `unseen` is true when there are more TaskQueues than were looked at.
    """

    task_queues = serializers.IntegerField()
    jobs = serializers.IntegerField()
    fitting = serializers.IntegerField()
    unseen = serializers.BooleanField()


class JobAnswerSerializer(serializers.Serializer[Any]):
    """Why a job, or the jobs of a TaskQueue, wait; `after` is with the changes."""

    about = AboutField("job")
    verdict = serializers.ChoiceField([verdict.value for verdict in MatchVerdict])
    summary = serializers.CharField()
    queues = QueueFitSerializer(many=True, source="queues.queues", default=[])
    unknown = serializers.ListField(
        child=serializers.CharField(), source="queues.unknown", default=[],
        help_text="What is asked for and offered nowhere today.",
    )  # fmt: skip
    inputs = InputsSerializer(
        allow_null=True, help_text="Where the input data of a job are, if it names any."
    )
    after = QueuesSerializer(allow_null=True)


class SiteAnswerSerializer(serializers.Serializer[Any]):
    """Idle DAGs that a site would take; `after` is with the changes."""

    about = AboutField("site")
    standing = serializers.CharField(source="standing.kind", help_text="Empty when it is open.")
    summary = serializers.CharField()
    explanation = DagsSerializer(allow_null=True)
    after = DagsSerializer(allow_null=True)
    jobs = SiteJobsSerializer(allow_null=True)
    jobs_after = SiteJobsSerializer(allow_null=True)
