"""PRE, POST and HOLD scripts of nodes: requested by the engine, run by the script service."""
