"""What a request asks for, what the policy says about it, and how it is recorded."""
