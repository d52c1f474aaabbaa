"""Proves what a storage's credentials open, and what they do not."""
