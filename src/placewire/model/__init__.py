"""The vocabulary of Placewire: what events, objects and subscriptions are, before any processing.

Every other package imports this one, and it imports none.

- `events`: the JSON form of events and its strict decoder
- `regions`, `expression`, `times`: values of events and settings, read and checked
- `arrays`: types of arrays
- `subscriptions`: subscriptions as columns
- `kinds`: the protocol of a kind of subscription, its null implementation and the registry
- `settings`: the settings that change results
- `errors`: `InvalidEvent` (one event, becomes a dead letter) and `Unusable` (the whole run)
"""
