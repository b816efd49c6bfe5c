"""The `placewire` command line.

`main` runs it and turns errors into one line. `commands` declares names, options and help texts;
each command is implemented in the module here that has its name, which is imported when the
command runs. `connection` opens the server or the state directory that a command uses. Commands
share `options` and `output`; `plan` and `status` draw `maps`. Commands that run a pipeline share
`startup`: signals, compiled kernels and the Spark session.
"""
