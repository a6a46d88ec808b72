"""Job ad before submission: the attributes that an expression of a description refers to.

None where some of them are not known yet, as before the match. Also the names that such an ad may
have, and whether a text depends on a job's number or on the parents of its node.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from matching.ads.expressions import references
from matching.descriptions.macro_functions import SEED, UNKNOWN
from matching.descriptions.substitution import OwnAttributes
from wms.jobs.description.amounts import NUMBERS
from wms.jobs.specs import CLUSTER_MARK

#: The expression of an attribute for the values of a node; None if it is not known yet.
AttributeText = Callable[[Mapping[str, str]], str | None]
#: Names under which values carry what is known of the node; no text can spell them.
RETRY, PARENTS = "$retry", "$parents"
#: Before the name of an attribute that comes with the node.
GIVEN = "+"


def _identity(values: Mapping[str, str]) -> tuple[str, str]:
    """Id of the DAG, and name of the node."""
    dag_id, _, name = values[SEED].partition("/")
    return dag_id, name or UNKNOWN


_NODE_ATTRIBUTES: Mapping[str, tuple[str, Callable[[Mapping[str, str]], object]]] = {
    "dagnodename": ("DAGNodeName", lambda values: _identity(values)[1]),
    "dagmanjobid": ("DAGManJobId", lambda values: _number(_identity(values)[0])),
    "dagmannoderetry": ("DAGManNodeRetry", lambda values: _number(values[RETRY])),
    "dagparentnodenames": ("DAGParentNodeNames", lambda values: values.get(PARENTS, UNKNOWN)),
    "procid": ("ProcId", lambda values: _number(values.get("procid", UNKNOWN))),
    # Its number is put into the place of the mark when the job is stored.
    "clusterid": ("ClusterId", lambda values: values.get("clusterid", CLUSTER_MARK)),
}
#: What tells that a text may refer to an attribute which differs among a node's jobs, or is not
#: known without a query.
_JOB_OR_PARENTS = re.compile(r"procid|dagparentnodenames", re.IGNORECASE)
#: Initial attributes of HTCondor's jobs.
_COMMON_ATTRIBUTES: Mapping[str, object] = {
    "MyType": "Job",
    "JobUniverse": 5,
    "JobStatus": 1,
    "NumJobStarts": 0,
    "NumJobCompletions": 0,
    "NumHolds": 0,
}
#: All names that a job's own ad may have, in lower case, but for those of its description.
NAMES = frozenset(
    {
        *_NODE_ATTRIBUTES,
        *(name.lower() for name in _COMMON_ATTRIBUTES),
        *(name.lower() for name in NUMBERS.values()),
        "owner", "jobbatchname", "accountinggroup", "acctgroup", "acctgroupuser",
    }
)  # fmt: skip


def _number(text: str) -> object:
    return text if text == UNKNOWN else int(text)


def depends_on_job_or_parents(text: str) -> bool:
    """Whether a text may refer to the job's number in its list, or to the node's parents."""
    return _JOB_OR_PARENTS.search(text) is not None


class JobAds:
    """Own ads of the jobs of one description."""

    def __init__(
        self,
        *,
        owner: str,
        group: str,
        batch_name: str,
        expressions: Mapping[str, AttributeText],
    ) -> None:
        """`expressions` are those of the description, by the names of their attributes."""
        fixed: dict[str, object] = {
            **_COMMON_ATTRIBUTES,
            "Owner": owner,
            "JobBatchName": batch_name or UNKNOWN,
        }
        if group:
            fixed |= {"AccountingGroup": group, "AcctGroup": group, "AcctGroupUser": owner}
        self._fixed = {name.lower(): (name, value) for name, value in fixed.items()}
        self._expressions = {name.lower(): (name, get) for name, get in expressions.items()}

    def attributes_used_by(self, text: str, values: Mapping[str, str]) -> OwnAttributes | None:
        """Attributes of the ad that an expression refers to, directly or not; None if some are
        unknown yet.
        """
        own, pending, seen = OwnAttributes({}, {}), [text], set[str]()
        while pending:
            for each in references(pending.pop()):
                if each.scope == "target" or each.name in seen:
                    continue
                seen.add(each.name)
                if not self._add(each.name, values, own):
                    return None
                if (definition := own.expressions.get(self._name(each.name))) is not None:
                    pending.append(definition)
        return own

    def _name(self, name: str) -> str:
        return self._expressions[name][0] if name in self._expressions else name

    def _add(self, name: str, values: Mapping[str, str], own: OwnAttributes) -> bool:
        """Add an attribute, if there is one; False if it is not known yet."""
        expression = values.get(f"{GIVEN}{name}")
        if expression is None and name in self._expressions:
            expression = self._expressions[name][1](values)
            if expression is None:
                return False
        if expression is not None:
            own.expressions[self._name(name)] = expression
            return UNKNOWN not in expression
        if name in _NODE_ATTRIBUTES:
            written, read = _NODE_ATTRIBUTES[name]
            own.values[written] = read(values)
            return UNKNOWN not in str(own.values[written])
        if name in self._fixed:
            written, value = self._fixed[name]
            own.values[written] = value
            return value != UNKNOWN
        return True
