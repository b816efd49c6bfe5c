"""Everything that survives a crash: the state directory and its files.

A batch is committed by writing its manifest, which names the array files of the state. Garbage
collection deletes files that no recent manifest names. States in object stores are used through
local mirrors. The journal holds the events that a server has accepted.
"""
