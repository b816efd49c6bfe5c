"""`placewire serve`: run the service, its gateway and its pipeline as two processes."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

from placewire.batch.resize import read_workers
from placewire.cli.options import check_runner
from placewire.cli.service_commands import ServeOptions
from placewire.cli.startup import ready_kernels, set_after, set_on_signals
from placewire.model.errors import InvalidEvent, Unusable
from placewire.model.settings import read_settings
from placewire.model.times import parse_duration
from placewire.plans.names import parse_plans
from placewire.plans.rebalance.rebalancer import read_rebalance
from placewire.storage.runtime_files import make_url
from placewire.warm import warm_kernels

PARTS = ("all", "gateway", "pipeline")
FAILED = 1


def run_serve(options: ServeOptions, given: list[str]) -> int:
    """Run the service or a part of it until it is stopped; raises Unusable."""
    if options.part not in PARTS:
        raise Unusable(f"part: must be one of {', '.join(PARTS)}, got {options.part!r}")
    check_runner(options.runner)
    read_settings(options.settings)
    parse_plans(options.plan)
    read_workers(options.workers)
    read_rebalance(options.rebalance)
    keep_us = read_keep(options.keep)
    stopping = threading.Event()
    if options.held:
        from placewire.serve.processes import end_with_parent

        end_with_parent(stopping)
    set_on_signals(stopping)
    if options.part == "pipeline":
        start_timer(options, stopping)
        return serve_pipeline(options, stopping)
    if options.part == "gateway":
        return serve_gateway(options, keep_us, stopping)
    from placewire.serve.processes import (
        Child,
        call_when_ready,
        check_exposure,
        check_state,
        listen,
        say,
        supervise,
    )

    checked = gateway_options(options, keep_us)
    check_state(checked)
    check_exposure(checked)
    listen(options.host, options.port).close()
    command = [sys.executable, "-m", "placewire.cli.main", "serve", *given, "--held"]
    children = [Child(part, [*command, "--part", part]) for part in ("gateway", "pipeline")]
    if options.seconds is not None:
        url = make_url(options.host, options.port)
        call_when_ready(url, stopping, lambda: start_timer(options, stopping))
    return supervise(children, stopping, say)


def start_timer(options: ServeOptions, stopping: threading.Event) -> None:
    """Stop after `--for` seconds from now; a held part stops with its supervisor instead."""
    if options.seconds is not None and not options.held:
        set_after(stopping, options.seconds)


def read_keep(text: str) -> int:
    """Read how long results are kept, in microseconds; raises Unusable."""
    try:
        return parse_duration(text)
    except InvalidEvent as error:
        raise Unusable(f"keep: {error}") from None


def gateway_options(options: ServeOptions, keep_us: int):  # type: ignore[no-untyped-def]
    from placewire.serve.auth import is_loopback
    from placewire.serve.gateway import GatewayOptions

    return GatewayOptions(
        state=options.state,
        settings=read_settings(options.settings),
        host=options.host,
        port=options.port,
        ledger=options.ledger,
        require_keys=options.require_keys or not is_loopback(options.host),
        rate=options.rate,
        keep_us=keep_us,
        hosts=(options.host,),
        allow_private=options.allow_private_webhooks,
        renew_ledger=options.renew_ledger,
    )


def serve_gateway(options: ServeOptions, keep_us: int, stopping: threading.Event) -> int:
    """Run the gateway in this process."""
    from placewire.serve.processes import run_gateway, say

    def ready() -> None:
        start_timer(options, stopping)
        url = make_url(options.host, options.port)
        if options.json:
            facts = {"ready": True, "url": url, "state": str(options.state)}
            print(json.dumps(facts), flush=True)
        elif not options.quiet:
            say(f"Listening on {url}, state in {options.state}")

    run_gateway(gateway_options(options, keep_us), stopping, ready)
    return 0


def serve_pipeline(options: ServeOptions, stopping: threading.Event) -> int:
    """Run the pipeline in this process."""
    from placewire.serve.pipeline import PipelineOptions, run_pipeline, wait_for_journal

    given = PipelineOptions(
        options.state,
        read_settings(options.settings),
        options.runner,
        options.plan,
        options.workers,
        options.rebalance,
    )
    if options.quiet:
        warm_kernels(options.plan)
    else:
        ready_kernels(options.plan)
    if not wait_for_journal(given.state, stopping):
        return 0
    if options.runner == "local":
        run_pipeline(given, stopping)
        return 0
    from placewire.spark.session import local_master, make_session, warm_workers

    sessions = []

    def start():  # type: ignore[no-untyped-def]
        workers = max(read_workers(options.workers).most, 1)
        cores = min(workers, os.cpu_count() or 1)
        sessions.append(make_session(local_master(cores), chatter=Path(os.devnull)))
        warm_workers(sessions[-1], options.plan, given.settings)
        return sessions[-1]

    try:
        run_pipeline(given, stopping, start)
    except Unusable as error:
        if error.__cause__ is None:
            raise
        # Spark failed: the supervisor restarts the pipeline.
        print(f"pipeline: {error}", file=sys.stderr)
        return FAILED
    finally:
        for session in sessions:
            session.stop()
    return 0
