"""The Adult census rows (UCI) and their public columns.

80% of the rows are synthesized, 20% are held out to test a classifier. A missing value is the category "?".
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.synthesis.evaluation import Exam
from benchmarks.synthesis.exchange import PLENTY, Case
from benchmarks.synthesis.marginals import Bins
from benchmarks.synthesis.models import Matrix, flags
from tidegate.policy import Attribute, Category, Dataset, Follows, Integer, Loss, Policy, Shape, Shapes

SPLIT = 20261115
LISTS = {
    "workclass": "? Federal-gov Local-gov Never-worked Private Self-emp-inc Self-emp-not-inc State-gov Without-pay",
    "education": "Preschool 1st-4th 5th-6th 7th-8th 9th 10th 11th 12th HS-grad Some-college Assoc-voc Assoc-acdm Bachelors "
    "Masters Prof-school Doctorate",  # in order: education-num is the index, counted from 1
    "marital-status": "Divorced Married-AF-spouse Married-civ-spouse Married-spouse-absent Never-married Separated Widowed",
    "occupation": "? Adm-clerical Armed-Forces Craft-repair Exec-managerial Farming-fishing Handlers-cleaners "
    "Machine-op-inspct Other-service Priv-house-serv Prof-specialty Protective-serv Sales Tech-support Transport-moving",
    "relationship": "Husband Not-in-family Other-relative Own-child Unmarried Wife",
    "race": "Amer-Indian-Eskimo Asian-Pac-Islander Black Other White",
    "sex": "Female Male",
    "native-country": "? Cambodia Canada China Columbia Cuba Dominican-Republic Ecuador El-Salvador England France "
    "Germany Greece Guatemala Haiti Holand-Netherlands Honduras Hong Hungary India Iran Ireland Italy Jamaica Japan "
    "Laos Mexico Nicaragua Outlying-US(Guam-USVI-etc) Peru Philippines Poland Portugal Puerto-Rico Scotland South "
    "Taiwan Thailand Trinadad&Tobago United-States Vietnam Yugoslavia",
    "income": "<=50K >50K",
}
NUMBERS: dict[str, Integer] = {
    "age": Integer(17, 90),
    "fnlwgt": Integer(0, 1_499_999),
    "education-num": Integer(1, 16),
    "capital-gain": Integer(0, 99_999),
    "capital-loss": Integer(0, 4_356),
    "hours-per-week": Integer(1, 99),
}
COLUMNS = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
]
KNOWN: dict[str, Attribute] = {
    name: NUMBERS[name] if name in NUMBERS else Category(tuple(LISTS[name].split())) for name in COLUMNS
}
SHAPES = Shapes(
    columns={
        "fnlwgt": Shape(cells=150),
        "education": Shape(ordered=True),
        "capital-gain": Shape(scale="log", cells=39, atoms=(0, 99_999), heaped=True),
        "capital-loss": Shape(edges=range(100, 4_400, 100), atoms=(0, 4_356), heaped=True),
    },
    follows={
        "education-num": Follows("education", {name: index for index, name in enumerate(LISTS["education"].split(), 1)})
    },
)
TARGET = "income"
BINS: Bins = {
    "age": range(20, 90, 5),
    "fnlwgt": range(50_000, 1_500_000, 50_000),
    "education-num": range(2, 17),
    "capital-gain": (1, 2_000, 3_000, 5_000, 7_000, 10_000, 15_000, 20_000, 50_000, 99_999),
    "capital-loss": (1, 1_500, 1_700, 1_900, 2_100, 2_500),
    "hours-per-week": range(5, 100, 5),
}


def read(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows to synthesize, and the held-out rows."""
    rows = pd.read_csv(folder / "adult.csv", keep_default_na=False).replace("", "?")[COLUMNS]
    order = np.random.RandomState(SPLIT).permutation(len(rows))
    cut = int(0.8 * len(rows))
    return rows.iloc[order[:cut]].reset_index(drop=True), rows.iloc[order[cut:]].reset_index(drop=True)


def exam(folder: Path) -> Exam:
    """Return the evaluation of a synthetic Adult table."""
    train, test = read(folder)
    policy = Policy(Dataset("adult", rows=len(train)), KNOWN, loss=Loss(PLENTY), synthesis=SHAPES)
    return Exam(Case("adult", train, policy), test, BINS, TARGET, income_design, hours_design)


def income_design(rows: pd.DataFrame) -> tuple[Matrix, Matrix]:
    """Return the design of income on age, its square, education, hours, sex, marriage, a capital gain and race."""
    hours = (rows["hours-per-week"].to_numpy(float) - 40.4) / 12.4
    gains = rows["capital-gain"].to_numpy(float) > 0
    regressors = [*_person(rows), hours, flags(rows["race"], "White"), gains.astype(float)]
    return np.column_stack(regressors), flags(rows["income"], ">50K")


def hours_design(rows: pd.DataFrame) -> tuple[Matrix, Matrix]:
    """Return the design of hours on age, its square, education, sex and marriage."""
    return np.column_stack(_person(rows)), rows["hours-per-week"].to_numpy(float)


def _person(rows: pd.DataFrame) -> list[Matrix]:
    age = (rows["age"].to_numpy(float) - 38.6) / 13.7
    education = (rows["education-num"].to_numpy(float) - 10.1) / 2.6
    married = flags(rows["marital-status"], "Married-civ-spouse", "Married-AF-spouse")
    return [np.ones(len(rows)), age, age**2, education, flags(rows["sex"], "Male"), married]
