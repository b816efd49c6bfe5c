"""Generate an event log of an hour of city life, to try Placewire with and to measure it.

People in some 150 cities post short texts in twelve languages while a concert ends in New York,
a storm crosses London and a metro line stops in Istanbul. Others hold subscriptions of all four
kinds around the same places and words, and ask queries. Equal descriptions give equal bytes.

The words, places, incidents and readable subscriptions are data files in `data/`, which
`vocabulary`, `places` and `subscriptions` load. `vocabulary` compiles words and templates to
arrays, `objects` draws posts, `subscriptions` what subscriptions and queries ask for, `generator`
orders the lines. `lines` has weighted choice, data files and parts of lines.

    from placewire.demo import CityLife, write_log
    write_log(CityLife(objects=100_000, subscriptions=10_000), "hour.jsonl")
"""

from placewire.demo.generator import CityLife, blocks, count_events, write_log
from placewire.demo.subscriptions import readable_queries, readable_subscriptions

__all__ = [
    "CityLife",
    "blocks",
    "count_events",
    "readable_queries",
    "readable_subscriptions",
    "write_log",
]
