"""The network of a node: its listeners, the connections that they accept, and connections to other
nodes.
"""
