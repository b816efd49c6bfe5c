"""Sample objects, subscriptions and queries of the log for planning.

- sampler: objects of the log, gathered batch by batch, or of files for the command `plan`
- sample: a sample as columns
- questions: queries and rows of other kinds, added to a sample
"""
