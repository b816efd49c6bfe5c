"""A lag in words, and as metrics."""

from __future__ import annotations

from placewire.storage.notes import Lag, SourceLag


def lag_line(lag: Lag) -> str:
    """What waits in each source, and what the sinks lack, in one line."""
    parts = [f"{source.source}: {waiting(source)}" for source in lag.sources]
    parts += [
        f"sink {name} lacks {counted(batches, 'batch', 'batches')}"
        for name, batches in lag.sinks.items()
        if batches
    ]
    return "; ".join(parts)


def waiting(source: SourceLag) -> str:
    """What waits in a source."""
    if source.messages is not None:
        worst = max(source.partitions, key=source.partitions.__getitem__, default=None)
        many = len(source.partitions) > 1 and source.messages and worst is not None
        most = f", most in {worst}: {source.partitions[worst]:,}" if many and worst else ""
        return f"{counted(source.messages, 'message', 'messages')} behind{most}"
    if source.files is not None:
        size = f", {source.bytes:,} bytes" if source.files and source.bytes is not None else ""
        files = f"{counted(source.files, 'file', 'files')} waiting{size}"
        more = source.versions
        return f"{files}, then {counted(more, 'version', 'versions')}" if more else files
    return f"newest taken is of {source.taken}" if source.taken else "does not tell"


def counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
