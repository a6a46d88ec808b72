"""Models of jobs bound at the claim: scopes (sites where they may run), and what claims filled in.

Also sets of sites, stored once, which scopes share.
"""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from wms.jobs.models.attempts import Attempt


class SiteSet(models.Model):
    """Names of sites, stored once by content: thousands of scopes share one."""

    key = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the names.")
    names = ArrayField(models.CharField(max_length=64), default=list)

    def __str__(self) -> str:
        return ", ".join(self.names) or "no site"


class SiteScope(models.Model):
    """Sites at which the jobs of a DAG may run that are bound at the claim.

    Its id is that of the outermost DAG, whose inner ones share it. It has what `$$(...)` and
    `$ENV(...)` of these jobs mean besides the ad of the site.
    """

    id = models.BigIntegerField(primary_key=True)
    sites = models.ForeignKey(SiteSet, on_delete=models.PROTECT, related_name="scopes")
    environment_template = models.TextField(
        blank=True, help_text="What the environment of the DAG is before the site is known."
    )
    environment = models.JSONField(
        default=dict, help_text="What $ENV(NAME) means in the template itself."
    )
    own_ad = models.JSONField(
        default=dict, help_text="The ad of the DAG: its expressions and its values."
    )
    changed_at = models.DateTimeField(db_default=Now(), help_text="When its sites last changed.")

    def __str__(self) -> str:
        return f"sites of DAG {self.pk}"


class Filling(models.Model):
    """What a claim filled into a job, once for each attempt: fields of the job by name."""

    attempt = models.OneToOneField(
        Attempt, primary_key=True, on_delete=models.CASCADE, related_name="filling"
    )
    fields = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"filled in for {self.attempt_id}"
