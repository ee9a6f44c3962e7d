"""Shared parts of responses: fields, charts, amounts in all units, and the base class of models."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, Field, GetJsonSchemaHandler, TypeAdapter
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

Amount: TypeAlias = Annotated[str, Field(description="An exact decimal.", examples=["0.1"])]
Moment: TypeAlias = Annotated[str, Field(description="A time in ISO 8601, with its zone.")]
Day: TypeAlias = Annotated[str, Field(description="A date in ISO 8601.")]
Hash: TypeAlias = Annotated[str, Field(description="A SHA-256 hash in hexadecimal digits.")]
Unit: TypeAlias = Literal["epsilon", "z"]
Guaranteed: TypeAlias = Literal["worst-case", "average"]
Texts: TypeAlias = Annotated[dict[str, str], Field(description="A text by language.")]
Codes: TypeAlias = Annotated[dict[str, str], Field(description="Code snippets, by the tool that runs them.")]
Free: TypeAlias = dict[str, Any]  # its fields depend on the policy, the query or the kind


def field(text: str) -> Any:
    """Return a field that every response has, with its description."""
    return Field(description=text)


def optional(text: str) -> Any:
    """Return a field that some responses leave out, with its description."""
    return Field(None, description=text)


class Reply(BaseModel):
    """Base class of the models of responses."""


class Declared:
    """Shows a model in the OpenAPI description, and sends the values of the endpoint as they are.

    Validation would cost time for every response, and one that failed would be lost after its charge.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        listed = handler(
            core_schema.list_schema(TypeAdapter(self.model).core_schema)
        )  # a list refers to its items by name
        items: JsonSchemaValue = listed["items"]
        return items


class ChartTable(Reply):
    columns: list[str] = field("The names of the columns.")
    rows: list[list[Any]] = field("The cells of each row.")


class ChartDrawing(Reply):
    """A chart as SVG, and its numbers as a table."""

    title: str = field("What the chart shows.")
    svg: str = field("The drawing.")
    table: ChartTable | None = field("The numbers of the drawing; null if the page has them elsewhere.")


Charts: TypeAlias = dict[str, ChartDrawing]


class AmountByUnit(Reply):
    """A privacy loss in every unit."""

    pure: Amount | None = field("Epsilon of pure differential privacy; null if it has no limit.")
    zcdp: Amount = field("Rho of zero-concentrated differential privacy.")
    z: Amount = field("Z, the loss under the average guarantee.")


class Finding(Reply):
    """Something that a policy says or leaves open."""

    about: str = field("The part of the policy.")
    says: str = field("The finding.")
    do: str = field("What to do; empty if there is nothing to do.")
    problem: bool = field("Whether the policy cannot be used.")
    warning: bool = field("Whether it needs attention.")


class Sentence(Reply):
    about: str = field("What the sentence is about.")
    says: str = field("The sentence.")


class Failure(Reply):
    """Why something could not be done."""

    what: str = field("What happened, and why.")
    do: str = field("What to do about it.")


class CodedFailure(Failure):
    code: str = field("The kind of problem, for programs.")
    facts: Free = field("The numbers; amounts are exact decimals as text.")


class HealthReply(Reply):
    status: Literal["ok"] = field("The process responds.")


class WitnessState(Reply):
    address: str = field("The address, without a password.")
    entries: int = field("The number of entries that it has seen.")
    problem: str = field("Why it is behind; empty if it is not.")


class ReadyReply(Reply):
    status: Literal["ready"] = field("The ledger responds.")
    datasets: int = field("The number of served data sets.")
    witnesses: list[WitnessState] = optional("The witnesses of the ledger; for owners of all data sets.")
