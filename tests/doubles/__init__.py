"""Doubles of clouds that verify what reaches them, written from the clouds' documentation.

Whoever writes one has not read the vendor that it judges. What a double does not understand, it refuses.
"""
