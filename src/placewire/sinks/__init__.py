"""Deliver committed results and dead letters to files, folders and Delta tables.

A sink gets every committed batch in order and keeps a cursor, so that a restart resumes delivery.
To add a sink, implement the protocol `placewire.sinks.delivery.Sink`.
"""
