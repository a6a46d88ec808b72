"""Simulation of DAGs: the real engine, simulated backends, and a virtual clock."""
