"""Sluice as a fleet on one machine: the compose file, and what has to be made before it."""
