"""Notes on the page of a subject: the latest remarks, who looks after it, and the form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.utils import timezone

from portal.web.remarks.forms import RemarkForm
from portal.web.shared.nonces import fresh_nonce
from wms.remarks.models import Remark
from wms.remarks.selectors import Care, care_of, remarks_about
from wms.remarks.states import SubjectKind
from wms.remarks.subjects import SUBJECTS

#: Latest remarks that are shown; the shift log has all.
SHOWN = 10


@dataclass(frozen=True, slots=True)
class Notes:
    """Notes on a subject; `key` is its handle. The form is there for who may write."""

    kind: str
    key: str
    care: Care
    remarks: list[Remark]
    is_cut: bool
    may_write: bool
    nonce: str
    form: RemarkForm

    @property
    def in_log(self) -> str:
        """Query of the shift log for all of them."""
        return f"?{urlencode({'subject': f'{self.kind}:{self.key}'})}"


def notes_on(
    kind: SubjectKind, subject: Any, *, may_write: bool, form: RemarkForm | None = None
) -> Notes:
    """Notes on a subject that the user has been found to see. Two queries."""
    remarks = list(remarks_about(kind, subject.pk)[: SHOWN + 1])
    return Notes(
        kind=kind,
        key=SUBJECTS[kind].key_of(subject),
        care=care_of(kind, subject, now=timezone.now()),
        remarks=remarks[:SHOWN],
        is_cut=len(remarks) > SHOWN,
        may_write=may_write,
        nonce=fresh_nonce(),
        form=form or RemarkForm(),
    )
