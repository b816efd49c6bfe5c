"""Everything that survives a crash: the state directory and its files.

A batch is committed by writing its manifest, which names the array files of the state. States in
object stores are used through local mirrors.

- `layout`: the state directory, its lock and its format
- `manifest`: what a batch committed; garbage collection
- `arrays`: immutable files of named arrays
- `journal`: the log of events that a server has accepted
- `intake`: recorded batches of unordered sources, and Spark's checkpoint
- `runtime_files`: small files through which processes inform each other
- `filesystem`, `mirror`: local folders and object stores, and local copies of the latter
- `delta_tables`: open Delta tables, and read their commits in order
"""
