"""The settings of a process: keys, values, files, environment variables, and their rules."""
