"""Text for people and from people: Java's properties files, times as they are typed, plurals, and
text from strangers made safe for a terminal.
"""
