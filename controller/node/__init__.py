"""A node as a tree of tasks, and the process that runs one or more nodes."""
