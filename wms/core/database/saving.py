"""Storage of configured objects: checked by their model, changes written to the audit trail.

Also the refusal of a changed name, the lock of a stored row, what forbids a deletion, and marks
(hashes) of field values, by which a form finds what somebody else has changed since it was loaded.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Mapping
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models

from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import Finding, InvalidInput


def check_row(row: models.Model) -> None:
    """Raise InvalidInput with every fault that the row's model knows of, by field."""
    findings = []
    try:
        row.full_clean()
    except ValidationError as error:
        findings = [
            Finding(message, field="" if name == "__all__" else name)
            for name, messages in error.message_dict.items()
            for message in messages
        ]
    known = {finding.field for finding in findings}
    for field in row._meta.concrete_fields:
        value = getattr(row, field.attname)
        # Not-a-number passes every comparison, those of validators and constraints included.
        if isinstance(value, float) and not math.isfinite(value) and field.name not in known:
            findings.append(Finding("Enter a number.", field=field.name))
    if findings:
        raise InvalidInput(findings)


def check_same_name(row: models.Model) -> None:
    """Raise InvalidInput when a stored row is to get another `name`: others know it by the old."""
    stored = type(row)._default_manager.filter(pk=row.pk).values_list("name", flat=True)
    old = stored.first() if row.pk else None
    if old is not None and old != row.name:  # type: ignore[attr-defined]
        raise InvalidInput.of(f"the name {old} cannot be changed", field="name")


def marks_of(row: models.Model, names: Collection[str]) -> dict[str, str]:
    """Short mark of each field's value, to recognise a later change."""
    return {name: _mark(_value_of(row, name)) for name in names}


def lock_stored(row: models.Model) -> models.Model:
    """The row as it is stored, locked until the transaction ends; with defaults if it is not."""
    model = type(row)
    stored = model._default_manager.select_for_update(of=("self",)).filter(pk=row.pk).first()
    return stored or model(pk=row.pk)


def _value_of(row: models.Model, name: str) -> Any:
    field = row._meta.get_field(name)
    if field.many_to_many:
        return sorted(getattr(row, name).values_list("pk", flat=True)) if row.pk else []
    return getattr(row, getattr(field, "attname", name))


def _mark(value: Any) -> str:
    text = json.dumps(value, default=str, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def save_audited(
    row: models.Model,
    *,
    target: str,
    actor: Actor,
    reason: str = "",
    fields: Collection[str] = (),
    facts: Mapping[str, Any] | None = None,
) -> bool:
    """Store a row, and its changes from old to new values in the audit trail.

    Only changed fields are written; of `fields`, where given, and nothing else. `facts` are changes
    outside of the row. Returns false when nothing changed. The caller has opened a transaction.
    """
    stored = type(row)._default_manager.select_for_update(of=("self",))
    old = stored.filter(pk=row.pk).first() if row.pk else None
    names = [f.attname for f in row._meta.concrete_fields if not f.primary_key]
    changes = {
        name: [None if old is None else getattr(old, name), getattr(row, name)]
        for name in fields or names
        if old is None or getattr(old, name) != getattr(row, name)
    }
    if old is None:
        row.save(force_insert=True)
    elif changes:
        row.save(update_fields=list(changes))
    changes |= facts or {}
    if not changes:
        return False
    action = f"{'create' if old is None else 'change'} {row._meta.verbose_name}"
    record_action(action, target=target, actor=actor, reason=reason, facts=changes)
    return True


def kinds_that_forbid_deletion(row: models.Model) -> str:
    """Kinds of rows, in whichever app, that keep a row from being deleted, joined by "and".

    None of them is loaded, however many there are.
    """
    kinds = set()
    for relation in row._meta.get_fields(include_hidden=True):
        if not isinstance(relation, models.ForeignObjectRel):
            continue
        if relation.on_delete is models.PROTECT:
            model = relation.field.model
            if model._base_manager.filter(**{relation.field.name: row}).exists():
                kinds.add(str(model._meta.verbose_name_plural))
    return " and ".join(sorted(kinds))
