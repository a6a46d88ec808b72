"""Parser of DAG files: DAGMan's language, and what Pilotage adds to it."""
