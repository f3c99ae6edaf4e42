"""Measures minicontroller beside others on the same machine, in the same run: `python -m
benchmarks`.

What counts as an answer is an answer without an error: every response is decoded after the clock
has stopped, and one error in it fails the whole measurement.
"""
