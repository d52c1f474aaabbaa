"""Compares what two sharing servers answer about the same tables."""
