"""Real servers of the protocols of placements, started by the tests on addresses of this host."""
