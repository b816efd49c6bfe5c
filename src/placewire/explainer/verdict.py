"""Write the verdict of an explanation: one sentence with the result and its reasons."""

from __future__ import annotations

from typing import Any

from placewire.kinds.phrases import MOST_WORDS, describe_none, format_metres, join_words, quote_term
from placewire.model.kinds import kind_named


def write_verdict(explanation: dict[str, Any]) -> str:
    """Write the verdict, reasons against a match first."""
    kind, matches = kind_named(explanation["subscription"]["kind"]), explanation["matches"]
    interval = explanation["interval"]
    head = "Cannot be told" if matches is None else kind.verdicts[0 if matches else 1]
    bad: list[str] = []
    good: list[str] = []
    if not interval["live"]:
        bad.append(f"the subscription was not live, {interval['why']}")
    if interval["live"] is None:
        return f"{head}: whether the subscription was live: {interval['why']}."
    if "where" in explanation and explanation["where"] is not None:
        tree, holds = explanation["where"]["tree"], explanation["where"]["holds"]
        said = describe_tree(tree, holds)
        (good if holds else bad).append(f"the object {said}")
    if "region" in explanation:
        region = explanation["region"]
        if region["kind"] != "everywhere" or explanation.get("where") is None:
            (good if region["inside"] else bad).append(describe_region(region))
    kind.add_reasons(explanation, good, bad)
    return f"{head}: {'; '.join([*bad, *good])}."


def describe_region(region: dict[str, Any]) -> str:
    """Say where the object is relative to the region."""
    kind, inside = region["kind"], region["inside"]
    if kind == "everywhere":
        return "any place suits"
    if kind == "circle":
        centre = f"{format_metres(region['centre_m'])} from its centre"
        if inside:
            return f"it is inside the circle, {centre}"
        return f"it is {format_metres(region['edge_m'])} outside the circle, {centre}"
    if kind == "box":
        if inside:
            return "it is inside the box"
        sides = [
            f"{one['side']} of the box by {format_metres(one['by_m'])}" for one in region["beyond"]
        ]
        return "it is " + " and ".join(sides)
    if region["on_edge"]:
        return "it is on an edge of the polygon, which counts as inside"
    where = "inside" if inside else "outside"
    return f"it is {where} the polygon, about {format_metres(region['edge_m'])} from its edge"


def describe_tree(node: dict[str, Any], holds: bool) -> str:
    """Say which words of an expression the object has or lacks, so that it holds or does not."""
    said = list(dict.fromkeys(list_reasons(node, holds)))
    if len(said) > MOST_WORDS:
        return "has the words that are asked" if holds else "does not have the words that are asked"
    parts = []
    for verb in ("has ", "lacks "):
        plain = [one for one in said if one.startswith(f"{verb}'") and one.endswith("'")]
        if plain:
            parts.append(verb + join_words([one.removeprefix(verb) for one in plain]))
        said = [one for one in said if one not in plain]
    return " and ".join([*parts, *said])


def list_reasons(node: dict[str, Any], holds: bool) -> list[str]:
    """List the reasons why a node holds or does not."""
    if "term" in node:
        return [f"has {quote_term(node)}" if holds else f"lacks {quote_term(node)}"]
    kind = next(kind for kind in ("all", "any", "none") if kind in node)
    children = node[kind]
    if kind == "any" and not holds and len(children) > 1 and all("term" in c for c in children):
        return [describe_none([quote_term(child) for child in children])]
    wanted = {"all": holds, "any": holds, "none": not holds}[kind]
    # A conjunction fails because of the children that fail; a disjunction holds by those that hold.
    said = []
    for child in children:
        if child["holds"] == wanted:
            if kind == "none" and not holds and "term" in child:
                said.append(f"has {quote_term(child)}, which is excluded")
            else:
                said += list_reasons(child, wanted)
    return said
