"""Everything on disk: array files, manifests, the journal, and the file systems they live on.

A batch is committed when its manifest exists. Files are immutable and never reuse a name.

- `layout`: the state directory, its lock and its format version
- `arrays`: write named arrays to a file, and map them into memory
- `manifest`: what a batch committed, as typed entries
- `garbage`: delete files that no manifest needs
- `journal`: the append-only log of events that a service accepted
- `intake_record`: the recorded order of rows from sources without one
- `filesystem`, `mirror`: state directories in object stores, cached on each machine
- `spark_checkpoint`: Spark's checkpoint of a state in an object store
- `delta_tables`: open Delta tables
- `notes`: small files beside the manifests: which server runs, which plan was requested
"""
