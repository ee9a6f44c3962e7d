"""Mutations of SQL queries: random changes of the text, and changes that keep the grammar."""

from __future__ import annotations

import random
import re

WORD = re.compile(r"[A-Za-z_]+|\d+(?:\.\d+)?|'[^']*'|[^\sA-Za-z_\d']|\s+")
WORDS = [
    *(
        "SELECT",
        "FROM",
        "WHERE",
        "GROUP BY",
        "HAVING",
        "ORDER BY",
        "LIMIT",
        "AND",
        "OR",
        "NOT",
        "IN",
        "BETWEEN",
        "IS NULL",
    ),
    *(
        "CASE WHEN",
        "THEN",
        "ELSE",
        "END",
        "DISTINCT",
        "OVER",
        "PARTITION BY",
        "FILTER (WHERE",
        "UNION ALL",
        "WITH x AS (",
    ),
    *(
        "COUNT(*)",
        "SUM(",
        "AVG(",
        "MIN(",
        "MAX(",
        "MEDIAN(",
        "STDDEV(",
        "CORR(",
        "COALESCE(",
        "CAST(",
        "EXTRACT(year FROM",
    ),
    *(
        "(",
        ")",
        ",",
        "*",
        "+",
        "-",
        "/",
        "//",
        "%",
        "=",
        "<",
        ">",
        "<>",
        "||",
        ";",
        ".",
        "'",
        '"',
        "--",
        "/*",
        "NULL",
        "TRUE",
    ),
    *(
        "0",
        "1",
        "-1",
        "1e308",
        "99999999999999999999",
        "0.5",
        "'x'",
        "''",
        "'2020-01-01'",
        "DATE '2020-02-30'",
        "INTERVAL 1 DAY",
    ),
    *(
        "JOIN",
        "LEFT JOIN",
        "USING (",
        "ON",
        "AS",
        "ROLLUP (",
        "CUBE (",
        "GROUPING SETS (",
        "LATERAL",
        "UNNEST(",
        "VALUES (1)",
    ),
    *(
        "read_csv('x')",
        "random()",
        "now()",
        "current_date",
        "ARRAY[1]",
        "{'a': 1}",
        "x -> 1",
        "::INT",
        "?",
        "$1",
        ":p",
        "@v",
    ),
]
NUMBERS = ["0", "1", "-1", "2", "7", "100", "1e6", "0.1", "1e308", "123456789012345678901234567890", "NULL"]
AGGREGATES = ["SUM", "AVG", "MIN", "MAX", "MEDIAN", "STDDEV", "VARIANCE", "COUNT", "VAR_POP", "STDDEV_POP"]
OPERATORS = ["=", "<>", "<", "<=", ">", ">="]
ARITHMETIC = ["+", "-", "*", "/", "//", "%"]


def mutate_text(text: str, chance: random.Random) -> str:
    """Return a text with a few words deleted, doubled, exchanged, inserted or cut."""
    parts = WORD.findall(text)
    for _ in range(chance.randint(1, 4)):
        index = chance.randrange(len(parts)) if parts else 0
        kind = chance.randrange(6)
        if kind == 0 and parts:
            del parts[index]
        elif kind == 1 and parts:
            parts.insert(index, parts[index])
        elif kind == 2 and parts:
            other = chance.randrange(len(parts))
            parts[index], parts[other] = parts[other], parts[index]
        elif kind == 3:
            parts.insert(index, f" {chance.choice(WORDS)} ")
        elif kind == 4 and parts:
            parts[index] = f" {chance.choice(WORDS)} "
        elif parts:
            parts = parts[:index] if chance.random() < 0.5 else parts[index:]
    return "".join(parts)


def mutate_typed(text: str, columns: list[str], chance: random.Random) -> str:
    """Return a query with a column, number, operator, aggregate or clause exchanged for another of its kind."""
    for _ in range(chance.randint(1, 3)):
        kind = chance.randrange(8)
        if kind == 0:
            text = _exchange(text, r"\b(?:" + "|".join(columns) + r")\b", chance.choice(columns), chance)
        elif kind == 1:
            text = _exchange(text, r"(?<![\w'-])\d+(?:\.\d+)?(?![\w'-])", chance.choice(NUMBERS), chance)
        elif kind == 2:
            text = _exchange(text, r"(?<=\s)(?:=|<>|<=|>=|<|>)(?=\s)", chance.choice(OPERATORS), chance)
        elif kind == 3:
            text = _exchange(text, r"\b(?:" + "|".join(AGGREGATES) + r")(?=\()", chance.choice(AGGREGATES), chance)
        elif kind == 4:
            column, value = chance.choice(columns), chance.choice([*NUMBERS, "'north'", "DATE '2020-01-01'", "TRUE"])
            text = _exchange(text, r"(?<=WHERE )", f"{column} {chance.choice(OPERATORS)} {value} AND ", chance)
        elif kind == 5:
            text = _exchange(text, r"(?<=\s)[+*/-](?=\s)", chance.choice(ARITHMETIC), chance)
        elif kind == 6:
            text = (
                f"{text} {chance.choice(['ORDER BY 1', 'LIMIT 2', 'HAVING COUNT(*) > 3', 'OFFSET 1', 'QUALIFY TRUE'])}"
            )
        else:
            expression = chance.choice(
                [
                    f"{chance.choice(columns)} {chance.choice(ARITHMETIC)} {chance.choice(columns)}",
                    f"CASE WHEN {chance.choice(columns)} IS NULL THEN 1 END",
                    f"COALESCE({chance.choice(columns)}, 0)",
                    f"CAST({chance.choice(columns)} AS {chance.choice(['INTEGER', 'DATE', 'VARCHAR', 'BOOLEAN'])})",
                ]
            )
            text = _exchange(text, r"(?<=SELECT )", f"{chance.choice(AGGREGATES)}({expression}), ", chance)
    return text


def _exchange(text: str, pattern: str, new: str, chance: random.Random) -> str:
    matches = list(re.finditer(pattern, text))
    if not matches:
        return text
    match = chance.choice(matches)
    return text[: match.start()] + new + text[match.end() :]
