"""Invitations to polls: owners create codes, and devices exchange a code for a blind signature.

Neither request is logged with its body, and the exchange of a code is not logged at all: its time would say when a person
took part. Refusals of a code have one form, whatever is wrong with it.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Request
from pydantic import BaseModel, ConfigDict, Field

from tidegate.service.access.guard import address_of
from tidegate.service.routes.dependencies import NAMED, CurrentCaller, Form, Served, router

routes = router()
Survey = Annotated[str, Path(pattern=NAMED, examples=["canteen"])]
Encoded = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$", min_length=342, max_length=342)]


class InviteRequest(Form):
    model_config = ConfigDict(json_schema_extra={"example": {"count": 250}})
    count: int = Field(ge=1, le=100_000, strict=True, description="How many codes to create, each for one person.")


class CreatedCodes(BaseModel):
    codes: list[str] = Field(description="The codes. They are shown only once: the service stores their hashes.")


class SignRequest(Form):
    model_config = ConfigDict(
        json_schema_extra={"example": {"code": "34VE-HJ0A-HS9C-AN81-9YQV-10EF-D8", "blinded": "A" * 342}}
    )
    code: str = Field(min_length=1, max_length=100, description="The invitation code, as it was mailed.")
    blinded: Encoded = Field(description="The blinded message: 256 bytes in base64url without padding.")


class BlindSignature(BaseModel):
    signature: str = Field(description="The blind signature: 256 bytes in base64url without padding.")


@routes.post("/data/{name}/collections/{collection}/invitations")
def create_invitations(served: Served, collection: Survey, caller: CurrentCaller, body: InviteRequest) -> CreatedCodes:
    return CreatedCodes(codes=served.survey(collection).invite(body.count, user=caller.name))


@routes.post("/data/{name}/collections/{collection}/tokens")
def sign_token(request: Request, served: Served, collection: Survey, body: SignRequest) -> BlindSignature:
    request.app.state.poll_limits.take(address_of(request))
    return BlindSignature(signature=served.survey(collection).sign(body.code, body.blinded))
