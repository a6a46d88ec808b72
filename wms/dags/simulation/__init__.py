"""Runs DAGs against a scripted batch system, script service and placement on a virtual clock."""
