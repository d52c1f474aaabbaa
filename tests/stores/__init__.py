"""Real stores in processes of their own, for tests."""
