"""Sign-in, sign-out, the current user, tokens, links, sessions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import Path, Request, Response
from pydantic import ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from tidegate.errors import NotAllowed, NotSignedIn, NotThere, Unsupported
from tidegate.ledger.sessions import SHOWN, Sessions
from tidegate.ledger.tokens import StoredToken, Tokens, stamp
from tidegate.service.access.callers import Caller, caller_of
from tidegate.service.access.csrf import csrf_of
from tidegate.service.access.guard import PROBLEM, address_of
from tidegate.service.access.links import is_link, make_link, use_link
from tidegate.service.access.sessions import hash_cookie, new_session, set_cookie
from tidegate.service.access.sessions import sign_out as end
from tidegate.service.access.tokens import make_token, token_to_dict
from tidegate.service.errors import DESCRIPTIONS, PROBLEM_TYPE
from tidegate.service.models.access import (
    CreatedLink,
    CreatedToken,
    EndedSession,
    Me,
    SessionPage,
    SignedOut,
    TokenPage,
    TokenView,
)
from tidegate.service.pagination import Cursor, Limit, link_next, page_after
from tidegate.service.routes.dependencies import NAMED, CurrentCaller, Described, Form, router
from tidegate.service.settings import Settings, service_url
from tidegate.web.snippets.ledger import token_code

routes = router()
UNKNOWN_TOKEN: Any = {404: {"description": DESCRIPTIONS[404], "content": {PROBLEM_TYPE: {"schema": PROBLEM}}}}


class SignIn(Form):
    model_config = ConfigDict(json_schema_extra={"example": {"token": "tg_0123456789abcdef_..."}})
    token: str = Field(max_length=200, description="A token, or the secret of a one-time link (tgl_...).")


class NewToken(Form):
    model_config = ConfigDict(
        json_schema_extra={"example": {"role": "analyst", "name": "ana", "dataset": "people", "share": "0.5"}}
    )
    role: Literal["owner", "analyst", "respondent"]
    name: str = Field(min_length=1, max_length=63, description="The user's name, recorded in every ledger entry.")
    dataset: str = Field("", pattern=f"{NAMED}|^$", description="The data set; empty for all data sets of the service.")
    record: str = Field("", max_length=1000, description="The key of the record, for a respondent.")
    share: str = Field(
        "",
        pattern=r"^(\d{1,6}(\.\d{1,30})?)?$",
        description="The budget share, for an analyst: the most to spend in total, in the unit of the account.",
    )
    days: float = Field(90, gt=0, le=3660, description="Days until the token expires.")


class NewLink(Form):
    """A link for the user of a token (by its id), or for a new user."""

    model_config = ConfigDict(json_schema_extra={"example": {"token": "0123456789abcdef"}})
    token: str = Field(
        "", pattern=r"^([0-9a-f]{16})?$", description="The id of the user's token; empty for a new user."
    )
    user: NewToken | None = Field(None, description="The access of a new user, who gets no token.")


@routes.post("/sign-in", response_model=Me)
async def sign_in(request: Request, response: Response, body: SignIn) -> Described:
    caller, cookie = await begin_session(request, response, body.token)
    return {**_me(caller), "csrf": csrf_of(cookie)}


async def begin_session(request: Request, response: Response, credential: str) -> tuple[Caller, str]:
    """Sign in with a token or the secret of a link; return the caller and the cookie that was set on the response."""
    settings: Settings = request.app.state.settings
    if is_link(credential):
        caller, cookie = await run_in_threadpool(_begin_with_link, request, credential)
    else:
        caller = await request.app.state.guard.by_token(credential, address=address_of(request))
        request.app.state.sign_in_limits.take(caller.token)
        cookie, session = new_session(caller.token, method="token", hours=settings.sign_in_hours)
        await run_in_threadpool(_sessions(request).start, session, user=caller.name)
    set_cookie(response, cookie, settings)
    return caller, cookie


def _begin_with_link(request: Request, secret: str) -> tuple[Caller, str]:
    try:
        cookie, token = use_link(_sessions(request), secret, hours=request.app.state.settings.sign_in_hours)
    except NotSignedIn:
        request.app.state.guard.callers.activity.refuse("link", address=address_of(request))
        raise
    return caller_of(token), cookie


@routes.post("/sign-out", response_model=SignedOut)
def sign_out(request: Request, response: Response, caller: CurrentCaller) -> Described:
    callers, oidc, elsewhere = request.app.state.guard.callers, request.app.state.oidc, ""
    if caller.cookie:
        session = callers.sessions.find(hash_cookie(caller.cookie))
        if oidc is not None and session is not None and session.method == "oidc":
            elsewhere = oidc.sign_out_url(caller.cookie, session, f"{service_url(request)}/console/sign-in")
        end(callers.sessions, caller.cookie, response, request.app.state.settings)
        callers.forget()
    return {"signed_in": False, "next": elsewhere or None}


@routes.get("/me", response_model=Me)
async def me(caller: CurrentCaller) -> Described:
    return {**_me(caller), **({"csrf": csrf_of(caller.cookie)} if caller.cookie else {})}


@routes.get("/tokens", response_model=TokenPage)
def list_tokens(
    request: Request, response: Response, caller: CurrentCaller, cursor: Cursor = "", limit: Limit = 100
) -> Described:
    shown, following = page_after(visible_tokens(request, caller), cursor, limit, lambda token: token["id"], "tokens")
    return {"tokens": shown, "next": link_next(request, response, following)}


def visible_tokens(request: Request, caller: Caller) -> list[Described]:
    """Return all tokens that an owner can see, without their secrets."""
    visible, uses = (
        [token for token in _tokens(request).all() if _can_see(caller, token.dataset)],
        _tokens(request).uses(),
    )
    return [token_to_dict(token, used=uses.get(token.id, "")) for token in visible]


@routes.post("/tokens", status_code=201, response_model=CreatedToken)
def add_token(request: Request, caller: CurrentCaller, new: NewToken) -> Described:
    text, token = _add_token(request, caller, new, is_sent=True)
    policy = new.dataset or caller.dataset or next(iter(request.app.state.datasets), "people")
    code = token_code(new.model_dump(), address=service_url(request), policy=policy)
    return {"token": text, **token_to_dict(token), "code": code}


def _add_token(request: Request, caller: Caller, new: NewToken, *, is_sent: bool) -> tuple[str, StoredToken]:
    if not _can_see(caller, new.dataset):
        raise NotAllowed("Your token is for one data set, so it can create tokens for that data set only.")
    if new.dataset and new.dataset not in request.app.state.datasets:
        raise Unsupported("This service has no data set of that name.")
    return make_token(_tokens(request), **new.model_dump(), maker=caller.name, is_sent=is_sent)


@routes.delete("/tokens/{token}", response_model=TokenView)
def revoke_token(
    request: Request, caller: CurrentCaller, token: Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")]
) -> Described:
    stored = _find_token(request, caller, token)
    _tokens(request).revoke(token, user=caller.name)
    request.app.state.guard.callers.forget()
    return token_to_dict(_tokens(request).find(token) or stored)


def _find_token(request: Request, caller: Caller, token: str) -> StoredToken:
    stored = _tokens(request).find(token)
    if stored is None or not _can_see(caller, stored.dataset):
        raise NotThere("There is no token with this id.")
    return stored


@routes.post("/links", status_code=201, response_model=CreatedLink, responses=UNKNOWN_TOKEN)
def add_link(request: Request, caller: CurrentCaller, new: NewLink) -> Described:
    if bool(new.token) == (new.user is not None):
        raise Unsupported("A link needs either `token`, the id of a token, or `user`, the access of a new user.")
    if new.user is not None:
        _, token = _add_token(request, caller, new.user, is_sent=False)
    else:
        token = _find_token(request, caller, new.token)
        if token.over(datetime.now(UTC)) or token.identity:
            raise Unsupported(
                "This access has ended, or its user signs in with an account of their organization.",
                "Create a link for a new user.",
            )
    link, expires = make_link(_sessions(request), token, address=service_url(request), user=caller.name)
    return {"link": link, "link_expires": stamp(expires), **token_to_dict(token)}


@routes.get("/sessions", response_model=SessionPage)
def list_sessions(
    request: Request, response: Response, caller: CurrentCaller, cursor: Cursor = "", limit: Limit = 100
) -> Described:
    listed = visible_sessions(request, caller)
    shown, following = page_after(listed, cursor, limit, lambda session: session["id"], "sessions")
    return {"sessions": shown, "next": link_next(request, response, following)}


def visible_sessions(request: Request, caller: Caller) -> list[Described]:
    """Return the open sessions that an owner can see, the latest first."""
    callers, now, own = request.app.state.guard.callers, datetime.now(UTC), hash_cookie(caller.cookie)
    return [
        {
            "id": session.id[:SHOWN],
            "name": token.name,
            "role": token.role,
            "token": token.id,
            "method": session.method,
            "started": session.started,
            "seen": stamp(callers.last_seen(session)),
            "expires": session.expires,
            "own": bool(caller.cookie) and session.id == own,
        }
        for session, token in callers.sessions.all()
        if _can_see(caller, token.dataset) and not callers.is_idle(session, now)
    ]


@routes.delete("/sessions/{session}", response_model=EndedSession)
def end_session(
    request: Request, caller: CurrentCaller, session: Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")]
) -> Described:
    sessions = _sessions(request)
    chosen = [
        stored for stored, token in sessions.all() if stored.id[:SHOWN] == session and _can_see(caller, token.dataset)
    ]
    if not chosen:
        raise NotThere("There is no session with this id.")
    for stored in chosen:
        sessions.end(stored.id, user=caller.name)
    request.app.state.guard.callers.forget()
    return {"ended": session}


def _sessions(request: Request) -> Sessions:
    sessions: Sessions = request.app.state.guard.callers.sessions
    return sessions


def _tokens(request: Request) -> Tokens:
    tokens: Tokens = request.app.state.guard.callers.tokens
    return tokens


def _can_see(caller: Caller, dataset: str) -> bool:
    """Return whether this owner can see the tokens of a data set."""
    return not caller.dataset or caller.dataset == dataset


def _me(caller: Caller) -> Described:
    share = str(caller.share) if caller.share is not None else None
    return {"role": caller.role, "name": caller.name, "dataset": caller.dataset or None, "share": share}
