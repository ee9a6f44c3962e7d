"""Selections of hiding promises: open one, read what is public about them, and the state of a desk under such a promise.

The groups that an owner names are private: they are in the request's body only, never in a URL, a log or a response. A
selection that cannot be opened is refused without the cells that have too few records; the command line shows them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import ConfigDict, Field

from tidegate.accounting.explain import explain_hiding
from tidegate.errors import NotThere
from tidegate.service.datasets import ServedDataset
from tidegate.service.models.releases import SelectionList, SelectionView
from tidegate.service.routes.dependencies import Described, Form, Served, router

if TYPE_CHECKING:
    from tidegate.release.hiding import Selection

routes = router()
Label = Annotated[str, Field(min_length=1, max_length=200)]


class OpenRequest(Form):
    model_config = ConfigDict(json_schema_extra={"example": {"sensitive": [["L2"]], "later": False}})
    sensitive: list[Annotated[list[Label], Field(min_length=1, max_length=20)]] | None = Field(
        None,
        max_length=1000,
        description="The groups to hide, if the promise has `among` = k: labels in the order of `about`.",
    )
    later: bool = Field(False, description="Choose among the records that were added since the last selection.")


@routes.get("/data/{name}/selections", response_model=SelectionList)
def list_selections(served: Served) -> Described:
    return {"selections": [selection.to_dict() for selection in open_selections(served)]}


@routes.post("/data/{name}/selections", response_model=SelectionView)
def open_selection(served: Served, body: OpenRequest) -> Described:
    _refuse_without_hiding(served)
    return served.session.open_release(sensitive=body.sensitive, later=body.later).to_dict()


def open_selections(served: ServedDataset) -> list[Selection]:
    """Return the open selections of a data set; none if its ledger does not exist yet."""
    from tidegate.release.hiding import read_selections

    _refuse_without_hiding(served)
    return read_selections(served.session.ledger, served.policy)


def hiding_state(served: ServedDataset, promise: str) -> Described:
    """Return the state of a desk under a hiding promise: what was released and withheld, and the quotas."""
    from tidegate.release.layout import Layout

    layout, selections = Layout(served.policy), open_selections(served)
    names, values = layout.target_names(promise), layout.value_names(promise)
    shown: Described = {"desk": promise, "kind": "hiding", "open": bool(selections), "groups": names, "values": values}
    shown["joint_groups"], shown["joint_values"] = layout.joint_groups, layout.joint_values
    shown["selections"] = [selection.to_dict() for selection in selections]
    shown["says"] = hiding_sentences(served, promise, selections)
    if not selections:
        return {**shown, "out_in_all": dict.fromkeys(names, 0), "withheld": 0, "counts": []}
    desk = served.desk(promise)
    counts = desk.counts()
    released = dict(zip(names, counts.sum(axis=0).tolist(), strict=True))
    return {**shown, "out_in_all": released, "withheld": desk.withheld, "counts": counts.T.tolist()}


def hiding_sentences(served: ServedDataset, promise: str, selections: list[Selection]) -> list[Described]:
    """Return what the promise says, by subject."""
    hiding = served.policy.hidings[promise]
    summary = selections[0].summary if selections else None
    groups = served.policy.cells(hiding.about)
    findings = explain_hiding(promise, hiding, groups=groups, selection=summary)
    return [{"about": finding.about, "says": finding.says} for finding in findings]


def _refuse_without_hiding(served: ServedDataset) -> None:
    if not served.policy.hidings:
        raise NotThere("This data set has no hiding promise.", "See GET /v1/data/{name}.")
