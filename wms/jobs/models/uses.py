"""Model of the core-seconds that the jobs of one DAG or cluster have used."""

from __future__ import annotations

from django.db import models


class TopicUse(models.Model):
    """Core-seconds and attempts of the jobs of one topic and key: those of a DAG, or of a cluster.

    Attempts are added once, when they have ended, by `wms.jobs.accounting`. Without any there is no
    row. A job is done in one attempt, so that `done_count` is also the number of jobs that are.
    """

    topic = models.CharField(max_length=16)
    topic_key = models.BigIntegerField()
    useful_s = models.FloatField(default=0.0)
    failed_s = models.FloatField(default=0.0)
    lost_s = models.FloatField(default=0.0)
    done_count = models.BigIntegerField(default=0)
    failed_count = models.BigIntegerField(default=0)
    lost_count = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["topic", "topic_key"], name="topic_use_unique"),
        ]

    def __str__(self) -> str:
        return f"use of {self.topic} {self.topic_key}"
