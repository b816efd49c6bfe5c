"""Ingest: cut logs into blocks and decode blocks into validated columns with a clock.

`sources.py` and `log.py` find the blocks of a batch, `decode.py` and `columns.py` decode lines and
tables, `changes.py` builds the rows of subscriptions, and `clock.py` chains the clocks of blocks.
"""
