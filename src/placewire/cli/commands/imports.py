"""The command that takes over queries and fences of other systems."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from placewire.cli.app import LOGS, app, end


@app.command("import", rich_help_panel=LOGS)
def import_(
    file: Annotated[str, typer.Argument(help="The queries or fences; - for standard input.")],
    source: Annotated[
        str, typer.Option("--from", help="Where they come from: elasticsearch, opensearch, tile38.")
    ],
    out: Annotated[
        str, typer.Option(help="Where the subscriptions go, JSON Lines; - for standard output.")
    ] = "-",
    report: Annotated[
        Path | None,
        typer.Option(help="A list of all that was refused or noted, JSON Lines."),
    ] = None,
    text_field: Annotated[
        list[str] | None,
        typer.Option(
            help="The field that holds the text; may be given again.",
            show_default="the only one asked of",
        ),
    ] = None,
    place_field: Annotated[
        list[str] | None,
        typer.Option(
            help="The field that holds the place; may be given again.",
            show_default="the only one asked of",
        ),
    ] = None,
    query_field: Annotated[
        str, typer.Option(help="The field of a document that has its query.")
    ] = "query",
    key: Annotated[
        str | None,
        typer.Option(
            help="Tile38's collection whose objects are the stream.",
            show_default="the only one watched",
        ),
    ] = None,
    ts: Annotated[
        str | None,
        typer.Option(help="When the subscriptions begin, RFC 3339.", show_default="now"),
    ] = None,
    with_data: Annotated[
        bool,
        typer.Option("--with-data", help="Keep a document's other fields, or META, as data."),
    ] = False,
    phrases_as_words: Annotated[
        bool,
        typer.Option("--phrases-as-words", help="Ask for all the words of a phrase, in any order."),
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Tell what came of it as one JSON object.")
    ] = False,
) -> None:
    """Turn percolator queries or Tile38's fences into subscriptions, and list what has none."""
    from placewire.cli.importing import ImportCommand, run_import

    command = ImportCommand(
        file,
        source,
        out,
        report,
        text_field or [],
        place_field or [],
        query_field,
        key,
        ts,
        with_data,
        phrases_as_words,
        json,
    )
    code = run_import(command)
    end(code)
