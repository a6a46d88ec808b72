"""Models of saved filters and display preferences."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class Preferences(models.Model):
    """Display preferences of one user; a user without a row has the defaults."""

    class Density(models.TextChoices):
        """Density of lists on a page."""

        CALM = "calm", "calm"
        DENSE = "dense", "dense"

    class Theme(models.TextChoices):
        """The colours of pages."""

        AUTO = "auto", "as the system"
        LIGHT = "light", "light"
        DARK = "dark", "dark"

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="preferences",
    )
    theme = models.CharField(max_length=8, choices=Theme, default=Theme.AUTO)
    time_zone = models.CharField(
        max_length=64, default="UTC", help_text="A name of the tz database, UTC or browser."
    )
    density = models.CharField(max_length=8, choices=Density, default=Density.CALM)
    has_shortcuts = models.BooleanField(default=True, help_text="Single keys do something.")
    columns = models.JSONField(default=dict, help_text="Names of shown columns, by list.")
    default_filters = models.JSONField(
        default=dict, help_text="The saved filter with which a list opens, by list."
    )

    class Meta:
        verbose_name_plural = "preferences"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(theme__in=["auto", "light", "dark"]), name="theme_known"
            ),
            models.CheckConstraint(
                condition=models.Q(density__in=["calm", "dense"]), name="density_known"
            ),
        ]

    def __str__(self) -> str:
        return f"preferences of user {self.user_id}"

    @property
    def zone_city(self) -> str:
        """The zone in one or two words."""
        return self.time_zone.rpartition("/")[2].replace("_", " ")


class SavedFilter(models.Model):
    """A filter of a list under a name, for its owner or for everybody."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_filters"
    )
    list_name = models.CharField(max_length=32, help_text="The list that it is for.")
    name = models.CharField(max_length=80)
    parameters = models.JSONField(help_text="Values as texts, by the name of the filter.")
    is_shared = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "list_name", "name"], name="saved_filter_name_unique"
            ),
            models.CheckConstraint(condition=~models.Q(name=""), name="saved_filter_has_name"),
        ]
        indexes = [
            models.Index(
                fields=["list_name"],
                condition=models.Q(is_shared=True),
                name="saved_filter_shared",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.list_name}: {self.name}"
