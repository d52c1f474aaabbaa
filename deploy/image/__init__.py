"""The container image: its Dockerfile, the steps of its build, and their proof."""
