"""The OpenID Connect provider: authorization code flow with PKCE, state and nonce; validation of identity tokens.

Guarantee:
    A result comes from the configured issuer, for this client, for the browser that started the sign-in. Signatures are
    asymmetric: `none` and shared keys are refused. Errors never contain what the provider sent.
"""

from __future__ import annotations

import base64
import hmac
import json
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from tidegate.errors import NotSignedIn, Unreachable
from tidegate.extras import extra
from tidegate.service.access.groups import client_secret, groups_in
from tidegate.service.access.sessions import FLOW_SECONDS
from tidegate.service.logs import log_event
from tidegate.service.settings import Settings

with extra("oidc", "Sign-in with OpenID Connect"):
    import httpx2
    from authlib.common.errors import AuthlibBaseError
    from authlib.integrations.httpx_client import OAuth2Client
    from authlib.oidc.core import CodeIDToken
    from joserfc import jwt
    from joserfc.errors import JoseError
    from joserfc.jwk import KeySet

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA")
SECONDS = 5.0  # until the provider counts as unreachable
SKEW = 60  # seconds that the clocks of provider and service can differ
METADATA_SECONDS = 3600.0
LONGEST = 200_000  # bytes of a response
OF_CLIENT = ("invalid_client", "unauthorized_client")  # errors (RFC 6749, 5.2) that no user can correct


@dataclass(frozen=True)
class Identity:
    """A user as the provider describes them. `tokens` are for renewal and sign-out at the provider."""

    issuer: str
    subject: str
    name: str
    groups: tuple[str, ...]
    tokens: dict[str, str]


class Provider:
    """A provider with its metadata and keys, which are read on first use and again after an hour."""

    def __init__(self, settings: Settings, key: bytes) -> None:
        """`key` is the secret of the service; what a browser carries to the provider and back is encrypted with a part of it."""
        self._settings, self._key = settings, derive_key(key, b"tidegate oidc flow")
        self._turn = threading.Lock()
        self._metadata: dict[str, Any] = {}
        self._read_at = 0.0
        self._keys: KeySet | None = None

    def begin(self, redirect: str, next_page: str) -> tuple[str, str]:
        """Return the URL at the provider for a new sign-in, and the value of the cookie that belongs to it."""
        flow = {name: secrets.token_urlsafe(32) for name in ("state", "nonce", "verifier")}
        with self._client(redirect) as client:
            options = {"state": flow["state"], "nonce": flow["nonce"], "code_verifier": flow["verifier"]}
            url, _ = client.create_authorization_url(self._endpoint("authorization_endpoint"), **options)
        return str(url), seal(self._key, {**flow, "next": next_page, "at": time.time()})

    def finish(self, cookie: str, query: Mapping[str, str], redirect: str) -> tuple[Identity, str]:
        """Return the user whom the provider sent back, and the page to open. `query` is that of the redirect."""
        flow = unseal(self._key, cookie)
        if flow is None or not hmac.compare_digest(flow["state"].encode(), query.get("state", "").encode()):
            raise _refusal("it was not started in this browser")
        if time.time() - flow["at"] > FLOW_SECONDS:
            raise _refusal(f"it took longer than {FLOW_SECONDS // 60} minutes")
        if query.get("iss", self._settings.oidc_issuer) != self._settings.oidc_issuer:
            raise _refusal("it came from another provider")
        if "code" not in query:
            raise _refusal("the provider did not confirm it")
        options = {"grant_type": "authorization_code", "code": query["code"], "code_verifier": flow["verifier"]}
        answer = self._fetch(redirect, options)
        return self._identity(answer, nonce=flow["nonce"]), str(flow["next"])

    def renew(self, refresh_token: str, subject: str) -> Identity:
        """Return a user as the provider describes them now."""
        answer = self._fetch("", {"grant_type": "refresh_token", "refresh_token": refresh_token})
        answer.setdefault("refresh_token", refresh_token)
        identity = self._identity(answer, nonce="")
        if identity.subject != subject:
            raise _refusal("the provider confirmed another user")
        return identity

    def sign_out_url(self, id_token: str, back: str) -> str:
        """Return the URL that ends the session at the provider too; empty if it has none."""
        endpoint = self._read_metadata().get("end_session_endpoint", "")
        fields = {"id_token_hint": id_token, "client_id": self._settings.oidc_client, "post_logout_redirect_uri": back}
        return f"{endpoint}?{urlencode(fields)}" if endpoint else ""

    def _identity(self, answer: dict[str, Any], *, nonce: str) -> Identity:
        claims = self._validate(str(answer.get("id_token", "")), str(answer.get("access_token", "")), nonce)
        groups = groups_in(claims, self._settings.oidc_claim)
        names = dict(claims)
        if groups is None and "userinfo_endpoint" in self._read_metadata():
            info = self._get(self._endpoint("userinfo_endpoint"), bearer=str(answer.get("access_token", "")))
            if info.get("sub") != claims["sub"]:
                raise _refusal("the provider described another user")
            groups, names = groups_in(info, self._settings.oidc_claim), {**info, **names}
        shown = next((str(names[name]) for name in ("name", "preferred_username", "email") if names.get(name)), "")
        own_tokens = {name: str(answer[name]) for name in ("refresh_token", "id_token") if answer.get(name)}
        subject = str(claims["sub"])
        return Identity(str(claims["iss"]), subject, shown or subject, tuple(groups or ()), own_tokens)

    def _validate(self, id_token: str, access_token: str, nonce: str) -> dict[str, Any]:
        client, problem = self._settings.oidc_client, ""
        options: Any = {
            "iss": {"essential": True, "value": self._settings.oidc_issuer},
            "aud": {"essential": True, "value": client},
        }
        try:
            token = self._decode(id_token)
            params = {"client_id": client, "access_token": access_token, **({"nonce": nonce} if nonce else {})}
            claims = CodeIDToken(token.claims, token.header, options, params)
            claims.validate(leeway=SKEW)
            return dict(claims)
        except (JoseError, ValueError, TypeError, KeyError) as error:
            problem = type(error).__name__
        raise _refusal(f"the provider's identity token is not valid ({problem})")

    def _decode(self, id_token: str) -> Any:
        """Return a token whose signature is valid. If its key is unknown, the keys are read again: they rotate."""
        offered = self._read_metadata().get("id_token_signing_alg_values_supported", ["RS256"])
        algorithms = [name for name in ALGORITHMS if name in offered]
        for keys in (self._keys, None):
            try:
                return jwt.decode(id_token, keys or self._read_keys(), algorithms=algorithms)
            except (JoseError, ValueError):
                if keys is None:
                    raise
        raise AssertionError("unreachable")  # the second round returns or raises

    def _read_keys(self) -> KeySet:
        self._keys = KeySet.import_key_set(self._get(self._endpoint("jwks_uri")))  # type: ignore[arg-type]
        return self._keys

    def _read_metadata(self) -> dict[str, Any]:
        """Return the provider's description of itself. Its issuer must be the configured one."""
        with self._turn:
            if self._metadata and time.monotonic() - self._read_at < METADATA_SECONDS:
                return self._metadata
            issuer = self._settings.oidc_issuer
            metadata = self._get(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
            if metadata.get("issuer") != issuer:
                raise Unreachable(
                    "The sign-in provider has another issuer than the one in the settings of this service.",
                    "Sign in with a token or a link. The operator must correct --oidc-issuer.",
                )
            self._metadata, self._read_at = metadata, time.monotonic()
            return metadata

    def _endpoint(self, name: str) -> str:
        value = self._read_metadata().get(name)
        if not isinstance(value, str):
            raise _unreachable()
        return value

    def _fetch(self, redirect: str, options: dict[str, str]) -> dict[str, Any]:
        """Return the answer of the token endpoint."""
        endpoint, refused = self._endpoint("token_endpoint"), ""
        try:
            with self._client(redirect) as client:
                if options["grant_type"] == "refresh_token":
                    return dict(client.refresh_token(endpoint, refresh_token=options["refresh_token"]))
                return dict(client.fetch_token(endpoint, **options))
        except AuthlibBaseError as error:
            refused = error.error if error.error in OF_CLIENT else "other"  # what a provider sends is not logged
        except (httpx2.HTTPError, ValueError):
            pass
        if refused in OF_CLIENT:
            log_event("provider-refused", problem=refused)
            raise _refusal("the provider does not accept the client id or the client secret of this service")
        raise _refusal("the provider refused it: it was used before, or has expired") if refused else _unreachable()

    def _get(self, url: str, *, bearer: str = "") -> dict[str, Any]:
        content: Any = None
        try:
            headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
            response = httpx2.get(url, headers=headers, timeout=SECONDS)
            response.raise_for_status()
            content = json.loads(response.content) if len(response.content) <= LONGEST else None
        except (httpx2.HTTPError, ValueError):
            pass
        if not isinstance(content, dict):
            raise _unreachable()
        return content

    def _client(self, redirect: str) -> OAuth2Client:
        secret = client_secret()
        methods = self._read_metadata().get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        confidential = "client_secret_basic" if "client_secret_basic" in methods else "client_secret_post"
        return OAuth2Client(
            self._settings.oidc_client,
            secret or None,
            token_endpoint_auth_method=confidential if secret else "none",
            scope=self._settings.oidc_scope,
            redirect_uri=redirect or None,
            code_challenge_method="S256",
            timeout=SECONDS,
        )


def derive_key(secret: bytes, purpose: bytes) -> bytes:
    """Return a key of 256 bits for one purpose."""
    return hmac.digest(secret, purpose, "sha256")


def seal(key: bytes, content: dict[str, Any]) -> str:
    """Encrypt and authenticate JSON values."""
    nonce = secrets.token_bytes(12)
    return base64.urlsafe_b64encode(
        nonce + ChaCha20Poly1305(key).encrypt(nonce, json.dumps(content).encode(), None)
    ).decode()


def unseal(key: bytes, text: str) -> dict[str, Any] | None:
    """Return what was sealed with a key; None if it was not, or was changed."""
    try:
        data = base64.urlsafe_b64decode(text.encode())
        content: dict[str, Any] = json.loads(ChaCha20Poly1305(key).decrypt(data[:12], data[12:], None))
        return content
    except (InvalidTag, ValueError):
        return None


def _refusal(reason: str) -> NotSignedIn:
    return NotSignedIn(f"This sign-in was refused: {reason}.", "Start again. If it fails again, ask the data holder.")


def _unreachable() -> Unreachable:
    return Unreachable(
        "The sign-in provider does not respond.", "Try again later, or sign in with a token or a link: they still work."
    )
