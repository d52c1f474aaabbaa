"""Pytest plugins of the mutation tool; they import nothing of this tree, so that they run in any tree."""
