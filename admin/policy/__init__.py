"""A node's policy: its rule files, and a policy in Python in a process of its own."""
