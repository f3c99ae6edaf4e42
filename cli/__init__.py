"""The `minicontroller` command."""
