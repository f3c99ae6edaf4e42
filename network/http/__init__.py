"""The HTTP port: health, metrics and the page."""
