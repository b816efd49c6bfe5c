"""Placewire: a wire service for places.

People say where and which words; Placewire tells them, the moment it happens, of every geo-tagged
text that fits. The rooms of the house stand in the order in which data walks through them: model,
kernels, text, index, plan, route, state, engine, spark, cli. `docs/architecture.md` tells the walk.
"""

from placewire.api import Results, replay, run
from placewire.model.errors import Unusable
from placewire.model.settings import Settings

__all__ = ["Results", "Settings", "Unusable", "replay", "run"]
