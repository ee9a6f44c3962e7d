"""COLLECT, invitations: codes and tokens used twice, forged tokens, a service with two keys, and the link from code to token."""

from __future__ import annotations

import math
import secrets
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.audit.finding import Finding
from tidegate.collect.blind_signatures import blind_number, prepare, unblind_number
from tidegate.collect.client import Client
from tidegate.collect.invitation_keys import InvitationKey
from tidegate.collect.invitations import from_text, new_code, obtain, to_text
from tidegate.collect.run import Submitted
from tidegate.collect.survey import Survey
from tidegate.errors import TidegateError

ONE = "one invitation code gives at most one counted report"
UNLINKED = "the service cannot tell which code a report belongs to"
SEND = "they have codes and tokens of some people, and can send anything to the service"
SERVICE = "they are the service: they see every code with its blinded message, and every token with its report"
PRIMES, EXPONENT = (11, 23), 7  # of a key that is small enough to look at all factors
CODES = 4

Receive = Callable[[list[dict[str, Any]]], Submitted]
Blind = Callable[[int, int, int, int], int]


@dataclass(frozen=True)
class InvitedTarget:
    """An invited poll under attack: its survey, how reports are sent to it, and a source of fresh reports without token."""

    survey: Survey
    receive: Receive
    report: Callable[[], dict[str, Any]]

    @property
    def key(self) -> str:
        poll = self.survey.collection.poll
        return poll.invitation_key if poll is not None else ""

    def token(self) -> dict[str, str]:
        """Return the token of a new code."""
        return obtain(self.key, self.survey.invite(1)[0], {}, self.survey.sign)

    def send(self, token: Any) -> int:
        """Send a fresh report with a token; return whether it was accepted."""
        return self.receive([{**self.report(), "invitation": token}]).accepted


def attack_invitations(target: InvitedTarget, *, blind: Blind = blind_number) -> list[Finding]:
    """Run all attacks on the invitations of a poll. `blind` replaces the real blinding (planted faults)."""
    return [
        reuse_codes(target),
        forge_tokens(target),
        offer_two_keys(target),
        link_tokens(blind),
    ]


def reuse_codes(target: InvitedTarget) -> Finding:
    """Use each code and each token again: on other devices, in other reports, in one request and in several."""
    codes, accepted, tries = target.survey.invite(CODES), 0, 0
    for code in codes:
        memory: dict[str, Any] = {}
        token = obtain(target.key, code, memory, target.survey.sign)
        accepted += target.send(token)
        accepted += target.receive([{**target.report(), "invitation": token} for _ in range(3)]).accepted
        accepted += target.send(dict(reversed(token.items())))
        accepted += _use_elsewhere(target, code)
        tries += 6
    extra = accepted - CODES
    return _finding(
        ONE,
        "codes and tokens used again",
        SEND,
        wrong=max(0, extra),
        tries=tries,
        is_broken=extra != 0,
        says=f"{CODES} codes were used on two devices each, and their tokens for five reports each: {accepted} were accepted.",
    )


def _use_elsewhere(target: InvitedTarget, code: str) -> int:
    """Use a code on another device; return how many reports it gives."""
    try:
        token = obtain(target.key, code, {}, target.survey.sign)
    except TidegateError:
        return 0
    return target.send(token)


def forge_tokens(target: InvitedTarget) -> Finding:
    """Send tokens that nobody signed: changed ones, products of valid ones, trivial numbers, and those of another key."""
    first, second = target.token(), target.token()
    forged = _forgeries(target.key, first, second)
    accepted = [name for name, token in forged.items() if target.send(token)]
    genuine = target.send(first) + target.send(second)
    return _finding(
        ONE,
        "forged tokens",
        SEND,
        wrong=len(accepted),
        tries=len(forged),
        is_broken=bool(accepted) or genuine != 2,
        says=f"{len(forged)} tokens that nobody signed were sent: "
        + (f"accepted were {', '.join(accepted)}." if accepted else "all were refused, and two genuine ones accepted."),
    )


def _forgeries(key: str, first: Mapping[str, str], second: Mapping[str, str]) -> dict[str, Any]:
    modulus = int.from_bytes(from_text(key), "big")
    numbers = [int.from_bytes(from_text(token["signature"]), "big") for token in (first, second)]
    other = InvitationKey.generate()
    message = prepare(secrets.token_bytes(32))

    def with_number(number: int) -> dict[str, str]:
        return {"nonce": message.hex(), "signature": to_text((number % modulus).to_bytes(256, "big"))}

    changed = f"{int(first['nonce'], 16) ^ 1:0128x}"
    return {
        "a changed message": {**first, "nonce": changed},
        "the signature of another token": {**first, "signature": second["signature"]},
        "the product of two signatures": with_number(numbers[0] * numbers[1]),
        "the quotient of two signatures": with_number(numbers[0] * pow(numbers[1], -1, modulus)),
        "the number 0": with_number(0),
        "the number 1": with_number(1),
        "the negative of a signature": {**first, "signature": with_number(-numbers[0])["signature"]},
        "a random number": with_number(secrets.randbelow(modulus)),
        "the signature of another key": {
            **first,
            "signature": to_text(other.sign(bytes(1) + secrets.token_bytes(255))),
        },
        "no token": None,
        "an empty token": {"nonce": "", "signature": ""},
        "a token with its code": {**first, "code": new_code()},
    }


def offer_two_keys(target: InvitedTarget) -> Finding:
    """As the service, sign with a second key to recognize a person, and show them a description with that key."""
    other, survey = InvitationKey.generate(), target.survey
    modulus, used = int.from_bytes(from_text(target.key), "big"), 0

    def sign(code: str, blinded: str) -> str:
        number = int.from_bytes(from_text(blinded), "big") % other.modulus
        answer = int.from_bytes(other.sign(number.to_bytes(256, "big")), "big")
        return to_text((answer % modulus).to_bytes(256, "big"))  # a number that a signature of the poll's key could be

    for attempt in (
        lambda: obtain(target.key, new_code(), {}, sign),
        lambda: _client_with(survey, to_text(other.public), survey.collection.fingerprint),
    ):
        try:
            attempt()
        except TidegateError:
            continue
        used += 1
    return _finding(
        UNLINKED,
        "two keys for one poll",
        SERVICE,
        wrong=used,
        tries=2,
        is_broken=used > 0,
        says="A device was given a signature of a second key, and a description with that key under the known fingerprint: "
        + (f"it used {used} of them." if used else "it refused both."),
    )


def _client_with(survey: Survey, key: str, fingerprint: str) -> Client:
    description = survey.collection.public_dict()
    return Client({**description, "poll": {**description["poll"], "invitation_key": key}}, fingerprint=fingerprint)


def link_tokens(blind: Blind) -> Finding:
    """Compare every exchange of a code with every token, for a key so small that all blinding factors can be tried.

    An exchange is a blinded message and its signature, a token a message and its signature. If every pair fits exactly one
    factor, then each token is equally likely to belong to each exchange, whatever the service computes.
    """
    modulus = math.prod(PRIMES)
    order = math.prod(prime - 1 for prime in PRIMES)
    inverse_exponent = pow(EXPONENT, -1, order)
    units = [number for number in range(1, modulus) if math.gcd(number, modulus) == 1]
    fitting: Counter[tuple[int, int]] = Counter()
    for message in units:
        signature = pow(message, inverse_exponent, modulus)
        for factor in units:
            blinded = blind(message, factor, modulus, EXPONENT)
            answer = pow(blinded, inverse_exponent, modulus)
            if unblind_number(answer, pow(factor, -1, modulus), modulus) == signature:
                fitting[blinded, message] += 1
    pairs = len(units) ** 2
    uneven = sum(fitting[blinded, message] != 1 for blinded in units for message in units)
    return _finding(
        UNLINKED,
        "link between codes and tokens",
        SERVICE,
        wrong=uneven,
        tries=pairs,
        is_broken=uneven > 0,
        says=f"For a key of {modulus.bit_length()} bits, {pairs:,} pairs of an exchange and a token were compared under all "
        f"{len(units)} blinding factors: "
        + (f"{uneven:,} do not fit exactly one." if uneven else "each fits exactly one, so that none is more likely."),
    )


def _finding(promise: str, attack: str, knows: str, *, wrong: int, tries: int, is_broken: bool, says: str) -> Finding:
    return Finding(
        verb="collect",
        promise=promise,
        attack=attack,
        knows=knows,
        unit="probability",
        bound=wrong / tries,
        promised=0.0,
        alpha=0.0,
        tries=tries,
        verdict="broken" if is_broken else "held",
        says=says,
    )
