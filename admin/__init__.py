"""Changes that requests ask for, the policy's verdicts on them, and their records."""
