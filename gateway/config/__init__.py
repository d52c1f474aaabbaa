"""The configuration: one file format, one frozen tree."""
