"""Following a DAG that somebody's HTCondor runs, by its job event log."""
