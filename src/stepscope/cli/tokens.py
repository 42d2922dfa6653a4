"""`stepscope tokens`: the tokens of a team's server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from stepscope.cli.options import argument, option
from stepscope.report.looks import clean


def list_tokens(
    file: Annotated[Path, argument(value="FILE", help="Tokens, one a line, as `serve --token-file` takes them.")],
    add: Annotated[
        str | None, option("--add", value="NAME", help="Add a token for a person or group, and print it once.")
    ] = None,
    role: Annotated[str, option("--role", value="ROLE", help="Of the added one: see, label or capture.")] = "see",
    revoke: Annotated[
        list[str] | None, option("--revoke", value="ID", help="Remove a token by its id or name; repeatable.")
    ] = None,
) -> None:
    """Lists the tokens of a file: id, role and name. Adds and revokes some; running servers see it at once."""
    from stepscope.web.door import tokens

    if add is not None:
        text = tokens.new_text()
        tokens.add_token(file, text, tokens.parse_role(role), add)
        print(f"token, shown only now: {text}", file=sys.stderr)
    for wanted in revoke or ():
        tokens.remove_token(file, wanted)
    for token in tokens.read_tokens(file):
        print(f"{token.id}  {token.role.name.lower():8}{clean(token.name)}".rstrip())
