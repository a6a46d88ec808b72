from __future__ import annotations

import pytest

from tests import factories
from wms.core.errors import InvalidInput
from wms.dags.models import Dag
from wms.dags.rescue.preview import preview_of
from wms.dags.rescue.rescue_files import BY_DEFAULT, Resumption


@pytest.fixture
def failed(db: None) -> Dag:
    """A chain of three nodes of which the second failed."""
    dag = factories.running_dag(factories.person("alice"), node_count=3, is_chain=True)
    pilot = factories.pilot(dag.site.queues.get())
    factories.run_job(pilot)
    factories.turn()
    factories.run_job(pilot, exit_code=1)
    factories.turn()
    dag.refresh_from_db()
    return dag


@pytest.mark.slow
def test_what_is_not_done_in_the_newest_rescue_would_run(failed: Dag) -> None:
    preview = preview_of(failed, BY_DEFAULT, limit=10)

    assert [node.name for node in preview.nodes] == ["A2", "A3"]
    assert preview.by_state == {"failed": 1, "futile": 1}
    assert (preview.total, preview.done_total, preview.left_out) == (2, 0, 0)


@pytest.mark.slow
def test_afresh_everything_would_run_and_the_rescues_stay_where_they_are(failed: Dag) -> None:
    preview = preview_of(failed, Resumption(is_fresh=True), limit=2)

    assert (preview.total, preview.done_total, preview.left_out) == (3, 1, 1)
    assert failed.workspace.files.filter(path__endswith=".rescue001").exists()


@pytest.mark.slow
def test_a_rescue_that_is_not_there_is_refused(failed: Dag) -> None:
    with pytest.raises(InvalidInput, match=r"analysis\.dag\.rescue008"):
        preview_of(failed, Resumption(rescue_number=8), limit=10)
