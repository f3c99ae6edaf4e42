"""The parts that every process has: its settings, its log and its metrics."""
