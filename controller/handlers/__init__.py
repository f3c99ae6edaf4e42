"""The handlers of all APIs that a node answers (`controller/apis.py` lists them).

A handler that reads returns its response at once and costs no task. One that has to wait returns an
awaitable.
"""
