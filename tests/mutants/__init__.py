"""Mutation testing: changes the product in one place at a time and checks that a fast test fails."""
