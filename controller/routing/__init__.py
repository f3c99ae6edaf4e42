"""The way of a request from a frame to its answer: decoded, authorized, routed to a handler here or
at the active controller.
"""
