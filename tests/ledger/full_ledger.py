"""A ledger with rows in every table: answers, release desks with all states of a request, a collection, a poll, a service."""

from __future__ import annotations

import contextlib
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from collect.invited import invited_report, poll_of, token_of
from collect.surveys import SHOPPERS, policy_of, reports
from ledger.charges import charge, charges
from ledger.requesters import TABLE
from support.people import people_policy

import tidegate as tg
from tidegate.collect.invitations import create_key
from tidegate.demo import soldiers
from tidegate.ledger import Ledger
from tidegate.ledger.diaries import hold_diary
from tidegate.ledger.jobs import Job, Jobs
from tidegate.ledger.library import Library
from tidegate.ledger.replies import Replies
from tidegate.ledger.schema import leases
from tidegate.ledger.sessions import Sessions, StoredSession
from tidegate.ledger.store import Store
from tidegate.ledger.tokens import StoredToken, Tokens, stamp
from tidegate.ledger.witness import configure
from tidegate.policy import Policy
from tidegate.release.result import Deferred

ENTRIES = 300  # so that a tile of the Merkle tree is complete
SOLDIERS = pa.table(soldiers.records())


def write_session(store: Store) -> None:
    """Fill the tables of sessions and links."""
    now = datetime.now(UTC)
    session = StoredSession("s", "t", "token", stamp(now), stamp(now), stamp(now + timedelta(days=1)))
    Sessions(store).start(session, user="ann")
    ann = Tokens(store).find("t")
    assert ann is not None
    Sessions(store).add_link("l", token=ann, expires=now + timedelta(minutes=15), user="olga")


def abandon_lease(store: Store) -> None:
    """Give the lease of a diary to another machine, which stops at once."""
    with store.writing() as connection:
        connection.execute(leases.update().values(owner="elsewhere/1/x"))


def write_everything(url: str, folder: Path) -> None:
    """Fill every table of a ledger; `folder` receives the reports."""
    with tg.open(people_policy(), table=TABLE, ledger=url) as session:
        session.answer(tg.count().by("sex"), epsilon="0.1", user="ann")
        session.answer([tg.count(), tg.mean("age")], epsilon="0.2", user="ben")
        session.answer(tg.count().by("sex"), epsilon="0.1", key="again", user="ben")
        for number in range(ENTRIES):
            charge(session.ledger, people_policy(), number, "1e-9")
        visitors = tg.Dataset("visitors", shares_persons_with=("people",))
        session.ledger.open_account(replace(people_policy(), dataset=visitors))
        unfinished = charges(session.ledger)[-1]
        with hold_diary(session.ledger.store, unfinished) as diary:
            diary.append('{"about":{}}', '{"table":0}', '{"table":1}')
            abandon_lease(session.ledger.store)
        configure(session.ledger.store, add=[str(folder.with_name("people.checkpoint"))])
    with tg.open(soldiers.policy(), table=SOLDIERS, ledger=url) as session:
        desk, names = session.release("headquarters"), random.Random(1).sample(soldiers.records()["name"], 300)
        for start in range(0, 300, 50):
            desk.request_many(names[start : start + 50])
        waiting = [name for name in names if isinstance(desk.status(name), Deferred)]
        desk.withdraw(waiting[0])
        Tokens(session.ledger.store).secret()
        Tokens(session.ledger.store).add(
            StoredToken("t", "salt", "hash", "analyst", "ann", "", "", "", "2026-01-01", "")
        )
        Library(session.ledger.store).add("people", "question", owner="ann", name="women", body="{}")
        Replies(session.ledger.store).begin("t", "key", "request")
        for number in range(3):
            token = StoredToken(
                f"r{number}", "salt", "hash", "respondent", "rosa", "soldiers", "key", "", "2026-01-01", ""
            )
            Tokens(session.ledger.store).add(token)
        Tokens(session.ledger.store).revoke("r0", user="olga")
        Tokens(session.ledger.store).note_uses(["t"], day="2026-01-02")
        write_session(session.ledger.store)
        Jobs(session.ledger.store).add(Job("j", "people", "ann", "key", "{}", "2026-01-01"))
    hidden = soldiers.hiding_policy(among=2, name="barracks")
    with tg.open(hidden, table=SOLDIERS, ledger=url) as session:
        session.open_release(sensitive=["L2"])
        session.release().request_many(names[:40], user="ann")
    shoppers = policy_of()
    shop = Policy(tg.Dataset("shop"), shoppers.attributes, collections=shoppers.collections)
    with tg.open(shop, ledger=url) as session:
        survey = session.collect(SHOPPERS.name, reports=str(folder))
        survey.submit(reports(0, 5))
        survey.submit(reports(5, 2))
        survey.receive(reports(7, 3))
    with contextlib.closing(Ledger(url)) as ledger:
        key = create_key(ledger, dataset="works", poll="canteen")
    canteen = poll_of(invitation_key=key)
    works = Policy(tg.Dataset("works"), policy_of(canteen).attributes, collections={canteen.name: canteen})
    with tg.open(works, ledger=url) as session:
        survey = session.collect(canteen.name, reports=str(folder))
        for number, code in enumerate(survey.invite(5)[:3]):
            survey.receive([invited_report(number, survey, token_of(survey, code))])
        survey.close()
