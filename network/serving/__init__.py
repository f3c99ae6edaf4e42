"""Takes requests from frame to answer: decodes and authorizes them, and calls a handler here or at
the active controller.
"""
