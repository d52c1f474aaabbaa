"""Reports of who was given what, from the tables of usage."""
