"""schemathesis over the whole API, in-process: no 5xx, no undocumented status, no private value.

Some examples of each address in every run, 300 in `make claims`, as an owner and as the public.
"""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from support.service import SECRET, RunningService

from tidegate.service.access.permissions import RULES

SLOW = ("/v1/risk/", "audits", "syntheses", "tree", "distributions", "/tokens")
CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
)
KNOWN = {"name": "people", "promise": "hq", "collection": "shoppers", "question": "age"}  # else all would be 404
LOCAL = {"Host": "127.0.0.1"}
ROLES = {rule.key: rule.roles for rule in RULES}
BOUNDED: Any = {
    "deadline": None,
    "derandomize": True,
    "database": None,
    "phases": (Phase.generate,),
    "suppress_health_check": list(HealthCheck),
}


@pytest.fixture(scope="module")
def schema(shared_service: RunningService) -> Any:
    return schemathesis.openapi.from_asgi("/openapi.json", shared_service.app, headers=LOCAL)


@pytest.mark.parametrize("role", ["owner", "public"])
@pytest.mark.parametrize("examples", [3, pytest.param(300, marks=pytest.mark.long)])
def test_api_matches_its_schema(shared_service: RunningService, schema: Any, role: str, examples: int) -> None:
    tried = 0
    for get_all_operation in schema.get_all_operations():
        operation = get_all_operation.ok()
        some = 2 if examples < 300 and any(word in operation.path for word in SLOW) else examples
        if role not in ROLES[operation.method.upper(), operation.path] and examples < 300:
            some = 1  # refused before anything is read; the matrix of roles covers every such address
        tried += 1

        @settings(max_examples=some, **BOUNDED)
        @given(case=operation.as_strategy())
        def try_one(case: Any) -> None:
            case.path_parameters.update({k: v for k, v in KNOWN.items() if k in case.path_parameters})
            response = case.call(
                headers={**LOCAL, **shared_service.as_role(role)}, timeout=120
            )  # the first desk compiles
            case.validate_response(response, checks=CHECKS)
            if not case.operation.path.endswith(("/released", "/requests", "/status")):
                assert SECRET not in response.text

        try_one()
    assert tried > 35
