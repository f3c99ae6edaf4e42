"""A node as a tree of tasks, and the process that runs one or several of them."""
