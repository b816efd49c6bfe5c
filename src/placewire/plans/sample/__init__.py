"""Sample objects, subscriptions and queries of the log for planning."""
