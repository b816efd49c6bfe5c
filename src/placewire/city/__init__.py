"""An hour of city life: a seeded generator of event logs, to try Placewire on and to measure it.

People in some 150 cities post short texts in twelve languages while a concert ends in New York,
a storm crosses London and a metro line stops in Istanbul; others have subscribed to what happens
around them, to the nearest or the most relevant of it, or to what their district talks about, and
some ask as they go.
`places` is the map, `vocabulary` and the language modules are what is said, `incidents` the
stories, `ground` where people are; `phrasebook` compiles the words to arrays, `objects`,
`subscriptions` and `queries` (with their `wishes` and `regions`) compose lines by the block, and
`life` puts them in order.

    from placewire.city import CityLife, write_log
    write_log(CityLife(objects=100_000, subscriptions=10_000), "hour.jsonl")
"""

from placewire.city.life import CityLife, blocks, count_events, write_log
from placewire.city.readable import readable_queries, readable_subscriptions

__all__ = [
    "CityLife",
    "blocks",
    "count_events",
    "readable_queries",
    "readable_subscriptions",
    "write_log",
]
