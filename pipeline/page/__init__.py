"""What the pages of the pipeline share: one HTML file each, that loads nothing, reads well on a
phone and on paper, and trusts no text.
"""
