"""The steps of a batch: dispatch its blocks, match them, settle the results, commit.

The coordinator runs them and is the only writer of a state. `local_runner` runs blocks in this
process; `placewire.spark` runs the same functions in tasks.
"""
