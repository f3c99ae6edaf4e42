"""`minicontroller pipeline report`: questions about what was decided, each answered by a sentence,
a plot and the table behind it.
"""
