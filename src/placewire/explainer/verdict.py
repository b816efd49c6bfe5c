"""Verdicts in words: one sentence that says what came of a pair, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

MOST_WORDS = 6  # of a sentence; the tree has all

HEADS = {
    "boolean": ("Match", "No match"),
    "nearest": ("A candidate", "Not a candidate"),
    "relevant": ("A candidate", "Not a candidate"),
    "trending": ("Counted", "Not counted"),
}


def say_verdict(told: dict[str, Any]) -> str:
    """The sentence of an explanation."""
    kind, matches = told["subscription"]["kind"], told["matches"]
    interval = told["interval"]
    head = "Cannot be told" if matches is None else HEADS[kind][0 if matches else 1]
    bad: list[str] = []
    good: list[str] = []
    if not interval["live"]:
        bad.append(f"the subscription was not live, {interval['why']}")
    if interval["live"] is None:
        return f"{head}: whether the subscription was live: {interval['why']}."
    if "where" in told and told["where"] is not None:
        tree, holds = told["where"]["tree"], told["where"]["holds"]
        said = say_tree(tree, holds)
        (good if holds else bad).append(f"the object {said}")
    if "region" in told:
        region = told["region"]
        if region["kind"] != "everywhere" or told.get("where") is None:
            (good if region["inside"] else bad).append(say_region(region))
    if "nearest" in told:
        say_nearest(told["nearest"], good, bad)
    if "relevant" in told:
        say_relevant(told["relevant"], good, bad)
    if "trending" in told:
        say_trending(told["trending"], bool(matches), good, bad)
    return f"{head}: {'; '.join([*bad, *good])}."


def say_nearest(told: dict[str, Any], good: list[str], bad: list[str]) -> None:
    """Words, distance and standing."""
    words = say_keywords(told["keywords"], told["mode"] == "all")
    suits = (all if told["mode"] == "all" else any)(one["holds"] for one in told["keywords"])
    (good if suits else bad).append(f"the object {words}")
    away = f"it is {metres(told['distance_m'])} away"
    if told["within_m"] is not None and told["distance_m"] > told["within_m"]:
        bad.append(f"{away}, farther than within_m, {metres(told['within_m'])}")
    else:
        good.append(away)
    standing = told.get("standing")
    if standing == "in":
        good.append(f"it is in the result, {ordinal(told['rank'])} of {told['held']}")
    elif standing == "would enter":
        room = f"the result has {told['held']} of {told['k']}"
        if told["kth_m"] is not None:
            room = f"the {ordinal(told['k'])} is {metres(told['kth_m'])} away"
        good.append(f"it would enter the result: {room}")
    elif standing == "too far":
        by = metres(told["too_far_by_m"])
        good.append(
            f"too far to be in the result: the {ordinal(told['k'])} is"
            f" {metres(told['kth_m'])} away, {by} nearer"
        )


def say_relevant(told: dict[str, Any], good: list[str], bad: list[str]) -> None:
    """Words, score, window and standing."""
    said = f"the object {say_keywords(told['terms'], False)}"
    (good if told["shares_a_term"] else bad).append(said)
    if told["in_window"] is False:
        bad.append("it is not in the sliding window any more")
    if told["score"] is not None:
        good.append(f"its score is {told['score']:.9g}")
    standing = told.get("standing")
    if standing == "in":
        good.append(f"it is in the result, {ordinal(told['rank'])} of {told['held']}")
    elif standing == "would enter":
        room = f"the result has {told['held']} of {told['k']}"
        if told["kth_score"] is not None:
            room = f"the {ordinal(told['k'])} has {told['kth_score']:.9g}"
        good.append(f"it would enter the result: {room}")
    elif standing == "too low":
        good.append(
            f"too low to be in the result: the {ordinal(told['k'])} has {told['kth_score']:.9g}"
        )


def say_trending(told: dict[str, Any], counted: bool, good: list[str], bad: list[str]) -> None:
    """How many reports, and what it adds."""
    reports = told["reports"]
    if reports == 0:
        bad.append("its time is in the window of no report")
    elif reports is not None:
        several = f"{reports} report{'s' if reports > 1 else ''}"
        good.append(f"its time is in the window of {several}, the first at {told['first_due'][0]}")
    count = len(told["adds_terms"])
    if counted:
        adds = f"it adds 1 to {count} term{'s' if count > 1 else ''}"
        good.append(adds if count else "it has no term, and counts as an object alone")


def say_region(region: dict[str, Any]) -> str:
    """Where the object is as the region sees it."""
    kind, inside = region["kind"], region["inside"]
    if kind == "everywhere":
        return "any place suits"
    if kind == "circle":
        centre = f"{metres(region['centre_m'])} from its centre"
        if inside:
            return f"it is inside the circle, {centre}"
        return f"it is {metres(region['edge_m'])} outside the circle, {centre}"
    if kind == "box":
        if inside:
            return "it is inside the box"
        sides = [f"{one['side']} of the box by {metres(one['by_m'])}" for one in region["beyond"]]
        return "it is " + " and ".join(sides)
    if region["on_edge"]:
        return "it is on an edge of the polygon, which counts as inside"
    where = "inside" if inside else "outside"
    return f"it is {where} the polygon, about {metres(region['edge_m'])} from its edge"


def say_tree(node: dict[str, Any], holds: bool) -> str:
    """What an object has or lacks, so that a node holds or does not."""
    said = list(dict.fromkeys(say_node(node, holds)))
    if len(said) > MOST_WORDS:
        return "has the words that are asked" if holds else "does not have the words that are asked"
    parts = []
    for verb in ("has ", "lacks "):
        plain = [one for one in said if one.startswith(f"{verb}'") and one.endswith("'")]
        if plain:
            parts.append(verb + listed([one.removeprefix(verb) for one in plain]))
        said = [one for one in said if one not in plain]
    return " and ".join([*parts, *said])


def say_node(node: dict[str, Any], holds: bool) -> list[str]:
    """The reasons why a node holds or does not."""
    if "term" in node:
        return [f"has {quoted(node)}" if holds else f"lacks {quoted(node)}"]
    kind = next(kind for kind in ("all", "any", "none") if kind in node)
    children = node[kind]
    if kind == "any" and not holds and len(children) > 1 and all("term" in c for c in children):
        return [neither([quoted(child) for child in children])]
    wanted = {"all": holds, "any": holds, "none": not holds}[kind]
    # What a conjunction fails by is what fails in it; what a disjunction holds by, what holds.
    said = []
    for child in children:
        if child["holds"] == wanted:
            if kind == "none" and not holds and "term" in child:
                said.append(f"has {quoted(child)}, which is excluded")
            else:
                said += say_node(child, wanted)
    return said


def say_keywords(keywords: Sequence[dict[str, Any]], every: bool) -> str:
    """Which keywords an object has, or that it has none."""
    has = [quoted(one) for one in keywords if one["holds"]]
    lacks = [quoted(one) for one in keywords if not one["holds"]]
    if every and lacks:
        return f"lacks {shortened(lacks)}"
    if has:
        return f"has {shortened(has)}"
    return neither(lacks) if len(lacks) > 1 else f"lacks {lacks[0]}"


def neither(words: list[str]) -> str:
    if len(words) == 2:
        return f"has neither {words[0]} nor {words[1]}"
    return f"has none of {shortened(words, ', ')}"


def shortened(words: list[str], joint: str = " and ") -> str:
    if len(words) <= MOST_WORDS:
        return joint.join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]
    return f"{', '.join(words[:MOST_WORDS])} and {len(words) - MOST_WORDS} more"


def listed(words: list[str]) -> str:
    """Words as a sentence lists them."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def quoted(leaf: dict[str, Any]) -> str:
    """A term as it is shown: its word, or its hash where no retained object has it."""
    if leaf["term"] is not None:
        return f"'{leaf['term']}'"
    return f"#{leaf['hash'][:8]} (a word that no retained object has)"


def metres(value: float) -> str:
    """A distance in a few digits; the JSON has all of them."""
    if value < 10:
        return f"{value:.3f}".rstrip("0").rstrip(".") + " m"
    if value < 1_000:
        return f"{value:.0f} m"
    return f"{value / 1_000:.1f} km" if value < 100_000 else f"{value / 1_000:,.0f} km"


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th."""
    if 10 < number % 100 < 20:
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
