"""Several processes over one Postgres ledger: the ledger has the charges that clients saw, and tokens are shared."""

from __future__ import annotations

from fractions import Fraction

import pytest
from ledger.charges import verify_clean
from ledger.children import Child, signal_all
from service.paused_server import serve_postgres
from support.service import run_service

from tidegate.ledger.tokens import Tokens

MANY = 12


@pytest.mark.long  # ledger/test_concurrency.py has processes that share a ledger
def test_two_processes_share_one_postgres_ledger(postgres_url: str) -> None:
    """Both run the same queries and their own at once; each query is charged once, to one of them."""
    with run_service(postgres_url) as served:
        children = signal_all(
            [child for child in (Child(serve_postgres, postgres_url, 1000 * n, MANY) for n in (1, 2)) if child.hear()]
        )
        charged = [child.hear() for child in children]
        for child in children:
            child.kill()
        assert {status for item in charged for status, *_ in item} == {200}
        costs = sum((Fraction(cost) for item in charged for _, cost, *_ in item), Fraction(0))
        account = served.get("/v1/data/people").json()["account"]
        assert Fraction(account["spent"]) == costs
        shared = [{price: rows for _, _, price, rows in item if price >= 1_000_000} for item in charged]
        assert len(shared[0]) == MANY
        assert shared[0] == shared[1], "the same question has one answer, whichever process gave it"
        assert verify_clean(served.datasets.ledger).spent["people"].value == costs
        assert len(served.get("/v1/data/people/history?limit=1000").json()["questions"]) == 3 * MANY


def test_token_of_one_process_works_in_another_and_is_revoked_there(postgres_url: str) -> None:
    with run_service(postgres_url) as opened, run_service(postgres_url) as other:
        content = opened.post("/v1/tokens", {"role": "analyst", "name": "bob", "dataset": "people"}).json()
        headers = {"Authorization": f"Bearer {content['token']}"}
        assert other.client.get("/v1/me", headers=headers).json()["name"] == "bob"
        assert other.call("DELETE", f"/v1/tokens/{content['id']}", "owner").status_code == 200
        assert opened.client.get("/v1/me", headers=headers).status_code == 401
        signed = opened.client.post("/v1/sign-in", json={"token": opened.tokens["owner"]})
        cookie = {"Cookie": f"tidegate={signed.cookies['tidegate']}"}
        assert other.client.get("/v1/me", headers=cookie).json()["role"] == "owner"
        assert len(Tokens(other.datasets.ledger.store).all()) == 7
