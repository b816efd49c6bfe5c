"""Methods that assign postings of `relevant` subscriptions to workers, and their strategy."""
