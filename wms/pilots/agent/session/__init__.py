"""One pilot from its registration to its end: configuration, lifetime, heartbeats, node checks."""
