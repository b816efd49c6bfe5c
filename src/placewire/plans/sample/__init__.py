"""Sample objects, subscriptions and queries of the log for planning.

- sampler: objects of the log, gathered batch by batch
- sample: a sample as columns
- questions: queries and rows of other kinds, added to a sample
- survey: a sample of files, for the command `plan`
"""
