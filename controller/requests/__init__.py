"""What a request is to everybody who handles it: its context, its bounds, its errors."""
