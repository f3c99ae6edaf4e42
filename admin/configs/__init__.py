"""Changes and descriptions of the configs of topics and brokers."""
