"""What plans are computed from: a sample of the stream and of the live subscriptions.

- `sampler`: a reservoir of recent objects
- `sample`: objects and subscriptions as the planners use them
- `statistics`: counts by cell of a quadtree, as SSTD uses them
- `questions`, `batch_queries`: queries and reports as part of the load
- `survey`: take a sample from files, for `placewire plan`
"""
