"""Filter of the list of audit entries: by actor, action, object, time and reason.

Without an object, an actor or a request, reasons are searched in the latest entries only; a note
says so.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django import forms
from django.db.models import Q, QuerySet, Subquery

from portal.lists.base_filter import ListFilter, within_ids
from portal.lists.filter_fields import Chosen, ChosenField, Moments, Texts, Words, _Chosen
from portal.lists.sorting import Sorting, newest
from wms.core.audit import AuditObject
from wms.core.models import AuditEntry, AuditKind

#: Reasons have no index: without an object, an actor or a request they are looked for in so many.
SEARCHED_ENTRIES = 200_000


class ObjectsField(ChosenField):
    """Things that were acted on, as KIND:KEY."""

    def parsed(self, text: str) -> AuditObject:
        """The kind and the key. Raises ValidationError."""
        kind, _, key = text.partition(":")
        if kind not in AuditKind.values or not key:
            kinds = ", ".join(AuditKind.values)
            raise forms.ValidationError(f"Give KIND:KEY, such as dag:12 or site:UW, of {kinds}.")
        return AuditObject(kind, key)


class Objects(_Chosen):
    """Entries about any of some things; those about a site are those about its queues too."""

    field_class = ObjectsField
    hint = "KIND:KEY, such as dag:12 or site:UW; several with commas; ! before one: not."

    def condition(self, values: Sequence[AuditObject]) -> Q:
        """True for entries about any of them."""
        whole = Q()
        for about in values:
            whole |= Q(object_kind=about.kind, object_key=about.key)
            if about.kind == AuditKind.SITE:
                whole |= Q(object_kind=AuditKind.QUEUE, object_key__startswith=f"{about.key}/")
        return whole


class AuditFilter(ListFilter):
    """Audit entries by actor, action, object, time and reason."""

    by_age = frozenset({"actor", "action", "created"})

    reason = Texts(label="Reason contains")
    kind = Words(field_name="object_kind", choices=AuditKind.choices, label="Kind of object")
    action = Words(label="Action")
    actor = Words(label="Actor")
    object = Objects(label="Object")
    created = Moments(field_name="created_at", label="When")
    request = Words(field_name="request_id", label="Request id")
    sort = Sorting(newest("When", "when"))

    class Meta:
        model = AuditEntry
        fields: Sequence[str] = ()

    def _passing(
        self, queryset: QuerySet[AuditEntry], *, leaving: Collection[str]
    ) -> QuerySet[AuditEntry]:
        found = super()._passing(queryset, leaving=leaving)
        if not self._is_cut:
            return found
        latest = AuditEntry.objects.order_by("-pk").values("pk")[:1]
        return found.filter(pk__gt=Subquery(latest) - SEARCHED_ENTRIES)

    @property
    def _is_cut(self) -> bool:
        values = self.form.cleaned_data
        return bool(values["reason"]) and not any(
            values[name] for name in ("object", "actor", "request")
        )

    def hinted(self, queryset: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
        """Entries of a stretch of time have ids in a range: nothing newer or older is passed by."""
        made: Chosen | None = self.form.cleaned_data["created"] if self.is_bound else None
        if not made:
            return queryset
        return within_ids(queryset, AuditEntry.objects.all(), made.included[0], self.now)

    def notes(self) -> list[str]:
        """Notes on entries whose reasons were not searched."""
        if not self._is_cut:
            return []
        return [
            f"Reasons are looked for in the latest {SEARCHED_ENTRIES:,} entries. With an object, "
            "an actor or a request, in all of these."
        ]
