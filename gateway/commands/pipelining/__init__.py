"""The parts of ``sluice pipeline``."""
