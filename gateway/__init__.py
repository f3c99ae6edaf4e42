"""The gateway: a process in front of a Kafka cluster that others run, through which clients reach
it.
"""
