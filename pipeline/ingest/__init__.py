"""`minicontroller pipeline ingest`: from the audit's files to the tables, each event
exactly once.
"""
