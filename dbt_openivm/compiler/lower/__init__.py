"""From SQL text to the operator tree: parse, resolve names, normalise SQL's many spellings. `query.lower` is the
entry."""
