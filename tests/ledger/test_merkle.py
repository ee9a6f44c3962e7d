"""The Merkle tree over the entries: published test vectors, a reference implementation, and an independent library."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger.charges import charge
from support.people import people_policy

from tidegate.ledger import Ledger, merkle
from tidegate.ledger.merkle import Frontier, leaf_hash, node_hash

# Test vectors of the Certificate Transparency reference code (google/certificate-transparency, merkletree_test.cc; the same
# in transparency-dev/merkle): eight leaves, the root after each, and some proofs.
LEAVES = [
    *("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"),
]
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
INCLUSION = [  # leaf, size, proof
    (0, 1, []),
    (
        0,
        8,
        [
            "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
            "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
            "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
        ],
    ),
    (
        5,
        8,
        [
            "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
            "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        ],
    ),
    (2, 3, ["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"]),
    (
        1,
        5,
        [
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
            "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
            "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        ],
    ),
]
CONSISTENCY = [  # sizes, proof
    (1, 1, []),
    (
        1,
        8,
        [
            "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
            "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
            "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
        ],
    ),
    (
        6,
        8,
        [
            "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
            "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        ],
    ),
    (
        2,
        5,
        [
            "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
            "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        ],
    ),
]


class Nodes:
    """The nodes of a tree in memory."""

    def __init__(self, leaves: list[bytes]) -> None:
        self.leaves = leaves

    def __call__(self, level: int, index: int) -> bytes:
        return reference_root(self.leaves[index << level : (index + 1) << level])


def reference_root(leaves: list[bytes]) -> bytes:
    """Return the root by the definition in RFC 6962, section 2.1."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return hashlib.sha256(b"\0" + leaves[0]).digest()
    left = 1
    while 2 * left < len(leaves):
        left *= 2
    return hashlib.sha256(b"\1" + reference_root(leaves[:left]) + reference_root(leaves[left:])).digest()


def published() -> list[bytes]:
    return [bytes.fromhex(leaf) for leaf in LEAVES]


def test_published_roots() -> None:
    frontier = Frontier()
    assert frontier.root == merkle.root(0, Nodes([])) == hashlib.sha256(b"").digest()
    for size, (leaf, expected) in enumerate(zip(published(), ROOTS, strict=True), 1):
        frontier.add(leaf)
        assert frontier.root.hex() == merkle.root(size, Nodes(published())).hex() == expected


@pytest.mark.parametrize(("index", "size"), [(-1, 4), (4, 4), (5, 4), (0, 0)])
def test_leaf_outside_the_tree_has_no_proof(index: int, size: int) -> None:
    with pytest.raises(ValueError, match="not in the tree"):
        merkle.inclusion_proof(index, size, Nodes(published()))


@pytest.mark.parametrize(("first", "size"), [(0, 4), (-1, 4), (5, 4)])
def test_tree_that_is_no_part_of_another_has_no_proof(first: int, size: int) -> None:
    with pytest.raises(ValueError, match="not a part"):
        merkle.consistency_proof(first, size, Nodes(published()))


@pytest.mark.parametrize(("index", "size", "expected"), INCLUSION)
def test_published_inclusion_proofs(index: int, size: int, expected: list[str]) -> None:
    proof = merkle.inclusion_proof(index, size, Nodes(published()))
    assert [hashed.hex() for hashed in proof] == expected
    assert merkle.verify_inclusion(published()[index], index, size, proof, bytes.fromhex(ROOTS[size - 1]))


@pytest.mark.parametrize(("first", "size", "expected"), CONSISTENCY)
def test_published_consistency_proofs(first: int, size: int, expected: list[str]) -> None:
    proof = merkle.consistency_proof(first, size, Nodes(published()))
    assert [hashed.hex() for hashed in proof] == expected
    roots = bytes.fromhex(ROOTS[first - 1]), bytes.fromhex(ROOTS[size - 1])
    assert merkle.verify_consistency(first, size, proof, *roots)


@given(st.integers(1, 70), st.data())
def test_proofs_hold_for_the_right_leaf_and_no_other(size: int, data: st.DataObject) -> None:
    leaves = [bytes([number]) * 32 for number in range(size)]
    index, other = data.draw(st.integers(0, size - 1)), data.draw(st.integers(0, size - 1))
    root, proof = reference_root(leaves), merkle.inclusion_proof(index, size, Nodes(leaves))
    assert merkle.verify_inclusion(leaves[index], index, size, proof, root)
    assert merkle.verify_inclusion(leaves[other], index, size, proof, root) == (other == index)
    assert merkle.verify_inclusion(leaves[index], other, size, proof, root) == (other == index)
    assert not merkle.verify_inclusion(leaves[index], index, size, [*proof, root], root)
    assert not merkle.verify_inclusion(leaves[index], index, size, proof, leaf_hash(root))
    if proof:
        assert not merkle.verify_inclusion(leaves[index], index, size, proof[:-1], root)
        changed = [*proof[:-1], leaf_hash(proof[-1])]
        assert not merkle.verify_inclusion(leaves[index], index, size, changed, root)


@given(st.integers(1, 70), st.data())
def test_growth_is_proven_and_a_rewritten_beginning_is_not(size: int, data: st.DataObject) -> None:
    leaves = [bytes([number]) * 32 for number in range(size)]
    first = data.draw(st.integers(1, size))
    proof, root = merkle.consistency_proof(first, size, Nodes(leaves)), reference_root(leaves)
    assert merkle.verify_consistency(first, size, proof, reference_root(leaves[:first]), root)
    rewritten = [*leaves[: first - 1], b"other"]
    assert not merkle.verify_consistency(first, size, proof, reference_root(rewritten), root)
    assert not merkle.verify_consistency(first, size, proof, reference_root(leaves[:first]), leaf_hash(root))
    assert not merkle.verify_consistency(first, size, [*proof, root], reference_root(leaves[:first]), root)


@given(st.integers(1, 600))
def test_tiles_are_the_roots_of_256_leaves(size: int) -> None:
    frontier, tiles = Frontier(), list[tuple[int, int, bytes]]()
    leaves = [number.to_bytes(32, "big") for number in range(size)]
    for leaf in leaves:
        tiles += frontier.add(leaf)
    assert tiles == [(8, n, reference_root(leaves[256 * n : 256 * n + 256])) for n in range(size // 256)]
    assert frontier.root == reference_root(leaves)


def fill(ledger: Ledger, charges: int) -> None:
    policy = people_policy()
    ledger.open_account(policy)
    for number in range(charges):
        charge(ledger, policy, number, "1e-6")


@pytest.mark.parametrize("store", ["SQLite", "Postgres"])
def test_root_of_a_ledger_follows_from_tiles_and_latest_entries(
    store: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = str(tmp_path / "a.ledger") if store == "SQLite" else request.getfixturevalue("postgres_url")
    ledger = Ledger(url)
    fill(ledger, 530)
    leaves = [bytes.fromhex(entry.hash) for entry in ledger.entries()]
    with ledger.store.reading() as connection:
        nodes = merkle.Nodes(connection)
        for size in (1, 255, 256, 257, 511, 512, 513, len(leaves)):
            assert merkle.root(size, nodes) == reference_root(leaves[:size])
            proof = merkle.inclusion_proof(size - 1, len(leaves), nodes)
            assert merkle.verify_inclusion(leaves[size - 1], size - 1, len(leaves), proof, reference_root(leaves))
        assert len(nodes._rows) <= 4
    assert ledger.verify().problems == []
    ledger.close()


def test_tree_of_a_ledger_without_entry_0_starts_with_an_empty_leaf(tmp_path: Path) -> None:
    """Ledgers of earlier versions start with entry 1."""
    ledger = Ledger(str(tmp_path / "a.ledger"))
    fill(ledger, 3)
    hashes = [bytes.fromhex(entry.hash) for entry in ledger.entries()]
    with ledger.store.writing() as connection:
        connection.exec_driver_sql("DELETE FROM tidegate_entries WHERE number = 0")
        expected = reference_root([bytes(32), *hashes[1:]])
        assert merkle.root(len(hashes), merkle.Nodes(connection)) == expected
    ledger.close()


def test_pymerkle_accepts_our_roots_and_proofs() -> None:
    """pymerkle is an independent implementation of the same tree. Its consistency proofs have another form than the RFC's."""
    library: Any = pytest.importorskip("pymerkle")
    tree = library.InmemoryTree(algorithm="sha256")
    leaves = [bytes([number]) * 32 for number in range(23)]
    for leaf in leaves:
        tree.append_entry(leaf)
    roots = [merkle.root(size, Nodes(leaves)) for size in range(len(leaves) + 1)]
    for size in range(1, len(leaves) + 1):
        for index in range(size):
            proof = tree.prove_inclusion(index + 1, size)
            proof.path = [leaf_hash(leaves[index]), *merkle.inclusion_proof(index, size, Nodes(leaves))]
            library.verify_inclusion(leaf_hash(leaves[index]), roots[size], proof)
        for first in range(1, size + 1):
            library.verify_consistency(roots[first], roots[size], tree.prove_consistency(first, size))


def test_node_and_leaf_hashes_are_separate() -> None:
    assert leaf_hash(bytes(64)) != node_hash(bytes(32), bytes(32))
