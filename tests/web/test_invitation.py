"""Invitations in the browser: the vectors of RFC 9474 and our own, lost responses, and the real service."""

from __future__ import annotations

import hashlib
import json
import random
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from collect.invited import VECTORS, invited_report, poll_of, signing_key
from collect.test_blind_signatures import rfc_vectors
from support.form_service import Fault, FormService, Site
from web.test_client_vectors import run

from tidegate.collect.invitation_keys import InvitationKey, verify
from tidegate.collect.invitations import format_code, from_text, new_code, to_text
from tidegate.errors import Unsupported
from tidegate.ledger import Ledger
from tidegate.ledger.invitations import InvitationBook

if TYPE_CHECKING:
    from playwright.sync_api import Page


def test_all_variants_equal_the_vectors_of_the_rfc(tab: Page) -> None:
    vectors = rfc_vectors()
    sent = []
    for vector in vectors:
        key = InvitationKey(int(vector["p"], 16), int(vector["q"], 16))
        factor = pow(int(vector["inv"], 16), -1, key.modulus)
        sent.append(
            {
                "key": key.public.hex(),
                "prepared": vector["input_msg"],
                "salt": vector["salt"],
                "factor": str(factor),
                "answer": vector["blind_sig"],
            }
        )
    expected = [
        {
            "blinded": vector["blinded_msg"],
            "inverse": str(int(vector["inv"], 16)),
            "signature": vector["sig"],
            "checks": [True, False],
        }
        for vector in vectors
    ]
    assert run(tab, "blindSignatures", sent) == expected


def tokens(tab: Page, base: str = "/client") -> list[dict[str, Any]]:
    drawn: list[dict[str, Any]] = run(tab, "tokens", VECTORS["public"], VECTORS["tokens"], base=base)
    return drawn


def test_browser_reproduces_our_own_vectors(tab: Page) -> None:
    for vector, drawn in zip(VECTORS["tokens"], tokens(tab), strict=True):
        record, token = vector["record"], vector["token"]
        sent = {"address": "/tokens", "code": vector["code"], "blinded": record["blinded"], "record": record}
        assert drawn == {"outcome": token, "sent": sent, "memory": token}
        assert verify(from_text(VECTORS["public"]), bytes.fromhex(token["nonce"]), from_text(token["signature"]))


FAULTS = {
    "the message unmasked": Fault("invitation.js", "byte ^ mask[index]", "byte ^ 0 * mask[index]"),
    "no blinding": Fault("invitation.js", "factor ?? unit(modulus, source)", "factor ?? 1n"),
    "sent before it is stored": Fault(
        "invitation.js",
        "if (!memory.has(place)) memory.set(place, drawn(bytes, source));\n    return memory.get(place);",
        "return memory.get(place) ?? drawn(bytes, source);",
    ),
    "a digest of 512 bits": Fault("sha384.js", "primes.slice(8, 16)", "primes.slice(0, 8)"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_vectors_detect_planted_faults(name: str, tab: Page, site: Site) -> None:
    planted = f"invitation-{name.replace(' ', '-')}"
    site.faults[planted] = FAULTS[name]
    expected = [(vector["token"], vector["record"]) for vector in VECTORS["tokens"]]
    drawn = tokens(tab, base=f"/fault/{planted}")
    assert [(result["outcome"], result["sent"].get("record")) for result in drawn] != expected


def test_unchecked_signature_is_detected(tab: Page, site: Site) -> None:
    """A service that signs with another key gets no token out of the real client, and would out of a faulty one."""
    wrong = [{**vector, "answer": VECTORS["tokens"][1]["answer"]} for vector in VECTORS["tokens"][:1]]
    [refused] = run(tab, "tokens", VECTORS["public"], wrong)
    assert "signature" not in refused["memory"]
    assert "does not match the key" in json.dumps(refused["outcome"])
    site.faults["unchecked"] = Fault("invitation.js", "!isSigned(key, prepared, signature, saltSize)", "false")
    [accepted] = run(tab, "tokens", VECTORS["public"], wrong, base="/fault/unchecked")
    assert "signature" in accepted["memory"]


def test_digests_equal_the_standard(tab: Page) -> None:
    lengths = [0, 1, 3, 110, 111, 112, 113, 119, 127, 128, 129, 239, 240, 241, 1000]
    expected = [hashlib.sha384(bytes(index % 251 for index in range(length))).hexdigest() for length in lengths]
    assert run(tab, "digests384", lengths) == expected


def test_codes_are_read_like_in_python(tab: Page) -> None:
    draw = random.Random("codes")
    texts = ["", "7K3M", "U" * 26, "Z" * 26, "0" * 25, "0" * 27]
    for _ in range(200):
        code = new_code().replace("0", draw.choice("0oO")).replace("1", draw.choice("1iIlL"))
        texts.append(draw.choice([code, code.lower(), code.replace("-", " "), code.replace("-", ""), f" {code}\n"]))
        texts.append(code.replace(draw.choice(code), draw.choice("U!8é")))
    expected = []
    for text in texts:
        try:
            expected.append(format_code(text))
        except Unsupported:
            expected.append(None)
    assert run(tab, "codesRead", texts) == expected


def test_token_of_the_real_service_gives_one_report(page: Page, service: FormService) -> None:
    """First response lost; then a used code, an unknown one, and a service that is not there."""
    collection, key = service.fresh(poll_of(invitation_key=to_text(signing_key().public))), signing_key()
    with closing(Ledger(str(service.file.parent / "asked.ledger"))) as ledger:
        InvitationBook(ledger, f"asked/{collection.name}").create_key(lambda: key.text)
    page.goto(service.form(collection).partition("/forms/")[0] + "/client/refused.js")
    survey = service.survey(collection)
    codes, address = survey.invite(2), f"{service.address}/v1/data/asked/collections/{collection.name}/tokens"

    def tokens_of(codes: list[str], *, lose: bool = False, at: str = address) -> list[Any]:
        result: list[Any] = page.evaluate(REAL, [at, to_text(key.public), codes, lose])
        return result

    lost, token = tokens_of([codes[0], codes[0]], lose=True)
    assert (lost["name"], lost["reason"]) == ("Refused", "unreachable")
    assert survey.receive([invited_report(0, survey, token)]).accepted == 1
    assert tokens_of([codes[0]])[0]["reason"] == "used"
    assert tokens_of([new_code(), "no code"]) == [
        {"name": "Refused", "reason": "unknown", "what": "This invitation code is not known."},
        {"name": "Refused", "reason": "unknown", "what": "This is not an invitation code."},
    ]
    assert tokens_of([codes[1]], at=address.replace("tokens", "nowhere"))[0]["name"] == "Refused"
    survey.close()
    assert tokens_of([codes[1]])[0]["reason"] == "closed"
    assert datetime.now(UTC) < collection.poll.closes  # type: ignore[union-attr]


REAL = """async ([address, key, codes, lose]) => {
  const { obtain } = await import("/client/invitation.js");
  const { PageMemory } = await import("/client/memory.js");
  const memory = new PageMemory();
  const right = globalThis.fetch;
  if (lose) globalThis.fetch = async (...request) => {
    globalThis.fetch = right;
    await right(...request);
    throw new TypeError("the response was lost");
  };
  const outcomes = [];
  for (const code of codes) {
    try {
      outcomes.push(await obtain(address, code, key, memory));
    } catch (error) {
      outcomes.push({ name: error.name, reason: error.reason, what: error.what });
    }
  }
  globalThis.fetch = right;
  return outcomes;
}"""
