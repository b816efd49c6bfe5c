"""Read events from and write results to JSON Lines without making Python values."""
