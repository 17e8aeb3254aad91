"""Scores of the estimators for tables beside scikit-learn's, written into docs/guides/tables.md.

python scripts/table_scores.py

Means over three splits (a quarter of the rows is tested) and seeds, all with their defaults: accuracy for
classes, R² for numbers.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from sklearn import datasets
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polygrad.models import tables

PAGE = Path(__file__).resolve().parents[1] / "docs" / "guides" / "tables.md"
START, END = "<!-- scores: scripts/table_scores.py writes them -->", "<!-- end of scores -->"
SETS = {"breast_cancer": True, "wine": True, "digits": True, "diabetes": False}
SEEDS = (0, 1, 2)


def models(is_classifier: bool, seed: int) -> dict[str, Any]:
    """By the name of a column."""
    theirs = (
        (MLPClassifier, GradientBoostingClassifier)
        if is_classifier
        else (MLPRegressor, GradientBoostingRegressor)
    )
    kind = "Classifier" if is_classifier else "Regressor"
    return {
        **{name: getattr(tables, f"{name}{kind}")(random_state=seed) for name in ("MLP", "TabM", "NAM")},
        "scikit-learn's MLP": make_pipeline(StandardScaler(), theirs[0](random_state=seed)),
        "its gradient boosting": theirs[1](random_state=seed),
    }


def scores(name: str) -> dict[str, float]:
    """The mean score of each model on a data set."""
    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    found: dict[str, list[float]] = {}
    for seed in SEEDS:
        x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.25, random_state=seed)
        for column, model in models(SETS[name], seed).items():
            score = model.fit(x_train, y_train).score(x_test, y_test)
            found.setdefault(column, []).append(score)
            print(f"{name} {column} {seed}: {score:.3f}", file=sys.stderr)
    return {column: sum(values) / len(values) for column, values in found.items()}


def table(rows: dict[str, dict[str, float]]) -> str:
    """Markdown; the best of a row is bold."""
    columns = list(next(iter(rows.values())))
    lines = ["| | " + " | ".join(columns) + " |", "| --- |" + " ---: |" * len(columns)]
    for name, found in rows.items():
        best = max(round(v, 3) for v in found.values())
        cells = [f"**{v:.3f}**" if round(v, 3) == best else f"{v:.3f}" for v in found.values()]
        measure = "accuracy" if SETS[name] else "R²"
        lines.append(f"| {name.replace('_', ' ')}, {measure} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.split(START)[0], text.split(END)[1]
    rows = {name: scores(name) for name in SETS}
    PAGE.write_text(f"{before}{START}\n{table(rows)}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
