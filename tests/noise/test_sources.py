"""Sources of bits, and the absence of other randomness in the package."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import tidegate
from tidegate.noise import SecureBits, SeededBits
from tidegate.noise.bits import Words, below_any

PACKAGE = Path(tidegate.__file__).parent
RANDOM = ("random", "secrets", "numpy.random", "os.urandom", "os.getrandom", "uuid.uuid1", "uuid.uuid4", "ibis.random")


def names(source: str) -> set[str]:
    """Everything a module imports or reaches by dots, by its full name (`np.random.normal` is numpy.random.normal)."""
    short, full_names, attributes = {}, set(), []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            attributes.append(node)
        elif isinstance(node, ast.Import):
            full_names |= {alias.name for alias in node.names}
            short |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            full_names |= {f"{node.module}.{alias.name}" for alias in node.names}
            short |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return full_names | {dotted(node, short) for node in attributes}


def dotted(node: ast.expr, short: dict[str, str]) -> str:
    """Return the full name of `a.b.c`; what is reached through anything else than a name has no first part."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value, short)}.{node.attr}"
    return short.get(node.id, node.id) if isinstance(node, ast.Name) else ""


def randomness(source: str) -> set[str]:
    return {name for name in names(source) if name.startswith(tuple(f"{kind}." for kind in RANDOM)) or name in RANDOM}


def modules(*, in_noise: bool) -> list[Path]:
    return [path for path in PACKAGE.rglob("*.py") if path.is_relative_to(PACKAGE / "noise") == in_noise]


ELSEWHERE = {
    "operators/exact_draws.py": "the client's secure bits: noise/ needs numpy, a small device has none",
    "ledger/release_book.py": "salts of hashed keys, and nonces",
    "ledger/selection_book.py": "the nonce that hides the private list of groups in its entry",
    "ledger/chain.py": "secrets of a ledger, from the operating system",
    "ledger/file.py": "names of temporary files",
    "ledger/backup.py": "names of temporary files",
    "ledger/restore.py": "names of temporary files",
    "ledger/witness.py": "the signing key and the key of hashed addresses, from the operating system",
    "ledger/replies.py": "nonces of sealed replies, from the operating system",
    "ledger/retention.py": "a new secret of the service, from the operating system",
    "ledger/known_sources.py": "the key of the keyed hashes of sources",
    "ledger/source_states.py": "salts of the keyed hashes of sources",
    "tables/segments.py": "names of temporary files",
    "tables/snapshot.py": "the key of a snapshot's name",
    "synthesize/columns.py": "a value within a released cell, under a public seed",
    "answer/sql/cells.py": "noise drawn again around released numbers, for an interval",
    "answer/sql/statement.py": "the same",
    "collect/reconstruct/bands.py": "draws of a posterior under a fixed seed: an estimate, no protection",
    "collect/baskets/screening.py": "a fixed sample of rules that are compared: an estimate, no protection",
    "collect/trees/training.py": "a fixed split of randomized reports: an estimate, no protection",
    "papers/src/tidegate_papers/valuation/games.py": "orders of players, from a generator that the caller gives",
    "synthesize/mechanisms/forest/first_pool.py": "the same, for tables of forest/1",
    "synthesize/mechanisms/forest/pool.py": "rows drawn from what is already released, under a public seed",
    "papers/src/tidegate_papers/baselines/rounds.py": "candidates, laid out by a public seed before a row is read",
    "papers/src/tidegate_papers/baselines/fits.py": "the same",
    "papers/src/tidegate_papers/baselines/regressions.py": "rows drawn from what is already released, under a public seed",
    "papers/src/tidegate_papers/baselines/copula.py": "the same",
    "synthesize/quality/separation.py": "the rows that a measure for the data holder samples",
    "synthesize/quality/utility.py": "the same, and random queries under a public seed",
    "risk/cart.py": "tables of simulated rows: the distribution under the null hypothesis",
    "answer/mechanisms/regression.py": "the error of an answer, simulated from released values",
    "collect/baskets/bitsets.py": "names of chunks",
    "ledger/tokens.py": "names and salts of tokens",
    "ledger/library.py": "names of saved questions and dashboards",
    "service/access/tokens.py": "secrets of tokens, from the operating system",
    "service/access/callers.py": "a key for this process's memory of callers",
    "service/access/sessions.py": "secrets of sign-ins, from the operating system",
    "service/access/links.py": "secrets of one-time links, from the operating system",
    "service/access/provider.py": "state, nonce and verifier of a sign-in at a provider, and nonces of encryption, from the operating system",
    "service/jobs.py": "names of jobs",
    "service/runner.py": "names of processes that run jobs",
    "ledger/diaries.py": "names of processes that continue a synthesis",
    "service/drafts/sources.py": "names of uploaded files",
    "service/drafts/store.py": "names of drafts",
    "service/drafts/synthesis.py": "generated rows that follow from the policy alone; no row is read",
    "service/middleware.py": "names of requests, for the log",
    "session/remote.py": "idempotency keys of requests",
    "testing/release_tests.py": "simulated requests, under a fixed seed",
}
SIMULATED = ("audit/", "reproduce/")  # simulated worlds without real people


def test_randomness_outside_noise_is_listed_with_a_reason() -> None:
    randomness_by_path = {
        str(path.relative_to(PACKAGE)): randomness(path.read_text("utf-8")) for path in modules(in_noise=False)
    }
    assert len(randomness_by_path) > 20  # the scan has seen the package
    random = {path: kinds for path, kinds in randomness_by_path.items() if kinds and not path.startswith(SIMULATED)}
    assert random.keys() <= ELSEWHERE.keys()
    secure = {path for path, kinds in random.items() if kinds <= {"os.urandom", "secrets", "secrets.token_hex"}}
    assert {"operators/exact_draws.py", "ledger/release_book.py"} <= secure  # these protect people


def test_only_bits_are_random_inside_noise() -> None:
    randomness_by_name = {path.name: randomness(path.read_text("utf-8")) for path in modules(in_noise=True)}
    assert {path: kinds for path, kinds in randomness_by_name.items() if kinds} == {"bits.py": {"os.urandom"}}


@pytest.mark.parametrize(
    "source",
    [
        "import random",
        "import random as r",
        "from random import gauss",
        "import secrets",
        "from secrets import token_bytes",
        "import os\nos.urandom(8)",
        "from os import urandom",
        "import os as system\nsystem.urandom(8)",
        "import numpy.random",
        "import numpy.random as draws",
        "from numpy.random import default_rng",
        "from numpy import random",
        "import numpy as np\nnp.random.laplace(0, 1)",
        "import numpy\ndef f():\n    return numpy.random.default_rng()",
        "import ibis\nt = t.order_by(ibis.random())",
        "import uuid\nentry = uuid.uuid4()",
    ],
)
def test_scan_detects_randomness(source: str) -> None:
    assert randomness(source)


@pytest.mark.parametrize("source", ["import numpy as np\nnp.array", "text = 'import random'", "table.random_column"])
def test_scan_ignores_other_code(source: str) -> None:
    assert not randomness(source)


@pytest.mark.parametrize("bits", [SecureBits(), SeededBits(7)], ids=["secure", "seeded"])
@pytest.mark.parametrize("count", [0, 1, 1000])
def test_source_returns_the_requested_number_of_words(bits: SecureBits | SeededBits, count: int) -> None:
    words = bits.words(count)
    assert words.shape == (count,)
    assert words.dtype == np.uint64


@pytest.mark.parametrize("bits", [SecureBits(), SeededBits(7)], ids=["secure", "seeded"])
def test_words_never_repeat(bits: SecureBits | SeededBits) -> None:
    words = np.concatenate([bits.words(100) for _ in range(10)])
    assert np.unique(words).size == 1000  # two of 1,000 fair words agree once in 3e13 runs


def test_secure_sources_never_agree() -> None:
    assert not np.isin(SecureBits().words(100), SecureBits().words(100)).any()


@pytest.mark.parametrize("bits", [SecureBits(), SeededBits(7)], ids=["secure", "seeded"])
def test_source_uses_every_bit_of_a_word(bits: SecureBits | SeededBits) -> None:
    words = bits.words(1000)  # a bit stays the same over all of them once in 1e299 runs
    assert np.bitwise_or.reduce(words) == np.uint64(2**64 - 1)
    assert np.bitwise_and.reduce(words) == 0


def test_seed_determines_the_words() -> None:
    first, again, other = (SeededBits(seed) for seed in ("a", "a", "b"))
    for count in (5, 1, 300):
        words = first.words(count)
        assert (words == again.words(count)).all()
        assert not np.isin(words, other.words(count)).any()


class CountedWords:
    """Bits whose words are listed, one after the other."""

    def __init__(self, *words: int) -> None:
        self.left = [*words]

    def words(self, count: int) -> Words:
        taken, self.left = self.left[:count], self.left[count:]
        return np.array(taken, np.uint64)


@pytest.mark.parametrize("bound", [2**62 + 1, 2**64, 2**64 + 1, 2**80 - 3, 2**128])
def test_integer_below_a_large_bound_has_its_first_bits_and_is_drawn_again_above_it(bound: int) -> None:
    width = (bound - 1).bit_length()
    count = -(-width // 64)
    high = [2**64 - 1] * count  # the largest number of this width: too large, unless the bound is a power of two
    source = CountedWords(*high, *range(1, 2 * count))
    if bound == 2**width:
        assert below_any(bound, bits=source) == bound - 1
    else:
        joined = sum(word << 64 * (count - 1 - index) for index, word in enumerate(range(1, count + 1)))
        assert below_any(bound, bits=source) == joined >> (64 * count - width)
