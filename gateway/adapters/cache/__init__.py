"""Credentials and signatures, remembered: in this process, and sealed in a Redis that replicas share."""
