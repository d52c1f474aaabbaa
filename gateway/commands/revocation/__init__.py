"""Cuts a recipient off from the gateway, and from what it was given."""
