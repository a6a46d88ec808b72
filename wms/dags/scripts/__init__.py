"""PRE, POST and HOLD scripts of nodes: asked for by the engine, run by a service of their own."""
