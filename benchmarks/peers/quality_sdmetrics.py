"""SDMetrics: the two parts of SDV's quality score, on the same public cells for all tables. FOLDER SYNTHETIC"""

import sys

import numpy as np
from sdmetrics.reports.single_table import QualityReport
from serve import serve
from synthesis_tables import frame_of, read_case

folder, synthetic = sys.argv[1:]
codes, facts = read_case(folder)
frames = [frame_of(part, facts) for part in (codes, np.load(synthetic))]
columns = {known["name"]: {"sdtype": "categorical" if known["kind"] == "category" else "numerical"} for known in facts}
report = QualityReport()


def shapes():
    report.generate(*frames, {"columns": columns}, verbose=False)
    return report.get_properties()["Score"][0]


def trends():
    return report.get_properties()["Score"][1]


serve({"shapes": shapes, "trends": trends}, "sdmetrics")
