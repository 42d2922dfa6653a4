"""`stepscope tokens`: the tokens of a team's server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from stepscope.cli.options import argument, option
from stepscope.report.looks import clean


def list_tokens(
    file: Annotated[Path, argument(value="FILE", help="The file of `serve --token-file`.")],
    add: Annotated[
        str | None, option("--add", value="NAME", help="Add a token for a person or group, and print it once.")
    ] = None,
    role: Annotated[
        str, option("--role", value="ROLE", help="The role of the added token: see, label or capture.")
    ] = "see",
    revoke: Annotated[
        list[str] | None, option("--revoke", value="ID", help="Remove a token by its id or name; repeatable.")
    ] = None,
) -> None:
    """Lists, adds and revokes tokens of `stepscope serve`.  Running servers notice at once."""
    from stepscope.web.auth import tokens

    if add is not None:
        text = tokens.new_text()
        tokens.add_token(file, text, tokens.parse_role(role), add)
        print(f"token, shown only now: {text}", file=sys.stderr)
    for wanted in revoke or ():
        tokens.remove_token(file, wanted)
    for token in tokens.read_tokens(file):
        print(f"{token.id}  {token.role.name.lower():8}{clean(token.name)}".rstrip())
