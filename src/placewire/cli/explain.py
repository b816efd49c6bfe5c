"""`placewire explain` and `placewire query`, on a state directory or a server."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.tree import Tree

from placewire.cli.options import CommandTarget, open_client
from placewire.cli.output import count_noun
from placewire.explainer.explain import describe_region, explain
from placewire.kinds.explanation import format_metres, join_words, quote_term
from placewire.model.errors import InvalidEvent, Unusable
from placewire.model.kinds import kind_named
from placewire.model.settings import read_settings
from placewire.queries.answer import encode_line
from placewire.queries.snapshot import Snapshot, decode_object
from placewire.serve.client import Client, Declined
from placewire.status import open_state

MAX_TERMS = 40  # of an object
MAX_POSTINGS = 4
UNKNOWN_TERM = "#{} (a word that no retained object has)"


def run_explain(
    target: CommandTarget | None,
    object: str,
    subscription: str,
    settings: Path | None,
    as_json: bool,
) -> None:
    """Print the explanation of a pair; raises Unusable for invalid input."""
    try:
        pair = read_object(object), read_pair_part(subscription, "the subscription")
        facts = fetch_explanation(target, pair, settings)
    except InvalidEvent as error:
        raise Unusable(str(error)) from None
    if sys.stdout is None:
        raise Unusable("standard output is closed")
    if as_json:
        print(json.dumps(facts, ensure_ascii=False))
    else:
        print_explanation(Console(highlight=False, soft_wrap=True), facts)


def fetch_explanation(
    target: CommandTarget | None, pair: tuple[Any, Any], path: Path | None
) -> dict[str, Any]:
    """Get the explanation from a state or a server, or, with neither, from the pair alone."""
    if target is not None and target.state is None:
        if path is not None:
            raise Unusable("explain: --settings are the server's own, leave them out")
        with open_client(target) as client:
            return client.explain(*pair)
    state = None if target is None or target.state is None else open_state(target.state)
    return explain(state, *pair, None if path is None else read_settings(path))


def read_object(text: str) -> dict[str, Any] | int | str:
    """Read a seq, JSON or an id; an id of digits is written as a JSON string."""
    return int(text) if text.isascii() and text.isdecimal() else read_pair_part(text, "the object")


def read_pair_part(text: str, what: str) -> dict[str, Any] | str:
    """Read JSON or an id, which may be written as a JSON string."""
    if text.startswith('"'):
        with suppress(msgspec.DecodeError, UnicodeError):
            return msgspec.json.decode(text, type=str)
    return decode_object(text, what) if text.lstrip().startswith("{") else text


def print_explanation(console: Console, facts: dict[str, Any]) -> None:
    """Print the verdict, the pair, the reasons, the cost and the plan."""
    colour = {True: "green", False: "red", None: "yellow"}[facts["matches"]]
    head, _, rest = facts["verdict"].partition(":")
    console.print(f"[bold {colour}]{head}[/]:{escape(rest)}")
    console.print()
    for line in pair_lines(facts):
        console.print(line)
    for part, print_part in PRINTERS.items():
        if facts.get(part) is not None:
            print_part(console, facts[part])
    interval = facts["interval"]
    console.print(f"[bold]live[/] {yes_or_no(interval['live'])}, {escape(interval['why'])}")
    if "cost" in facts:
        for line in cost_lines(facts["cost"], facts["subscription"]["kind"]):
            console.print(line)
    if "plan" in facts:
        console.print(plan_line(facts["plan"]))


def yes_or_no(holds: bool | None) -> str:
    """Format yes, no or unknown."""
    return {True: "[green]yes[/]", False: "[red]no[/]", None: "[yellow]?[/]"}[holds]


def presence(holds: bool) -> str:
    """Format whether the object has a word."""
    return "[green]there[/]" if holds else "[red]not there[/]"


def pair_lines(facts: dict[str, Any]) -> list[str]:
    """Describe the object and the subscription."""
    placed, asked = facts["object"], facts["subscription"]
    name = format_id(placed["id"])
    seq = f"seq {placed['seq']}" if placed["seq"] is not None else "not in the log"
    at = f", {placed['ts']}" if placed["ts"] else ""
    line = f"[bold]object[/] {name} ({seq}{at}) at {placed['lon']:.9g}, {placed['lat']:.9g}"
    if placed["namesakes"]:
        line += f"; the latest of {placed['namesakes'] + 1} retained objects of this id"
    terms = placed["terms"]
    shown = ", ".join(terms[:MAX_TERMS]) or "none"
    more = f" and {len(terms) - MAX_TERMS} more" if len(terms) > MAX_TERMS else ""
    name = format_id(asked["id"])
    where = "of the state" if asked["in_state"] else "not in a state"
    lines = [line, f"  terms: {escape(shown)}{more}"]
    lines.append(f"[bold]subscription[/] {name}, {asked['kind']}, {where}")
    return [*lines, *([f"  {asked['note']}"] if "note" in asked else [])]


def format_id(name: str | None) -> str:
    """Format an id, quoted if it has unprintable characters or outer spaces."""
    if name is None:
        return "as given"
    return escape(name if name.isprintable() and name.strip() == name else json.dumps(name))


def print_region(console: Console, region: dict[str, Any]) -> None:
    """Print whether the object is inside the region."""
    if region["kind"] != "everywhere":
        said = describe_region(region).removeprefix("it is ")
        console.print(f"[bold]region[/] {yes_or_no(region['inside'])}, {said}")


def print_where(console: Console, where: dict[str, Any]) -> None:
    """Print the expression as a tree, with the value of each node."""
    note = "" if where["as_written"] else ", as the state keeps it"
    tree = Tree(f"[bold]where[/] {yes_or_no(where['holds'])}{note}")
    add_node(tree, where["tree"])
    console.print(tree)


def add_node(tree: Tree, node: dict[str, Any]) -> None:
    """Add a node of the expression and its children."""
    if "term" in node:
        word = node["term"]
        name = UNKNOWN_TERM.format(node["hash"][:8]) if word is None else escape(word)
        tree.add(f"{name} {presence(node['holds'])}")
        return
    operator = next(name for name in ("all", "any", "none") if name in node)
    branch = tree.add(f"{operator} of these: {yes_or_no(node['holds'])}")
    for child in node[operator]:
        add_node(branch, child)


def print_nearest(console: Console, facts: dict[str, Any]) -> None:
    """Print keywords, distance and current result of a nearest subscription."""
    keywords = facts["keywords"]
    words = ", ".join(f"{escape(quote_term(one))} {presence(one['holds'])}" for one in keywords)
    console.print(f"[bold]keywords[/] ({facts['mode']}) {words}")
    within = (
        f", within_m {format_metres(facts['within_m'])}" if facts["within_m"] is not None else ""
    )
    console.print(f"[bold]distance[/] {facts['distance_m']:,.3f} m{within}")
    if "held" in facts:
        kth = f", the last {facts['kth_m']:,.3f} m away" if facts["kth_m"] is not None else ""
        console.print(f"[bold]result[/] {facts['held']} of {facts['k']}{kth}")


def format_weight(term: dict[str, Any]) -> str:
    """Format the weight of a term, with a note if the lexicon lacks it."""
    note = "" if term.get("in_lexicon", True) else ", not in the lexicon"
    return f"idf {term['idf']:.6g}{note}"


def print_relevant(console: Console, facts: dict[str, Any]) -> None:
    """Print the score and its parts, and the current result of a relevant subscription."""
    alpha = facts["alpha"]
    score = "none, no term is shared" if facts["score"] is None else f"{facts['score']:.9f}"
    tree = Tree(f"[bold]score[/] {score}")
    place = f"{facts['distance_m']:,.3f} m of {facts['reach_m']:,.0f} m"
    tree.add(f"{alpha:g} x SSim {facts['ssim']:.9f}: {place}")
    text = tree.add(f"{1 - alpha:g} x TSim {facts['tsim']:.9f}")
    for term in facts["terms"]:
        name = escape(quote_term(term))
        if term["holds"]:
            adds = f"u {term['u']:.6f} x v {term['v']:.6f} = {term['adds']:.9f}"
            text.add(f"{name} [green]there[/]: {adds} ({format_weight(term)})")
        else:
            text.add(f"{name} [red]not there[/] (u {term['u']:.6f}, {format_weight(term)})")
    console.print(tree)
    if facts["in_window"] is not None:
        console.print(f"[bold]in the window[/] {yes_or_no(facts['in_window'])}")
    if "held" in facts:
        kth = f", the last with {facts['kth_score']:.9f}" if facts["kth_score"] is not None else ""
        console.print(f"[bold]result[/] {facts['held']} of {facts['k']}{kth}")


def print_trending(console: Console, facts: dict[str, Any]) -> None:
    """Print which reports of a trending subscription count the object."""
    if facts["reports"] is None:
        console.print("[bold]reports[/] unknown: needs the times of both")
        return
    line = f"[bold]reports[/] whose window has its time: {facts['reports']}"
    if facts["first_due"]:
        line += f", at {', '.join(facts['first_due'])}"
        line += ", ..." if facts["reports"] > len(facts["first_due"]) else ""
    if "past" in facts:
        line += f"; {facts['past']} of them past"
    if "next_due" in facts:
        line += f", the next at {facts['next_due']}"
    console.print(line)


def cost_lines(cost: dict[str, Any], kind: str) -> list[str]:
    """Describe the cost of the object and the postings of the subscription."""
    pairs = ("match", "matches") if kind_named(kind).exact else ("candidate", "candidates")
    done = [
        count_noun(cost["terms_probed"], "term", "terms") + " probed",
        f"{cost['terms_posted']:,} with postings",
        count_noun(cost["cells"], "cell", "cells"),
        count_noun(cost["candidates"], "posting", "postings") + " looked at",
        f"{cost['verified']:,} verified exactly",
        count_noun(cost["matches"], *pairs),
    ]
    among = count_noun(cost["subscriptions"], "subscription", "subscriptions")
    lines = [
        f"[bold]cost[/] among {among.replace(' ', f' {kind} ', 1)}: {', '.join(done)}",
        f"  this one: {escape(cost['why'])}",
    ]
    posted = cost["posted"]
    for post in posted[:MAX_POSTINGS]:
        name = "any text" if post["any_text"] else quote_term(post)
        reached = "reached" if post["reached"] else "not reached"
        lines.append(f"  posted under {escape(name)}{format_cell(post)}: {reached}")
    if len(posted) > MAX_POSTINGS:
        rest = posted[MAX_POSTINGS:]
        reached = str(sum(post["reached"] for post in rest))
        more = count_noun(len(rest), "posting", "postings").replace(" ", " more ", 1)
        lines.append(f"  and {more}, {reached} of them reached")
    return lines


def format_cell(post: dict[str, Any]) -> str:
    if "cell" not in post:
        return ""
    cell = post["cell"]
    if cell["level"] == 0:
        return " in the cell of the whole world"
    box = ", ".join(f"{edge:.6g}" for edge in cell["box"])
    return f" in cell {cell['code']} of level {cell['level']} ({box})"


def plan_line(plan: dict[str, Any]) -> str:
    """Describe which workers get the pair."""
    line = f"[bold]plan[/] {escape(plan['name'])}, version {plan['version']}"
    if "object_goes_to" not in plan:
        return f"{line}: objects are matched where they are read"
    line += f", {count_noun(plan['workers'], 'worker', 'workers')}"
    if "leaf" in plan:
        line += f": the object is in leaf {plan['leaf']}"
    for key, said in (
        ("object_goes_to", "the object goes to"),
        ("subscription_is_at", "the subscription is at"),
        ("pair_meets_at", "they meet at"),
    ):
        if key in plan:
            who = join_words([str(worker) for worker in plan[key]]) if plan[key] else "none"
            line += f"; {said} worker{'s' if len(plan[key]) > 1 else ''} {who}"
    return line


PRINTERS = {
    "region": print_region,
    "where": print_where,
    "nearest": print_nearest,
    "relevant": print_relevant,
    "trending": print_trending,
}


def run_query(query: str, target: CommandTarget, with_data: bool, timing: bool) -> int:
    """Answer one query, or with `-` each line of standard input; return the exit code.

    An invalid line is reported on standard error and does not stop the others.
    """
    many = query == "-"
    with open_answerer(target, many, with_data, timing) as ask:
        if not many:
            try:
                ask(query)
            except InvalidEvent as error:
                raise Unusable(str(error)) from None
            return 0
        if sys.stdin is None:
            raise Unusable("standard input is closed")
        code = 0
        for number, line in enumerate(iter(sys.stdin.buffer.readline, b""), 1):
            try:
                ask(line)
            except InvalidEvent as error:
                print(f"placewire: line {number}: {error}", file=sys.stderr, flush=True)
                code = 1
        return code


@contextmanager
def open_answerer(
    target: CommandTarget, many: bool, with_data: bool, timing: bool
) -> Iterator[Callable[[str | bytes], None]]:
    """Yield a function that answers a query from a state or a server and prints the answer."""
    if target.state is None:
        with open_client(target) as client:
            yield partial(print_server_answer, client, with_data=with_data, timing=timing)
        return
    with Snapshot(target.state) as snapshot:
        if snapshot.manifest is None:
            print("placewire: nothing is committed yet", file=sys.stderr)

        def ask(query: str | bytes) -> None:
            if many:
                snapshot.refresh()
            print_state_answer(snapshot, query, with_data, timing)

        yield ask


def print_server_answer(client: Client, query: str | bytes, with_data: bool, timing: bool) -> None:
    """Print a server's answer; raises InvalidEvent for a query that it rejects."""
    asked = decode_object(query)
    started = time.perf_counter()
    try:
        answer = client.query(asked, with_data)
    except Declined as error:
        if error.status != 422:
            raise
        raise InvalidEvent(str(error)) from None
    took_ms = 1_000 * (time.perf_counter() - started)
    print_answer(encode_line(answer))
    if timing:
        print(f"answered in {took_ms:.2f} ms, including the round trip", file=sys.stderr)


def print_state_answer(
    snapshot: Snapshot, query: str | bytes, with_data: bool, timing: bool
) -> None:
    times_ms = []
    for _ in range(2 if timing else 1):
        started = time.perf_counter()
        line = snapshot.answer_line(query, with_data)
        times_ms.append(1_000 * (time.perf_counter() - started))
    print_answer(line)
    if timing:
        objects = sum(section.retained.total for section in snapshot.sections)
        print(
            f"answered in {times_ms[1]:.2f} ms from {objects:,} objects in"
            f" {len(snapshot.sections)} files ({times_ms[0]:.0f} ms the first time)",
            file=sys.stderr,
        )


def print_answer(line: bytes) -> None:
    """Write one line to standard output at once."""
    if sys.stdout is None:
        raise Unusable("standard output is closed")
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
