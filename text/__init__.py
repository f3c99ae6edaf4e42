"""Text that people read or type: Java's properties files, times, plurals, and the escaping of
untrusted text for a terminal.
"""
