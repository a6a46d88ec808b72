"""Endpoints of trials: checks and dry runs of DAG files, made by a worker."""
