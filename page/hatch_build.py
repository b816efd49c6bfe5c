"""Warn when a distribution is built without the libraries of the live map."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VENDOR = "src/placewire/serve/page/vendor"


class LiveMapHook(BuildHookInterface):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable" and not Path(self.root, VENDOR).is_dir():
            self.app.display_warning(
                f"{VENDOR} is missing, so this {self.target_name} has no live map: run `make page`"
            )
