"""Builds an image from its Dockerfile and runs containers of it by Linux' own means, without an engine.

It is for tests: it knows the instructions that our Dockerfile uses, and refuses all others. The machine that
it runs on stands in for the base image, so that it has to be a Debian with Python; it needs root, for mounts.
"""
