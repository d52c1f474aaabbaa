"""Claims jobs, has them run, and publishes what they made."""
