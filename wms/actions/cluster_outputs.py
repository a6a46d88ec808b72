"""Action that keeps the outputs of clusters longer; `wms.actions.clusters` offers it."""

from __future__ import annotations

from wms.actions.actions import Action, InApi, InBulk, InShell, OnPage
from wms.actions.arguments import Argument, ArgumentType, Prompt
from wms.actions.kinds import of_many, one_alone
from wms.actions.obstacles import of_state
from wms.jobs.clusters.states import CLUSTER_TERMINAL
from wms.jobs.sandboxes.services import prolong_outputs, prolong_outputs_of

#: As many days as people are offered at first.
_USUAL_DAYS = 30
_DAYS = Argument(
    "days",
    "Days",
    ArgumentType.WHOLE,
    _USUAL_DAYS,
    "From now on; never fewer than they have.",
    least=1,
    on_page=Prompt("Days", "From now on; never fewer than they have."),
    in_api="For so many days from now.",
    is_required=True,
)

PROLONG_OUTPUTS = Action(
    "prolong-outputs",
    "Keep outputs longer",
    [of_state(CLUSTER_TERMINAL)],
    one_alone(prolong_outputs_of),
    page=OnPage(
        "The outputs of its jobs are kept for so many days from now.",
        "keeps its outputs longer",
    ),
    api=InApi(
        "Keep the outputs of a cluster longer",
        "Keep them for so many days from now; needs a reason. Outputs of a cluster that has not "
        "ended are kept in any case.",
        body="For how long, and why.",
        body_name="ProlongOutputs",
    ),
    shell=InShell(
        "keep the outputs of its jobs for so many days from now",
        "kept until {0.kept_until:%Y-%m-%d %H:%M} UTC",
    ),
    bulk=InBulk(
        "The outputs of their jobs are kept for so many days from now. Those that have begun to be "
        "removed, or are kept longer, are passed over.",
        of_many(prolong_outputs),
    ),
    arguments=(_DAYS,),
)
