"""The audit log on Spark: tables of it, reports on them, and policies tried on what was recorded.
docs/pipeline.md explains how to use it.
"""
