"""Sign-in, sign-out, the current user, tokens."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path, Request, Response
from pydantic import ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from tidegate.errors import NotAllowed, NotThere, Unsupported
from tidegate.ledger.tokens import Tokens
from tidegate.service.access.callers import Caller
from tidegate.service.access.csrf import csrf_of
from tidegate.service.access.guard import address_of
from tidegate.service.access.sessions import refuse_unprotected
from tidegate.service.access.sessions import sign_in as begin
from tidegate.service.access.sessions import sign_out as end
from tidegate.service.access.tokens import make_token, token_to_dict
from tidegate.service.models.access import CreatedToken, Me, SignedOut, TokenPage, TokenView
from tidegate.service.pagination import Cursor, Limit, link_next, page_after
from tidegate.service.routes.dependencies import NAMED, CurrentCaller, Described, Form, router
from tidegate.service.settings import Settings, service_url
from tidegate.web.snippets.ledger import token_code

routes = router()


class SignIn(Form):
    model_config = ConfigDict(json_schema_extra={"example": {"token": "tg_0123456789abcdef_..."}})
    token: str = Field(max_length=200)


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


@routes.post("/sign-in", response_model=Me)
async def sign_in(request: Request, response: Response, body: SignIn) -> Described:
    caller, cookie = await begin_session(request, response, body.token)
    return {**_me(caller), "csrf": csrf_of(cookie)}


async def begin_session(request: Request, response: Response, token: str) -> tuple[Caller, str]:
    """Sign in with a token; return the caller and the cookie that was set on the response."""
    settings: Settings = request.app.state.settings
    refuse_unprotected(request, secure=settings.secure)
    caller = await request.app.state.guard.by_token(token, address=address_of(request))
    options: dict[str, Any] = {"secure": settings.secure, "hours": settings.sign_in_hours}
    return caller, await run_in_threadpool(begin, _tokens(request), caller.token, response, **options)


@routes.post("/sign-out", response_model=SignedOut)
def sign_out(request: Request, response: Response, caller: CurrentCaller) -> Described:
    callers = request.app.state.guard.callers
    if caller.cookie:
        end(callers.tokens, caller.cookie, response, secure=request.app.state.settings.secure)
        callers.forget()
    return {"signed_in": False}


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
    return [token_to_dict(token) for token in _tokens(request).all() if _can_see(caller, token.dataset)]


@routes.post("/tokens", status_code=201, response_model=CreatedToken)
def add_token(request: Request, caller: CurrentCaller, new: NewToken) -> Described:
    if not _can_see(caller, new.dataset):
        raise NotAllowed("Your token is for one data set, so it can create tokens for that data set only.")
    if new.dataset and new.dataset not in request.app.state.datasets:
        raise Unsupported("This service has no data set of that name.")
    options = new.model_dump()
    text, token = make_token(_tokens(request), **options)
    policy = new.dataset or caller.dataset or next(iter(request.app.state.datasets), "people")
    code = token_code(options, address=service_url(request), policy=policy)
    return {"token": text, **token_to_dict(token), "code": code}


@routes.delete("/tokens/{token}", response_model=TokenView)
def revoke_token(
    request: Request, caller: CurrentCaller, token: Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")]
) -> Described:
    stored = _tokens(request).find(token)
    if stored is None or not _can_see(caller, stored.dataset):
        raise NotThere("There is no token with this id.")
    _tokens(request).revoke(token)
    request.app.state.guard.callers.forget()
    return token_to_dict(_tokens(request).find(token) or stored)


def _tokens(request: Request) -> Tokens:
    tokens: Tokens = request.app.state.guard.callers.tokens
    return tokens


def _can_see(caller: Caller, dataset: str) -> bool:
    """Return whether this owner can see the tokens of a data set."""
    return not caller.dataset or caller.dataset == dataset


def _me(caller: Caller) -> Described:
    share = str(caller.share) if caller.share is not None else None
    return {"role": caller.role, "name": caller.name, "dataset": caller.dataset or None, "share": share}
