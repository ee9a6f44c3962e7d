"""Lists, drafts, creation and closing of collections.

A new collection is appended to the policy file, and its promise is recorded in the ledger. Existing sections are never
changed or removed.
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
from tidegate.policy.collection import Question as PolicyQuestion
from tidegate.policy.toml import write_collection
from tidegate.service.datasets import ServedDataset
from tidegate.service.models.collections import CollectionDraft, CollectionList, CollectionState
from tidegate.service.routes.collections import Survey, collection_state
from tidegate.service.routes.dependencies import Column, CurrentCaller, Described, Form, Number, Served, router
from tidegate.service.settings import service_url
from tidegate.web.snippets.collect import creation_code

routes = router()
Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,62}$")]
Probability = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]
Size = Annotated[int, Field(ge=0, le=1000)]
TYPES = {"number": Number, "length": Number, "probability": Probability, "count": Size}
DRAFTED = [name for name, known in OPERATORS.items() if not getattr(known, "takes_plans", False)]
if TYPE_CHECKING:
    Operator = str
    Parameters = Form
else:  # the names in the registry, for the schema and for validation
    Operator = Literal[tuple(DRAFTED)]
    fields = {name: (TYPES[known.kind] | None, None) for name, known in parameters_of(*DRAFTED).items()}
    Parameters = create_model("Parameters", __base__=Form, **fields)
EXAMPLE: Any = {
    "collection": "visitors",
    "questions": {"town": {"attribute": "town", "operator": SubsetSelection.name, "epsilon": 1}},
    "clients": 5000,
}


class CollectionQuestion(Parameters):
    """A question: its attribute, its operator, and the parameters of that operator."""

    attribute: Column
    operator: Operator

    def read(self, served: ServedDataset) -> PolicyQuestion:
        parameters = self.model_dump(exclude={"attribute", "operator"}, exclude_none=True)
        return PolicyQuestion(self.attribute, served.policy.attribute(self.attribute), self.operator, **parameters)


class NewCollection(Form):
    model_config = ConfigDict(json_schema_extra={"example": EXAMPLE})
    collection: Name
    questions: dict[Name, CollectionQuestion] = Field(min_length=1, max_length=20)
    repeats: Literal["memoised", "once", "two-layers"] = "memoised"
    version: int = Field(1, ge=1, le=10**6)
    clients: int | None = Field(None, ge=1, le=10**9, description="The expected number of respondents.")

    def read(self, served: ServedDataset) -> Collection:
        questions = {name: question.read(served) for name, question in self.questions.items()}
        collection = Collection(self.collection, questions, self.repeats, self.version, clients=self.clients)
        collection.refuse_cuts()
        return collection


class Closing(Form):
    model_config = ConfigDict(json_schema_extra={"example": {"version": 1}})
    version: int = Field(
        ge=1, le=10**6, description="The version to close; the request is refused if another version is open."
    )


@routes.get("/data/{name}/collections", response_model=CollectionList)
def list_collections(served: Served) -> Described:
    attributes = [_attribute(name, attribute) for name, attribute in served.policy.attributes.items()]
    return {
        "collections": [_summary(served, name) for name in served.policy.collections],
        "attributes": [attribute for attribute in attributes if attribute],
        "may_add": served.file is not None,
    }


@routes.post("/data/{name}/collections/drafts", response_model=CollectionDraft)
def draft_collection(request: Request, served: Served, body: NewCollection) -> Described:
    collection = body.read(served)
    loss = respondent_loss(collection)
    address = service_url(request)
    return {
        "collection": collection.name,
        "section": write_collection(collection),
        "gives": loss.to_dict(),
        "says": str(loss),
        "each": {
            name: describe_loss(question, loss.questions[name]) for name, question in collection.questions.items()
        },
        "codes": creation_code(collection, address=address, dataset=served.name),
    }


@routes.post("/data/{name}/collections", status_code=201, response_model=CollectionState)
def make_collection(request: Request, served: Served, caller: CurrentCaller, body: NewCollection) -> Described:
    served.add(body.read(served), user=caller.name)
    reopened: ServedDataset = request.app.state.datasets[served.name]
    return collection_state(reopened, body.collection)


@routes.post("/data/{name}/collections/{collection}/closing", response_model=CollectionState)
def close_collection(served: Served, collection: Survey, caller: CurrentCaller, body: Closing) -> Described:
    survey = served.survey(collection)
    if survey.collection.version != body.version:
        raise StalePolicy(
            f"Version {body.version:,} cannot be closed because version {survey.collection.version:,} is open.",
            "Reload the page and check the version.",
        )
    survey.close(user=caller.name)
    return collection_state(served, collection)


def describe_loss(question: PolicyQuestion, loss: Loss) -> str:
    """Describe what one report of a question reveals."""
    if loss is None:
        return f"{question}: some reports rule out values, so the loss has no limit; only an interval is promised"
    factor = say(math.exp(min(700.0, float(loss))))
    return f"{question}: no report changes the odds between two answers by more than a factor of {factor}"


def _summary(served: ServedDataset, name: str) -> Described:
    """Return a summary of a collection; one that cannot be opened is listed with the reason."""
    collection = served.policy.collections[name]
    about = {
        "collection": name,
        "version": collection.version,
        "questions": {label: str(question) for label, question in collection.questions.items()},
        "says": str(respondent_loss(collection)),
        "clients": collection.clients,
        "is_poll": collection.poll is not None,
    }
    try:
        survey = served.survey(name)
        return {**about, "reports": survey.reports, "closed": survey.closed, "problem": None}
    except TidegateError as error:
        return {**about, "reports": None, "closed": None, "problem": error.what}


def _attribute(name: str, attribute: Attribute) -> Described | None:
    """Return an attribute for a question, with its number of values and whether they have an order; None if it cannot have one."""
    if isinstance(attribute, Key):
        return None
    about: dict[str, Any] = {"attribute": name, "kind": attribute.kind, "says": attribute.describe()}
    if isinstance(attribute, Items):
        return {**about, "values": len(attribute.vocabulary), "ordered": False}
    try:
        values = PolicyQuestion(name, attribute, RandomizedResponse.name, epsilon=1).size
    except PolicyUnreadable:  # one value, or too many
        return None
    ordered = isinstance(attribute, Numeric)
    if isinstance(attribute, Numeric) and attribute.cuts:
        about["says"] += f", in {values:,} bins"
    return {**about, "values": values, "ordered": ordered}
