"""Turn input into validated blocks of columns, with a clock.

An event is validated here, once; later steps trust it. An invalid event becomes a dead letter.

- `log`, `sources`: cut a log file or journal into batches and blocks
- `decode`: decode a block of JSON Lines into columns of objects, changes and queries
- `columns`: decode a block of Arrow columns
- `changes`: subscribes and unsubscribes to rows
- `queries`: read snapshot queries
- `fields`: which fields a kind has, and how values are checked
- `clock`: `now` at each block, and which events are too far ahead
- `admission`: validate one event for the service, before it is written to the journal
"""
