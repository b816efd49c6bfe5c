"""Read JSON Lines from raw bytes and print results, exactly as the strict decoder would.

The readers take plain lines only: known keys, no escapes. They leave every other line to
`model/events.py`.

- `objects`: find lines and read plain objects in one pass
- `changes`, `change_values`: read plain subscribes and unsubscribes
- `strings`, `numbers`, `timestamps`: read single values
- `results`: order matches and updates, and print them as lines
"""
