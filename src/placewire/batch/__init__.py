"""Run batches: dispatch, match, settle, commit.

- `coordinator`: the one writer of a state directory; runs a batch and commits it
- `local_runner`: run batches in this process; `spark/stages.py` runs the same steps on Spark
- `dispatch`: decode a block, match it or route its objects to workers
- `block_file`: the file that a block leaves for later steps
- `match`: match objects with live segments, in a task or at a worker
- `settle`: apply changes in order of seq, and make results final
- `updates`: write updates and reports to the outbox
- `dead_letters`: write dead letters to the outbox
- `resize`: change the number of workers between two commits
"""
