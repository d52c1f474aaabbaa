"""Audit events of all replicas into tables of who was given what."""
