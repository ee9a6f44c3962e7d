"""A policy with linked tables: patients, visits and admissions, and the public table of departments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from tidegate.policy import Policy, parse_policy

POLICY = """
version = 2

[dataset]
name = "clinic"
unit = { person = "patient_id", at_most = 2 }
rows = 40

[tables]
patients = { source = "patients.parquet", rows_per_person = 1 }
visits = { source = "visits.parquet" }
admissions = { source = "admissions.parquet" }
departments = { source = "departments.csv", reference = true }

[relations]
"visits.patient_id" = "patients.patient_id"
"visits.department" = "departments.department"

[attributes.patients]
patient_id = { kind = "key" }
sex = { kind = "category", values = ["f", "m"], missing = "value" }
age = { kind = "integer", from = 0, to = 9, missing = "lowest" }

[attributes.visits]
patient_id = { kind = "key" }
cost = { kind = "integer", from = 0, to = 4, missing = "lowest" }
department = { kind = "category", values = ["ER", "ICU", "Garden"], missing = "value" }

[attributes.admissions]
patient_id = { kind = "key" }
days = { kind = "integer", from = 0, to = 30 }

[attributes.departments]
department = { kind = "key" }
floor = { kind = "integer", from = 1, to = 5 }
wing = { kind = "category", values = ["east", "west"] }

[promise.identification]
rho = 0.9
worlds = "values"
protect = ["age", "visits.cost"]

[promise.loss]
epsilon = 20
"""
DEPARTMENTS = "department,floor,wing,head\nER,1,west,x\nICU,9,,y\nLab,2,east,z\n"


def clinic_policy(folder: Path, text: str = POLICY, *, departments: str = DEPARTMENTS) -> Policy:
    """Return the policy; its reference table is written to the folder."""
    (folder / "departments.csv").write_text(departments, "utf-8")
    return parse_policy(text, folder=folder)


PATIENTS = pa.schema({"patient_id": pa.string(), "sex": pa.string(), "age": pa.int64()})
VISITS = pa.schema({"patient_id": pa.string(), "cost": pa.int64(), "department": pa.string()})


def clinic_tables(patients: list[tuple[Any, ...]], visits: list[tuple[Any, ...]]) -> dict[str, pa.Table]:
    """Return the private tables from rows in the order of the columns."""
    return {"patients": _arrow(PATIENTS, patients), "visits": _arrow(VISITS, visits)}


def _arrow(schema: pa.Schema, rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)
