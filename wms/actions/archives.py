"""Kind archive: a kept archive of a DAG, and its removal."""

from __future__ import annotations

from wms.actions.actions import Action, InApi, InShell, OnPage
from wms.actions.kinds import Kind, actions, one_of_many
from wms.archives.models import ArchivedDag
from wms.archives.policy import may_keep
from wms.archives.selectors import visible_archives
from wms.archives.services import remove_archives

ARCHIVES = Kind(
    name="archives",
    noun="archive",
    nouns="archives",
    model=ArchivedDag,
    visible=visible_archives,
    permits=may_keep,
    actions=actions(
        Action(
            "remove",
            "Remove",
            one=one_of_many(remove_archives),
            page=OnPage(
                "Its file is kept here no longer. The DAG itself, if it is here, stays as it is.",
                "is removed",
            ),
            api=InApi(
                "Remove a kept archive",
                "Remove it; the answer is what it was. Needs a reason, and the role operator.",
            ),
            shell=InShell("remove a kept archive", "{0.changed} removed"),
            is_destructive=True,
        ),
    ),
)
