"""A policy tried on what was recorded: whom it would have refused, whom it would have let pass.
docs/pipeline.md explains how to use it.
"""
