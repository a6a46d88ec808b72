"""The command `pilotage`."""
