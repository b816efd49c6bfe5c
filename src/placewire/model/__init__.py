"""The vocabulary of Placewire: events, regions, expressions, settings, subscriptions and errors.

Everything else imports this package, which imports nothing else of the project at run time. It also
holds the registry of kinds and the protocol that each kind implements (`kinds.py`).
"""
