"""Methods that assign `nearest` subscriptions to workers, and their strategy."""
