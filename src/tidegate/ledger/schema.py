"""The tables of the ledger, the same on SQLite and Postgres. Only migrations create or change them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Index, Integer, LargeBinary, MetaData, Table, Text, text

REVISION = "0021"

TEXTS = (
    "at",
    "account",
    "kind",
    "policy",
    "request",
    "question",
    "amount",
    "spent",
    "ceiling",
    "body",
    "previous",
    "hash",
)

metadata = MetaData()
LIVE = text("state <> 'withdrawn'")

entries = Table(
    "tidegate_entries",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    *(Column(name, Text, nullable=False) for name in TEXTS),
    Index("tidegate_entries_account", "account", "number"),
    Index("tidegate_entries_question", "account", "question"),
    # one charge and one result for a request, also under concurrent writes
    Index("tidegate_entries_request", "account", "kind", "request", unique=True),
)

results = Table(
    "tidegate_results",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),  # of the entry that recorded it
    Column("payload", Text, nullable=False),
)

# The Merkle tree over the entries: hashes of complete subtrees with 2**level leaves. They follow from the entries.
tiles = Table(
    "tidegate_tiles",
    metadata,
    Column("level", Integer, primary_key=True, autoincrement=False),  # 8, 16, 24, ...
    Column("index", BigInteger, primary_key=True, autoincrement=False),
    Column("hash", Text, nullable=False),
)

# Where signed checkpoints go. An address can contain a password; entries hold a keyed hash of it.
witnesses = Table("tidegate_witnesses", metadata, Column("address", Text, primary_key=True))

# Requests for records. The record of somebody who waits is in here as well, so this database is as private as the data.
requests = Table(
    "tidegate_requests",
    metadata,
    Column("account", Text, primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("key", Text, nullable=False),  # HMAC of the record's key
    Column("cells", Text, nullable=False),  # its cell under each promise
    Column("state", Text, nullable=False),  # waiting, released, withheld, withdrawn
    Column("place", BigInteger),  # in the order of release
    Column("entry", Integer, nullable=False),  # the entry that brought it into this state
    Column("record", Text, nullable=False),  # what leaves; empty once withdrawn
    Column("nonce", Text, nullable=False),  # hides in the entry what somebody who waits would say
    Index("tidegate_requests_entry", "account", "entry"),
    Index("tidegate_requests_state", "account", "state", "number"),
    Index("tidegate_requests_place", "account", "place"),
    # no record waits or is released twice, also under concurrent writes; in Postgres the condition is in migration 0002 only,
    # because naming it here would load that dialect in every command
    Index("tidegate_requests_key", "account", "key", unique=True, sqlite_where=LIVE),
)

# Records of a hiding promise: everyone who was in the table when its selection opened, with their cell. As private as the data.
selection = Table(
    "tidegate_selection",
    metadata,
    Column("account", Text, primary_key=True),
    Column("key", Text, primary_key=True),  # HMAC of the record's key
    Column("epoch", Integer, nullable=False),
    Column("cell", BigInteger, nullable=False),  # group * values + value
    Column("digest", Text, nullable=False),  # HMAC of the record if it was chosen for release; empty if not
    sqlite_with_rowid=False,
)

secrets = Table(
    "tidegate_secrets",
    metadata,
    Column("account", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

# Totals by name. They follow from the entries, are written in the transaction of the charge, and `verify` adds them up again.
shares = Table(
    "tidegate_shares",
    metadata,
    Column("account", Text, primary_key=True),
    Column("who", Text, primary_key=True),
    Column("spent", Text, nullable=False),
)

# Totals and limits of each account in all units, as exact text; empty: unbounded, or no limit. They follow from the entries.
totals = Table(
    "tidegate_totals",
    metadata,
    Column("account", Text, primary_key=True),
    *(Column(name, Text, nullable=False) for name in ("pure", "zcdp", "z", "pure_ceiling", "z_ceiling")),
)

# Accounts that share persons, from the latest policy of each account: their charges are added up.
partners = Table(
    "tidegate_partners",
    metadata,
    Column("account", Text, primary_key=True),
    Column("partner", Text, primary_key=True),
)

# The answer with the least noise to each question that others can follow from, so that a preview reads no other entries.
sources = Table(
    "tidegate_sources",
    metadata,
    Column("account", Text, primary_key=True),
    Column("name", Text, primary_key=True),  # SHA-256 of the question
    Column("charge", Integer, nullable=False),  # the entry that was charged
    Column("result", Integer, nullable=False),  # the entry that recorded the result
    Column("part", Integer, nullable=False),  # which of the questions that were charged together
    Column("noise", Float, nullable=False),
    Column("folds", Integer, nullable=False),  # 1: a count of all rows, from which other counts can be folded
    Index("tidegate_sources_result", "account", "folds", "result"),
)

# Collections. Only counts of randomized reports, and the random ids of those that were taken: no identity, no time.
counts = Table(
    "tidegate_counts",
    metadata,
    Column("opened", Integer, primary_key=True, autoincrement=False),  # the entry that opened this version
    Column("question", Text, primary_key=True),
    Column("reports", BigInteger, nullable=False),
    Column("counts", LargeBinary, nullable=False),  # 64-bit little-endian integers
)

report_ids = Table(
    "tidegate_report_ids",
    metadata,
    Column("opened", Integer, primary_key=True, autoincrement=False),
    Column("id", LargeBinary, primary_key=True),  # a report is accepted once, also under concurrent writes
    sqlite_with_rowid=False,
)

# States of the accounts' sources, under keyed hashes. Entries hold the number only.
source_states = Table(
    "tidegate_source_states",
    metadata,
    Column("account", Text, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("salt", Text, nullable=False),
    Column("identity", Text, nullable=False),  # HMAC of the content
    Column("stamp", Text, nullable=False),  # HMAC of what is compared first: sizes and times of files
)

# Sources that have an account. Locations, contents and stamps are HMACs; the registry of a user has the same table.
known_sources = Table(
    "tidegate_known_sources",
    metadata,
    Column("location", Text, primary_key=True),
    Column("account", Text, primary_key=True),
    Column("ledger", Text, primary_key=True),  # the hash of its first entry, so that it can be moved
    Column("content", Text, nullable=False),
    Column("stamp", Text, nullable=False),
    Column("address", Text, nullable=False),  # the file of the ledger; empty for a database
)

# Reports that were received and are not yet counted. No time, no sequence, no address: ids are keyed hashes, so that the
# order of the key is no order of arrival.
waiting = Table(
    "tidegate_waiting",
    metadata,
    Column("collection", Text, primary_key=True),  # account and version
    Column("id", LargeBinary, primary_key=True),
    Column("body", Text, nullable=False),  # the randomized answers, as canonical JSON
    sqlite_with_rowid=False,
)

# Invitations. `key` is the name of the signing key. A code is stored as its hash, and with the blinded message that it was
# used for; a token is stored as the hash of its nonce. Nothing relates the two: the blinded message hides the nonce.
invitations = Table(
    "tidegate_invitations",
    metadata,
    Column("key", Text, primary_key=True),
    Column("code", LargeBinary, primary_key=True),  # SHA-256 of the code
    Column("blinded", LargeBinary, nullable=False),  # SHA-256 of the blinded message; empty while the code is unused
    Column("signature", LargeBinary, nullable=False),  # the blind signature; empty while the code is unused
    sqlite_with_rowid=False,
)

spent_tokens = Table(
    "tidegate_spent_tokens",
    metadata,
    Column("key", Text, primary_key=True),
    Column("nonce", LargeBinary, primary_key=True),  # SHA-256: a token is accepted once, also under concurrent writes
    Column("entry", Integer, nullable=False),  # the batch of its report; 0 while the report waits
    sqlite_with_rowid=False,
)

# What an unfinished synthesis has learned, line by line: numbers with noise that were paid for, and not shown to anyone yet.
diaries = Table(
    "tidegate_diaries",
    metadata,
    Column("charge", Integer, primary_key=True, autoincrement=False),  # the entry that was charged
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("body", Text, nullable=False),
    Column("hash", Text, nullable=False),  # of this line and all before it, from the hash of the charge on
)

# The process that continues an unfinished synthesis. A line is written by its owner only.
leases = Table(
    "tidegate_leases",
    metadata,
    Column("charge", Integer, primary_key=True, autoincrement=False),
    Column("owner", Text, nullable=False),
    Column("beat", Float, nullable=False),  # the last sign of life, in seconds of the epoch by the database's clock
)

# The service. A row is the access of one user: by a token, which is kept as its slow hash only, by an identity of a provider,
# or by one-time links alone. Every change has an entry. Times are UTC in ISO form, and empty where there is none.
tokens = Table(
    "tidegate_tokens",
    metadata,
    Column("id", Text, primary_key=True),
    Column("salt", Text, nullable=False),
    Column("hash", Text, nullable=False),  # scrypt of the secret; empty: there is no token to send
    Column("role", Text, nullable=False),
    Column("name", Text, nullable=False),  # `who` in the entries
    Column("dataset", Text, nullable=False),  # names with commas between them; empty: all that are served
    Column("record", Text, nullable=False),  # of a respondent: HMAC of data set and key
    Column("share", Text, nullable=False),  # of an analyst: the most that this name may spend, exactly
    Column("made", Text, nullable=False),
    Column("expires", Text, nullable=False),
    Column("revoked", Text, nullable=False),
    Column("maker", Text, nullable=False, server_default=text("''")),  # the user who created it
    Column(
        "identity", Text, nullable=False, server_default=text("''")
    ),  # issuer and subject, with a space between them
)

signins = Table(
    "tidegate_signins",
    metadata,
    Column("id", Text, primary_key=True),  # SHA-256 of what the cookie holds
    Column("token", Text, nullable=False),
    Column("method", Text, nullable=False),  # token, link, oidc
    Column("started", Text, nullable=False),
    Column("seen", Text, nullable=False),  # the last request; written now and then
    Column("expires", Text, nullable=False),
    Column("renew", Text, nullable=False),  # when the provider is asked again; empty: never
    Column("lapse", Text, nullable=False),  # when the session ends if the provider did not answer
    Column("sealed", Text, nullable=False),  # the provider's tokens, encrypted with what the cookie holds
)

links = Table(
    "tidegate_links",
    metadata,
    Column("id", Text, primary_key=True),  # SHA-256 of the link's secret; deleted by its use
    Column("token", Text, nullable=False),
    Column("expires", Text, nullable=False),
)

token_uses = Table(
    "tidegate_token_uses",
    metadata,
    Column("token", Text, primary_key=True),
    Column("day", Text, nullable=False),  # of the last use
)

# Replies to requests with an idempotency key, for a day.
replies = Table(
    "tidegate_replies",
    metadata,
    Column("id", Text, primary_key=True),  # SHA-256 of the token's id and the key
    Column("request", Text, nullable=False),  # SHA-256 of address and body
    Column("at", Float, nullable=False),  # seconds of the epoch
    Column("status", Integer, nullable=False),  # 0: the request is running
    Column("content", LargeBinary, nullable=False),  # sealed under the key
)

# Rate limits of a service on Postgres, shared by its processes. Names are keyed hashes; the table is not logged.
limits = Table(
    "tidegate_limits",
    metadata,
    Column("name", Text, primary_key=True),
    Column("level", Float, nullable=False),  # requests that were available at `at`
    Column("at", Float, nullable=False),  # seconds of the epoch, by the database's clock
    Column("granted", Integer, nullable=False),  # to the last process that took some
)

jobs = Table(
    "tidegate_jobs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("dataset", Text, nullable=False),
    Column("who", Text, nullable=False),
    Column("request", Text, nullable=False),  # idempotency key
    Column("wanted", Text, nullable=False),
    Column("state", Text, nullable=False),  # waiting, running, done, failed, cancelled
    Column("stage", Text, nullable=False),
    Column("problem", Text, nullable=False),
    Column("entry", Text, nullable=False),
    Column("made", Text, nullable=False),
    Column("worker", Text, nullable=False),  # the process at work
    Column("done", BigInteger, nullable=False),
    Column("of", BigInteger, nullable=False),
    Column("beat", Float, nullable=False),  # when the worker last said so, in seconds of the epoch
    Column("kind", Text, nullable=False, server_default="synthesis"),  # synthesis, audit
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("report", Text, nullable=False, server_default=text("''")),  # of an audit that is done
    Index("tidegate_jobs_request", "dataset", "request", unique=True),
    Index("tidegate_jobs_state", "state", "made"),
)

# Saved questions and dashboards. A body is canonical JSON: a request, or the ids of a dashboard's questions.
library = Table(
    "tidegate_library",
    metadata,
    Column("id", Text, primary_key=True),
    Column("dataset", Text, nullable=False),
    Column("kind", Text, nullable=False),  # question, dashboard
    Column("owner", Text, nullable=False),  # `who` in the entries
    Column("name", Text, nullable=False),
    Column("shared", Integer, nullable=False),  # 1: with everybody who can query the data set
    Column("body", Text, nullable=False),
    Column("made", Text, nullable=False),
    Column("changed", Text, nullable=False),
    Index("tidegate_library_name", "dataset", "kind", "owner", "name", unique=True),
)
