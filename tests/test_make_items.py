from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from psychometrics import data
from psychometrics.paths import data_dir
from tests.conftest import needs

KEYS = [key for key in data.registry() if key.startswith("naep_")]
OPTIONS = [f"option {k}" for k in range(1, 5)]
needs_files = needs(*KEYS)


@pytest.fixture(scope="module")
def shipped():
    folder = data_dir() / "items"
    return pd.read_csv(folder / "items.csv"), pd.read_parquet(folder / "models.parquet")


def test_the_shipped_tables_are_whole_and_hold_no_text(shipped):
    items, models = shipped
    assert items["item_id"].nunique() == 549
    assert items.groupby("subject")["item_id"].nunique().to_dict() == {
        "economics": 93,
        "history": 204,
        "reading": 252,
    }
    assert items[OPTIONS].sum(axis=1).between(0.9, 1.02).all()
    assert items["key"].isin([1, 2, 3, 4]).all()
    words = items.select_dtypes(exclude="number").columns
    assert set(words) == {"item_id", "subject", "block"}
    assert len(models) == 18 * 549 * 4
    assert np.exp(models[OPTIONS].to_numpy(float)).sum(axis=1) == pytest.approx(1, abs=2e-3)
