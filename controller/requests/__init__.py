"""The request as all of its handlers share it: context, bounds, errors, and the declarations of
APIs.
"""
