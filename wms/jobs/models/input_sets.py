"""Models of input data: sets of logical names with the sites near them, and changes to follow."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models.functions import Now

from wms.jobs.states import InputCause


class InputSet(models.Model):
    """Logical files that jobs want as inputs together, and the sites that they tie these to.

    Jobs of an owner that want the same share one, and have nothing to resolve when they join a
    TaskQueue. `version` rises when the sites change: jobs that wait by an earlier one are moved.
    """

    key = models.CharField(
        max_length=64,
        unique=True,
        null=True,
        blank=True,
        help_text="SHA-256 of what is wanted; none: nobody joins by it any more.",
    )
    # As that of a job: sets are found by their keys alone.
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    limited_to = models.BigIntegerField(
        null=True,
        blank=True,
        editable=False,
        help_text="Id of the frontend whose files the owner may read there; empty: those of all.",
    )
    names = ArrayField(models.CharField(max_length=1000))
    # A DAG may have thousands, which are not read to be counted.
    name_count = models.GeneratedField(
        expression=models.Func("names", function="cardinality"),
        output_field=models.IntegerField(),
        db_persist=True,
    )
    is_anywhere = models.BooleanField(
        default=False, db_default=False, help_text="They may be fetched from afar."
    )
    waits = models.BooleanField(
        default=True, db_default=True, help_text="What is nowhere is waited for."
    )
    expected = models.JSONField(
        default=list,
        db_default=models.Value([], models.JSONField()),
        help_text="Names that will be at a storage, with its name.",
    )
    is_of_dag = models.BooleanField(
        default=False, db_default=False, help_text="All nodes of a DAG want them together."
    )
    is_asleep = models.BooleanField(
        default=False, db_default=False, help_text="No DAG that is open names it: it is not kept."
    )
    sites = ArrayField(
        models.CharField(max_length=64), null=True, help_text="Empty list: none; null: any."
    )
    cause = models.CharField(max_length=8, choices=InputCause, blank=True, db_default="")
    told = models.TextField(blank=True, db_default="", help_text="Where they are, as a sentence.")
    tenths = models.JSONField(
        default=dict,
        db_default=models.Value({}, models.JSONField()),
        help_text="How many tenths of their bytes are near each site.",
    )
    version = models.PositiveIntegerField(default=1, db_default=1)
    is_moving = models.BooleanField(
        default=False, db_default=False, help_text="Jobs that wait by an earlier version may be."
    )

    class Meta:
        indexes = [
            # Without those of all DAGs that have ended.
            GinIndex(
                fields=["names"], condition=models.Q(is_asleep=False), name="input_set_by_name"
            ),
            # Few, and for seconds.
            models.Index(
                fields=["id"], condition=models.Q(is_moving=True), name="input_set_moving"
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(cause__in=InputCause.values), name="input_set_cause_known"
            ),
        ]

    def __str__(self) -> str:
        return f"input set {self.pk}"


class ResolvedSet(models.Model):
    """A set that is kept up to date, with when it was resolved.

    Apart from the set, since an indexed column that changes has PostgreSQL write the indexes of a
    row anew, that of thousands of names among them.
    """

    input_set = models.OneToOneField(
        InputSet, primary_key=True, on_delete=models.CASCADE, related_name="resolution"
    )
    resolved_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(fields=["resolved_at"], name="resolved_set_by_time")]

    def __str__(self) -> str:
        return f"resolution of input set {self.pk}"


class InputChange(models.Model):
    """A change that sets of inputs have to follow, deleted in the transaction that does it.

    It is one of a file's replicas, of storages as a whole, or one set that is to be resolved.
    """

    name = models.CharField(max_length=1000, blank=True, help_text="Of the file; empty: of any.")
    input_set_id = models.BigIntegerField(null=True, help_text="The set that is to be resolved.")
    after = models.BigIntegerField(
        default=0, db_default=0, help_text="Sets up to this one have been told."
    )

    class Meta:
        indexes = [
            models.Index(
                fields=["input_set_id"],
                condition=models.Q(input_set_id__isnull=False),
                name="input_change_of_set",
            ),
        ]

    def __str__(self) -> str:
        return f"change {self.pk} of inputs"
