"""Run batches: dispatch, match, settle, commit.

- `coordinator`: the one writer of a state directory; runs a batch and commits it
- `local_runner`: run batches in this process; `spark/stages.py` runs the same steps on Spark
- `dispatch`: decode a block, write its file, match it or route its objects to workers
- `match`: match objects with live segments, in a task or at a worker
- `settle`: apply changes in order of seq, and write final results to the outbox
- `resize`: choose the number of workers by load, and change it between two commits
"""
