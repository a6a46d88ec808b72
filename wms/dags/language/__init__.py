"""The DAG language: DAGMan's, and what Pilotage adds to it."""
