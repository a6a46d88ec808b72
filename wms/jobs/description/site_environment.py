"""Environment of a DAG at a site, for `$ENV(NAME)` in the descriptions of its jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matching.descriptions import environments
from matching.descriptions.substitution import Evaluator, OwnAttributes, expand_references
from wms.jobs.description.timed_evaluation import with_time_limit


def site_environment(
    template: str,
    ad: Mapping[str, Any],
    *,
    base: Mapping[str, str],
    expressions: Mapping[str, str],
    values: Mapping[str, object],
) -> tuple[dict[str, str], dict[str, str]]:
    """Environment for `$ENV(NAME)` in the DAG's nodes, with all references expanded.

    The template may use `$$(Attr)` of the site's ad, `$$([expression])` of this ad and the DAG's
    own `expressions` and `values`, and `$ENV(NAME)` of the `base`. Also returns the used attributes
    as `MATCH_<Attr>`. Raises Undefined, AdError, BadEnvironment or ValueError.
    """
    value_of = with_time_limit(Evaluator(expressions, values, ad))
    expanded = expand_references(
        template,
        environment=base,
        target=ad,
        evaluator=lambda text: value_of(text, OwnAttributes()),
    )
    return {**base, **environments.parse_environment(expanded.text)}, expanded.used
