"""What would make a view incremental that is refreshed in full, by the words of the reason."""

from __future__ import annotations

import re

VOLATILE = "its value changes without a change of data"

REMEDIES: tuple[tuple[str, str], ...] = (
    (
        r"^(now\(\)|current_|local|today|get_current|transaction_timestamp|age\(\))",
        "Take the time where the view is read, or from a table or a variable of the project that changes once a day.",
    ),
    (
        r"^(random|uuid|gen_random_uuid)\b",
        "Compute the value from the row, as hash(id) does, or where the view is read.",
    ),
    (r"^nextval\b", "Number the rows where they are written, or with row_number() where the view is read."),
    (
        r"^a sample without a fixed seed",
        "Give the sample a seed: REPEATABLE (42).",
    ),
    (VOLATILE, "Leave the function to those who read the view."),
    (r"^the macro .* several schemas", "Give the macros different names."),
    (r"^the macro .* takes the place of", "Give the macro another name."),
    (r"^the (overloaded )?macro ", "Give the overloads different names, or write out what the macro says."),
    (r"^the function .* is yours", "Give the function another name."),
    (r"^the column .* could not be resolved", "Give the column an alias where it is made, and name its table."),
    (r"^PIVOT without IN", "List the values: PIVOT .. ON column IN ('a', 'b')."),
    (r"^POSITIONAL JOIN", "Join by a key; row_number() over an order that is total makes one."),
    (r"^a sample at", "Choose rows by their values, as hash(id) % 100 < 10 does."),
    (r"^the table function", "Load its rows into a table first."),
    (r"^(LIMIT|OFFSET) without ORDER BY", "Say which rows come first, with ORDER BY."),
    (
        r"^(LIMIT|OFFSET|LIMIT n%) of what is no constant",
        "Write the number, or compare row_number() with the value in QUALIFY.",
    ),
    (r"could not be parsed", "Say it in other words. What the parser does not know is refreshed on every run."),
    (r"a bug in dbt-openivm", "Please report the query. Until then it is right, but refreshed in full."),
)

ELSE = (
    "Put what stands before it into an ivm_view of its own: that one is incremental, and this one recomputes from its "
    "smaller result."
)


def remedy(reason: str) -> str:
    """A sentence that says what to do.

    Example:
        >>> remedy("a sample without a fixed seed at line 2 cannot be maintained, since it differs every time")
        'Give the sample a seed: REPEATABLE (42).'
    """
    return next((text for pattern, text in REMEDIES if re.search(pattern, reason, re.IGNORECASE)), ELSE)
