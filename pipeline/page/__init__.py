"""The common parts of the pipeline's pages. A page is one HTML file that loads nothing, reads well
on a phone and on paper, and trusts no text.
"""
