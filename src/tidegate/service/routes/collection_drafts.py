"""collections as a whole: those there are, a new one (as a draft, and made), and the end of one.

A new collection goes into the policy's file, at its end, and its promise into the ledger. What was promised before stays as
it was: nothing here changes or removes a section.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Request
from pydantic import ConfigDict, Field, create_model

from tidegate.accounting.respondent import Loss, respondent_loss
from tidegate.errors import PolicyUnreadable, StalePolicy, TidegateError
from tidegate.exact import say
from tidegate.operators import OPERATORS, RandomizedResponse, SubsetSelection, parameters_of
from tidegate.policy.attributes import Attribute, Items, Key, Numeric
from tidegate.policy.collection import Collection
from tidegate.policy.collection import Question as Asked
from tidegate.policy.toml import write_collection
from tidegate.service.datasets import ServedDataset
from tidegate.service.routes.collections import Survey, collection_state
from tidegate.service.routes.dependencies import Asking, Column, Described, Form, Held, Number, router
from tidegate.service.settings import service_url
from tidegate.web.snippets.collect import spelled_making

routes = router()
Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,62}$")]
Chance = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]
Size = Annotated[int, Field(ge=0, le=1000)]
TYPES = {"number": Number, "length": Number, "probability": Chance, "count": Size}
DRAFTED = [name for name, known in OPERATORS.items() if not getattr(known, "takes_plans", False)]
if TYPE_CHECKING:
    Operator = str
    Parameters = Form
else:  # the names that the registry holds, for the schema and for validation
    Operator = Literal[tuple(DRAFTED)]
    fields = {name: (TYPES[one.kind] | None, None) for name, one in parameters_of(*DRAFTED).items()}
    Parameters = create_model("Parameters", __base__=Form, **fields)
EXAMPLE: Any = {
    "collection": "visitors",
    "questions": {"town": {"attribute": "town", "operator": SubsetSelection.name, "epsilon": 1}},
    "clients": 5000,
}


class Question(Parameters):
    """What is asked and how it is randomized: the operator's own parameters, and no others."""

    attribute: Column
    operator: Operator

    def read(self, held: ServedDataset) -> Asked:
        given = self.model_dump(exclude={"attribute", "operator"}, exclude_none=True)
        return Asked(self.attribute, held.policy.attribute(self.attribute), self.operator, **given)


class Making(Form):
    model_config = ConfigDict(json_schema_extra={"example": EXAMPLE})
    collection: Name
    questions: dict[Name, Question] = Field(min_length=1, max_length=20)
    repeats: Literal["memoised", "once", "two-layers"] = "memoised"
    version: int = Field(1, ge=1, le=10**6)
    clients: int | None = Field(None, ge=1, le=10**9, description="Expected to answer.")

    def read(self, held: ServedDataset) -> Collection:
        questions = {name: question.read(held) for name, question in self.questions.items()}
        collection = Collection(self.collection, questions, self.repeats, self.version, clients=self.clients)
        collection.refuse_cuts()
        return collection


class Closing(Form):
    model_config = ConfigDict(json_schema_extra={"example": {"version": 1}})
    version: int = Field(ge=1, le=10**6, description="The version to close, so that no other one is by mistake.")


@routes.get("/data/{name}/collections")
def list_collections(held: Held) -> Described:
    attributes = [_askable(name, attribute) for name, attribute in held.policy.attributes.items()]
    return {
        "collections": [_listed(held, name) for name in held.policy.collections],
        "attributes": [one for one in attributes if one],
        "may_add": held.file is not None,
    }


@routes.post("/data/{name}/collections/drafts")
def draft_collection(request: Request, held: Held, wanted: Making) -> Described:
    collection = wanted.read(held)
    gives = respondent_loss(collection)
    address = service_url(request)
    return {
        "collection": collection.name,
        "section": write_collection(collection),
        "gives": gives.to_dict(),
        "says": str(gives),
        "each": {name: given_away(question, gives.questions[name]) for name, question in collection.questions.items()},
        "codes": spelled_making(collection, address=address, dataset=held.name),
    }


@routes.post("/data/{name}/collections", status_code=201)
def make_collection(request: Request, held: Held, caller: Asking, wanted: Making) -> Described:
    held.add(wanted.read(held), user=caller.name)
    grown: ServedDataset = request.app.state.holdings[held.name]
    return collection_state(grown, wanted.collection)


@routes.post("/data/{name}/collections/{collection}/closing")
def close_collection(held: Held, collection: Survey, caller: Asking, wanted: Closing) -> Described:
    survey = held.survey(collection)
    if survey.collection.version != wanted.version:
        raise StalePolicy(f"version {survey.collection.version:,} is open, and not the one named.", "Look again.")
    survey.close(user=caller.name)
    return collection_state(held, collection)


def given_away(question: Asked, loss: Loss) -> str:
    """What one report of a question gives away, in a sentence."""
    if loss is None:
        return f"{question}: some reports rule values out, so that its loss has no limit; it promises an interval only"
    factor = say(math.exp(min(700.0, float(loss))))
    return f"{question}: no report changes the odds between two answers by more than a factor of {factor}"


def _listed(held: ServedDataset, name: str) -> Described:
    """A collection in a few lines; one that cannot be opened says why, and the others are listed all the same."""
    collection = held.policy.collections[name]
    about = {
        "collection": name,
        "version": collection.version,
        "questions": {word: str(question) for word, question in collection.questions.items()},
        "says": str(respondent_loss(collection)),
        "clients": collection.clients,
    }
    try:
        survey = held.survey(name)
        return {**about, "reports": survey.reports, "closed": survey.closed, "problem": None}
    except TidegateError as error:
        return {**about, "reports": None, "closed": None, "problem": error.what}


def _askable(name: str, attribute: Attribute) -> Described | None:
    """What a question could ask about: how many values it has, and whether they have an order."""
    if isinstance(attribute, Key):
        return None
    about: dict[str, Any] = {"attribute": name, "kind": attribute.kind, "says": attribute.describe()}
    if isinstance(attribute, Items):
        return {**about, "values": len(attribute.vocabulary), "ordered": False}
    try:
        values = Asked(name, attribute, RandomizedResponse.name, epsilon=1).size
    except PolicyUnreadable:  # one value, or too many
        return None
    ordered = isinstance(attribute, Numeric)
    if isinstance(attribute, Numeric) and attribute.cuts:
        about["says"] += f", in {values:,} bins"
    return {**about, "values": values, "ordered": ordered}
