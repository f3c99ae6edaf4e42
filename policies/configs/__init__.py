"""What Kafka knows of configs, without a node: their types, how it reads them, and its own
defaults.
"""
