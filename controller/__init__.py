"""The node as a role: its handlers, its controller, and the process that runs it."""
