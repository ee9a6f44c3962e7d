"""The public columns of the Adult census rows (UCI). A missing value is the category "?"."""

from __future__ import annotations

from tidegate.policy import Attribute, Category, Follows, Integer, Shape, Shapes

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
