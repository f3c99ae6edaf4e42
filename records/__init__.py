"""Records, groups and transactions of a cluster in memory: machines without input, output, clock or
randomness of their own.
"""
