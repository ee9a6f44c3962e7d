"""The guard of every route: caller, permission, rate limit. It runs before a body is parsed."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Annotated, Any

import anyio
import anyio.to_thread
from fastapi import Request, Response
from fastapi.datastructures import DefaultPlaceholder
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from tidegate.errors import NotAllowed, NotSignedIn, NotThere, TooOften
from tidegate.service.access import once
from tidegate.service.access.callers import Caller, Callers
from tidegate.service.access.csrf import HEADER, SAFE, refuse_foreign
from tidegate.service.access.permissions import PUBLIC, TABLE, Rule
from tidegate.service.access.rate_limits import Buckets, host_of
from tidegate.service.access.sessions import cookie_of, hash_cookie
from tidegate.service.errors import DESCRIPTIONS, PROBLEM_TYPE
from tidegate.service.etags import CONDITION, UNCHANGED, tagged
from tidegate.service.forms import form_fields
from tidegate.service.models.base import Declared
from tidegate.service.openapi_examples import EXAMPLES
from tidegate.service.settings import Settings

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
SLOW_HASHES = 2  # at a time
UNATTENDED = "x-unattended"  # the header of requests that a page repeats by itself: they do not prolong a session
PROBLEM = {"$ref": "#/components/schemas/Problem"}


class Guard:
    """Finds the caller of a request and checks it against the table of permissions."""

    def __init__(self, callers: Callers, *, by_caller: Buckets, by_address: Buckets, settings: Settings) -> None:
        self.callers, self._by_caller, self._by_address, self._settings = callers, by_caller, by_address, settings
        self._slow_hashes = anyio.CapacityLimiter(SLOW_HASHES)
        # for tokens with an unknown id, and for addresses that sent many invalid tokens: they wait for each other only
        self._guesses, self._slowed = anyio.CapacityLimiter(SLOW_HASHES), anyio.CapacityLimiter(1)

    async def check(self, request: Request, rule: Rule) -> Caller:
        """Return the caller if the rule permits the request; otherwise raise."""
        caller = await self._caller(request, rule)
        name = request.path_params.get("name")
        if name is not None and PUBLIC in rule.roles and not caller.can_use(name):
            caller = Caller()  # a token for another data set does not close what is open to everybody
        request.state.caller = caller  # also if the request is refused: the error page shows the signed-in user
        if caller.role == PUBLIC:
            self._by_address.take(host_of(address_of(request)))
        elif not self._by_caller.take_at_once(caller.token):
            await run_in_threadpool(self._by_caller.take, caller.token)
        if caller.role not in rule.roles:
            if caller.role == PUBLIC:
                raise NotSignedIn("This request needs a token.", "Send it as Authorization: Bearer tg_..., or sign in.")
            self._count_refusal(request, caller)
            raise NotAllowed(
                f"The role {caller.role} does not permit this request.",
                "Use a token with another role, or ask an owner of the data set.",
            )
        if name is not None:
            self._refuse_data_set(request, caller, name)
        return caller

    def _count_refusal(self, request: Request, caller: Caller) -> None:
        self.callers.activity.refuse("permission", address=address_of(request), name=caller.name)

    def _refuse_data_set(self, request: Request, caller: Caller, name: str) -> None:
        if not caller.can_use(name):
            self._count_refusal(request, caller)
        caller.refuse_other(name)
        if name not in request.app.state.datasets:
            raise NotThere("This service has no data set of that name.")

    async def by_token(self, token: str, *, address: str) -> Caller:
        """Return the caller of a token. Known tokens do not wait behind guesses, and guesses do not use up all threads."""
        known = self.callers.find_remembered(token, cookie=False) or await run_in_threadpool(
            self.callers.recheck, token
        )
        if known is not None:
            self.callers.activity.use(known.token)
            return known
        verify = partial(self.callers.verify, token, address=address)
        if await run_in_threadpool(self.callers.is_slowed, address):
            limiter = self._slowed
        else:
            is_plausible = await run_in_threadpool(self.callers.may_be_valid, token)
            limiter = self._slow_hashes if is_plausible else self._guesses
        try:
            caller = await anyio.to_thread.run_sync(verify, limiter=limiter)
        except (NotSignedIn, TooOften):
            self.callers.activity.refuse("token", address=address)
            raise
        self.callers.activity.use(caller.token)
        return caller

    async def _caller(self, request: Request, rule: Rule) -> Caller:
        bearer = _bearer(request)
        if bearer is not None:
            return await self.by_token(bearer, address=address_of(request))
        cookie = cookie_of(request, self._settings)
        if not cookie:
            return Caller()
        known = self.callers.find_remembered(cookie, cookie=True)
        try:
            caller = known if known is not None else await run_in_threadpool(self.callers.by_cookie, cookie)
        except NotSignedIn:  # the sign-in has ended: public pages stay public
            return Caller()
        try:
            refuse_foreign(request.method, cookie, await _csrf(request, rule))
        except NotAllowed:
            if PUBLIC in rule.roles:  # a public route needs no cookie
                return Caller()
            raise
        if UNATTENDED not in request.headers:
            self.callers.activity.see(hash_cookie(cookie))
        return caller


class GuardedRoute(APIRoute):
    """A route with the roles, tag and summary of its entry in the table of permissions."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        (method,) = options["methods"]
        self.rule = TABLE[method, path]  # a route that is not in the table cannot be created
        options["tags"], options["summary"] = [self.rule.tag], self.rule.says
        options["responses"] = {
            **_errors(self.rule),
            **_example(self.rule, options),
            **(UNCHANGED if self.rule.is_read else {}),
            **(options.get("responses") or {}),
        }
        options["openapi_extra"] = {
            **_security(self.rule),
            **({"parameters": [CONDITION]} if self.rule.is_read else {}),
            **({"parameters": [once.PARAMETER]} if self.rule.once else {}),
            **(options.get("openapi_extra") or {}),
        }
        options["operation_id"] = endpoint.__name__
        if not isinstance(options.get("response_model"), DefaultPlaceholder | None):
            options["response_model"] = Annotated[Any, Declared(options["response_model"])]
        super().__init__(path, endpoint, **options)

    def get_route_handler(self) -> Handler:
        inside = super().get_route_handler()

        async def handle(request: Request) -> Response:
            request.state.caller = await request.app.state.guard.check(request, self.rule)
            key = request.headers.get(once.HEADER, "") if self.rule.once else ""
            if key:
                return await once.run_once(request, key, request.state.caller.token, inside)
            response = await inside(request)
            return tagged(request, response) if self.rule.is_read else response

        return handle


def address_of(request: Request) -> str:
    return request.client.host if request.client else "unknown"


async def _csrf(request: Request, rule: Rule) -> str:
    """Return the CSRF token of a request: its header, or the field of a form that a page posts without scripts."""
    header = request.headers.get(HEADER, "")
    if header or request.method in SAFE or rule.tag != "pages":
        return header
    return next(iter((await form_fields(request)).get("csrf", [])), "")


def _bearer(request: Request) -> str | None:
    """Return the token of the Authorization header, or None if there is no such header."""
    header = request.headers.get("authorization")
    if header is None:
        return None
    kind, _, token = header.partition(" ")
    return token.strip() if kind.lower() == "bearer" else header


def _security(rule: Rule) -> dict[str, Any]:
    schemes: list[dict[str, list[str]]] = [{"bearer": []}, {"cookie": []}]
    return {"security": [{}, *schemes] if PUBLIC in rule.roles else schemes}


def _example(rule: Rule, options: dict[str, Any]) -> dict[int | str, dict[str, Any]]:
    """Return the example response, if there is one."""
    if rule.key not in EXAMPLES:
        return {}
    return {options.get("status_code") or 200: {"content": {"application/json": {"example": EXAMPLES[rule.key]}}}}


def _errors(rule: Rule) -> dict[int | str, dict[str, Any]]:
    """Return the error responses of a route; every body has the same shape."""
    codes = {401, 403, 413, 422, 429, 503}
    codes |= {404} if "{" in rule.path else set()
    codes |= {409} if rule.method != "GET" or "{" in rule.path else set()
    return {
        code: {"description": DESCRIPTIONS[code], "content": {PROBLEM_TYPE: {"schema": PROBLEM}}}
        for code in sorted(codes)
    }
