"""Trials of DAGs: checks and dry runs of files that were sent, made by a worker for their owner."""
