"""What the running DAGs take of the concurrency limits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from matching.fairshare import limit_of
from wms.accounting.selectors import limits
from wms.dags.demand import limits_in_use


def uses_by_limit() -> Mapping[str, Mapping[str, float]]:
    """The amounts in use by the name that DAGs gave, for each configured limit that holds for it.

    Names for which no limit holds are absent. Two queries.
    """
    configured = limits()
    uses: dict[str, dict[str, float]] = defaultdict(dict)
    for name, amount in sorted(limits_in_use().items()):
        holding, _ = limit_of(name, configured)
        if holding:
            uses[holding][name] = amount
    return dict(uses)
