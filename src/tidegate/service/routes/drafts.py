"""Drafts of new data sets: source, protected unit, columns, promise, simulation, publication. For owners of all data sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request
from fastapi.responses import Response
from pydantic import ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from tidegate.errors import TidegateError, TooLarge, Unsupported
from tidegate.ledger.tokens import Tokens
from tidegate.policy import Policy
from tidegate.service.access.callers import Caller
from tidegate.service.drafts.columns import first_fields
from tidegate.service.drafts.notation import Notation
from tidegate.service.drafts.policy import DraftPolicy, default_fields
from tidegate.service.drafts.promise import default_promise, describe_promise
from tidegate.service.drafts.publication import DEFAULTS, access_problems, publish, token_view
from tidegate.service.drafts.simulation import simulate
from tidegate.service.drafts.sources import (
    ENCODINGS,
    Upload,
    listed_file,
    listed_files,
    read_table_types,
    read_types,
    shown_address,
    shown_source,
    table_address,
)
from tidegate.service.drafts.store import STEPS, Draft, Drafts, Fields, Step
from tidegate.service.drafts.synthesis import preview_synthesis
from tidegate.service.folder import ServiceFolder
from tidegate.service.models.drafts import (
    DataInspection,
    DraftList,
    DraftSimulation,
    DraftSynthesis,
    DraftView,
    Publication,
    RemovedDraft,
)
from tidegate.service.pagination import Cursor, Limit, link_next, page_after
from tidegate.service.routes.dependencies import CurrentCaller, Described, Form, router
from tidegate.service.settings import Settings, service_url
from tidegate.tables import open_table
from tidegate.tables.header import CSV
from tidegate.tables.inspection import inspect

routes = router()
DraftId = Annotated[str, Path(pattern=r"^[0-9a-f]{20}$", examples=["0198c2f3a1b40123abcd"])]
FieldName = Annotated[str, Field(max_length=60)]
FieldValue = Annotated[str, Field(max_length=200_000)]
TEXT: Any = {200: {"content": {"application/toml": {"schema": {"type": "string"}}}}}
BYTES: Any = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


class StepFields(Form):
    model_config = ConfigDict(
        json_schema_extra={"example": {"fields": {"name": ["people"], "unit": ["row"], "rows": ["10000"]}}}
    )
    fields: dict[FieldName, list[FieldValue]] = Field(max_length=20_000)
    store: bool = Field(True, description="Store the fields. False: only preview the policy with them.")


class Workshop:
    """The drafts of a service with its folder and settings, for an owner of all data sets."""

    def __init__(self, request: Request, caller: Caller) -> None:
        caller.refuse_part()
        self.settings: Settings = request.app.state.settings
        self.datasets, self.caller = request.app.state.datasets, caller
        self.tokens: Tokens = request.app.state.guard.callers.tokens
        self.address = service_url(request)

    @property
    def folder(self) -> ServiceFolder:
        folder: ServiceFolder | None = self.datasets.folder
        if folder is None:
            raise Unsupported(
                "This service was started without a folder, so data sets cannot be added in the console.",
                "Start it with: tidegate serve --folder DIR",
            )
        return folder

    @property
    def drafts(self) -> Drafts:
        return Drafts(self.folder.drafts)

    def read(self, draft: Draft) -> DraftPolicy:
        """Return a draft as a policy. An untouched promise is filled in with one that can be kept."""
        reading = DraftPolicy(draft, self.settings.databases)
        if "promise" not in draft.fields and draft.types:
            proposed = draft.with_fields("promise", default_promise(reading))
            return DraftPolicy(proposed, self.settings.databases, is_untouched=True)
        return reading

    def policy(self, reading: DraftPolicy) -> Policy | None:
        """Return the policy of a draft; None if it is not complete, or if nobody has confirmed its promise."""
        return None if reading.is_untouched else reading.policy(self.folder.path)


def _workshop(request: Request, caller: CurrentCaller) -> Workshop:
    return Workshop(request, caller)


Shop = Annotated[Workshop, Depends(_workshop)]


@routes.get("/drafts", response_model=DraftList)
def list_drafts(request: Request, response: Response, shop: Shop, cursor: Cursor = "", limit: Limit = 100) -> Described:
    content = all_drafts(shop)
    shown, following = page_after(content["drafts"], cursor, limit, lambda draft: draft["id"], "drafts")
    return {**content, "drafts": shown, "next": link_next(request, response, following)}


def all_drafts(shop: Workshop) -> Described:
    """Return the summaries of all drafts; none if the service has no folder."""
    has_folder = shop.datasets.folder is not None
    drafts = [draft_summary(shop, draft) for draft in shop.drafts.all()] if has_folder else []
    return {"drafts": drafts, "may_add": has_folder}


@routes.post("/drafts", status_code=201, response_model=DraftView)
def start_draft(shop: Shop) -> Described:
    return describe_draft(shop, shop.drafts.add(owner=shop.caller.name))


@routes.get("/drafts/{draft}", response_model=DraftView)
def get_draft(shop: Shop, draft: DraftId) -> Described:
    return describe_draft(shop, shop.drafts.find(draft))


@routes.delete("/drafts/{draft}", response_model=RemovedDraft)
def remove_draft(shop: Shop, draft: DraftId) -> Described:
    removed = shop.drafts.remove(draft)
    if path := own_upload(shop, removed):
        path.unlink(missing_ok=True)
    return {"removed": removed.id}


def own_upload(shop: Workshop, draft: Draft) -> FilePath | None:
    """Return the uploaded file of a draft, if it was not published and no other draft uses it."""
    is_own = draft.source.get("kind") == "upload" and not draft.published
    others = {other.source.get("path") for other in shop.drafts.all() if other.id != draft.id}
    return shop.folder.path / str(draft.source["path"]) if is_own and draft.source["path"] not in others else None


@routes.put("/drafts/{draft}/file", openapi_extra=BYTES, response_model=DraftView)
async def upload_file(
    request: Request,
    shop: Shop,
    draft: DraftId,
    name: Annotated[str, Query(min_length=1, max_length=255, description="The name of the file.")],
    encoding: Annotated[str, Query(max_length=20, description="The encoding of a CSV file.")] = "utf-8",
    comma: Annotated[bool, Query(description="Rewrite numbers such as 1.234,50 and dates such as 31.12.2024.")] = False,
    trim: Annotated[bool, Query(description="Remove spaces around the values of a CSV file.")] = False,
    lower: Annotated[bool, Query(description="Write the values of a CSV file in lower case.")] = False,
    rename: Annotated[bool, Query(description="Number column names that are missing or repeated.")] = False,
    missing: Annotated[bool, Query(description="Read NA, N/A, NaN, null, -, ? and . as missing values.")] = False,
    units: Annotated[
        bool, Query(description="Remove a unit after numbers, such as 72 kg; one for each column.")
    ] = False,
) -> Described:
    stored = await run_in_threadpool(shop.drafts.find, draft)
    refuse_published(stored)
    earlier = await run_in_threadpool(own_upload, shop, stored)
    notation = Notation(comma, trim, lower, rename, missing, units)
    upload = Upload(shop.folder, name, shop.settings.largest_upload, encoding, notation, earlier)
    path, types = await upload.receive(request.stream(), patience=shop.settings.upload_patience)
    source = {"kind": "upload", "label": path.name, "path": f"data/{path.name}", "size": path.stat().st_size}
    source |= {"lower": lower and path.suffix in CSV}
    updated = await run_in_threadpool(set_source, shop, stored, source, types)
    return await run_in_threadpool(describe_draft, shop, updated)


@routes.post("/drafts/{draft}/steps/{step}", response_model=DraftView)
def fill_in_step(shop: Shop, draft: DraftId, step: Step, body: StepFields) -> Described:
    stored = shop.drafts.find(draft)
    refuse_published(stored)
    if not body.store:
        return describe_draft(shop, stored.with_fields(step, body.fields))
    return describe_draft(shop, save_step(shop, stored, step, body.fields))


@routes.get("/drafts/{draft}/policy", response_class=Response, responses=TEXT)
def download_policy(shop: Shop, draft: DraftId) -> Response:
    reading = shop.read(shop.drafts.find(draft))
    name = reading.draft.value("people", "name") if "name" not in reading.problems.get("people", {}) else "policy"
    headers = {"content-disposition": f'attachment; filename="{name}.toml"'}  # letters, digits, dots and dashes only
    return Response(reading.text, media_type="application/toml", headers=headers)


@routes.post("/drafts/{draft}/check", response_model=DataInspection)
def check_draft(shop: Shop, draft: DraftId) -> Described:
    return check_columns(shop, shop.drafts.find(draft))


@routes.get("/drafts/{draft}/simulation", response_model=DraftSimulation)
def simulate_draft(
    shop: Shop,
    draft: DraftId,
    queries: Annotated[int, Query(ge=1, le=10_000, description="The number of queries that share the budget.")] = 20,
    rows: Annotated[int | None, Query(ge=1, le=10**12, description="An assumed number of rows.")] = None,
) -> Described:
    return simulate(_complete_policy(shop, draft), queries=queries, rows=rows)


@routes.get("/drafts/{draft}/synthesis", response_model=DraftSynthesis)
def synthesize_draft(
    shop: Shop,
    draft: DraftId,
    rows: Annotated[int | None, Query(ge=1, le=10**12, description="An assumed number of rows.")] = None,
) -> Described:
    return preview_synthesis(_complete_policy(shop, draft), rows=rows)


def _complete_policy(shop: Workshop, draft: str) -> Policy:
    policy = shop.policy(shop.read(shop.drafts.find(draft)))
    if policy is None:
        raise Unsupported("The policy is not complete.", "Complete the earlier steps first.")
    return policy


@routes.post("/drafts/{draft}/publication", status_code=201, response_model=Publication)
def publish_draft(shop: Shop, draft: DraftId) -> Described:
    return publish_stored(shop, shop.drafts.find(draft))


def publish_stored(shop: Workshop, draft: Draft) -> Described:
    """Publish a draft; the result contains the analyst's token, this once."""
    for text in access_problems(with_access(draft)).values():
        raise Unsupported("The fields of the publication cannot be read.", text)
    result = publish(
        with_access(draft),
        shop.read(draft),
        drafts=shop.drafts,
        datasets=shop.datasets,
        tokens=shop.tokens,
        user=shop.caller.name,
    )
    return {"dataset": result.dataset, **token_view(result, address=shop.address)}


def with_access(draft: Draft) -> Draft:
    """Return a draft whose publication has all its fields."""
    stated = draft.fields.get("publication", {})
    return draft.with_fields("publication", {**{name: [value] for name, value in DEFAULTS.items()}, **stated})


def refuse_published(draft: Draft) -> None:
    if draft.published:
        raise Unsupported(
            f'This draft is published as "{draft.published}" and cannot be changed.',
            "Change the policy on its own page.",
        )


def save_step(shop: Workshop, draft: Draft, step: Step, fields: Fields) -> Draft:
    """Store the fields of a step. The source is opened first: one that cannot be read is not stored."""
    own_fields = {name: values for name, values in fields.items() if name not in ("csrf", "action")}
    if step == "source":
        return choose_source(shop, draft, own_fields)
    return shop.drafts.update(draft.id, lambda current: current.with_fields(step, own_fields))


def choose_source(shop: Workshop, draft: Draft, fields: Fields) -> Draft:
    """Use a file of the data folder, or a table of an allowed database."""
    chosen = {name: next(iter(fields.get(name, [])), "").strip() for name in ("source", "path", "database", "table")}
    if chosen["source"] == "path":
        path = listed_file(shop.folder, chosen["path"])
        types = read_types(path, path.name)
        source = {"kind": "path", "label": path.name, "path": f"data/{path.name}", "size": path.stat().st_size}
    elif chosen["source"] == "database":
        types = read_table_types(table_address(shop.settings.databases, chosen["database"], chosen["table"]))
        source = {"kind": "database", "label": chosen["table"], **{n: chosen[n] for n in ("database", "table")}}
    elif draft.source:
        return draft
    else:
        raise Unsupported("No file or table was chosen.", "Choose a file to upload, a file of the folder, or a table.")
    return set_source(shop, draft, source, types)


def set_source(shop: Workshop, draft: Draft, source: Mapping[str, Any], types: Mapping[str, Any]) -> Draft:
    """Store a new source. Columns of the same name and type keep what was typed."""
    if not types:
        raise TooLarge("The table has no columns.", "Choose another table.")

    def change(current: Draft) -> Draft:
        fields = dict(current.fields)
        if "columns" in fields:
            fields["columns"] = move_fields(fields["columns"], list(current.types), types, current.types)
        fields.pop("promise", None)
        return replace(current, source=dict(source), types=dict(types), fields=fields)

    return shop.drafts.update(draft.id, change)


def move_fields(fields: Fields, names: list[str], types: Mapping[str, Any], before: Mapping[str, Any]) -> Fields:
    """Return the fields of columns at their new positions; a column that is new or has another type starts afresh."""
    moved = first_fields(types)
    for index, (name, kind) in enumerate(types.items()):
        if before.get(name) == kind:
            end = f"-{names.index(name)}"
            own = {field[: -len(end)]: values for field, values in fields.items() if field.endswith(end)}
            moved = {key: values for key, values in moved.items() if not key.endswith(f"-{index}")}
            moved |= {f"{part}-{index}": list(values) for part, values in own.items()}
    return moved


def check_columns(shop: Workshop, draft: Draft) -> Described:
    """Compare the table of a draft with its columns: exact numbers, for the owner only. Nothing of it is stored."""
    reading = shop.read(draft)
    policy = reading.table_policy() if draft.source else None
    if policy is None:
        raise Unsupported("No column is complete yet.", "Fill in the bounds or the list of at least one column.")
    inspection = inspect(open_table(policy, folder=shop.folder.path))
    described = {column.name for column in reading.columns if column.kind != "leave-out"}
    return {**inspection.to_dict(), "skipped": sorted(described - set(policy.attributes))}


def draft_summary(shop: Workshop, draft: Draft) -> Described:
    """Return a draft as a line of the list."""
    reading = shop.read(draft)
    return {
        "id": draft.id,
        "name": reading.draft.value("people", "name") or "new data set",
        "owner": draft.owner,
        "made": draft.made,
        "changed": draft.changed,
        "source": str(draft.source.get("label", "")) or None,
        "step": next_step(reading),
        "published": draft.published or None,
    }


def next_step(reading: DraftPolicy) -> str:
    """Return the first step that has a problem; the publication if there is none."""
    steps = (step for step in STEPS if reading.problems.get(step) or (step == "promise" and reading.is_untouched))
    return next(steps, "publication")


def describe_draft(shop: Workshop, draft: Draft) -> Described:
    """Return a draft with its steps, its problems, its policy as text, and the meaning of its promise."""
    reading = shop.read(draft)
    policy = None
    try:
        policy = reading.policy(shop.folder.path)
    except TidegateError as error:  # a combination of fields that no single field shows
        reading.refuse("promise", "promise", f"{error.what} {error.do}".strip())
    source = {**draft.source, "shown": shown_source(draft.source)} if draft.source else None
    return {
        **draft_summary(shop, draft),
        "source": source,
        "types": dict(draft.types),
        "steps": [{"step": step, "problems": dict(reading.problems.get(step, {}))} for step in STEPS],
        "toml": reading.text,
        "complete": policy is not None and not reading.is_untouched,
        "promise": describe_promise(policy) if policy else None,
    }


def source_choices(shop: Workshop) -> Described:
    """Return the files and databases to choose from."""
    return {
        "files": listed_files(shop.folder),
        "databases": [shown_address(address) for address in shop.settings.databases],
        "encodings": ENCODINGS,
        "largest": shop.settings.largest_upload,
    }


def step_fields(draft: Draft, reading: DraftPolicy, step: Step) -> Fields:
    """Return the fields of a step as its form shows them."""
    if step == "publication":
        return with_access(draft).fields["publication"]
    if step == "promise":
        return reading.draft.fields.get("promise", {})
    return draft.fields.get(step) or default_fields(draft, step)
