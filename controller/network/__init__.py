"""Sockets and connections: the listeners of a node, the connections of clients, and the connections
to other nodes.
"""
