"""DataSynthesizer: a Bayesian network with two parents. FOLDER MODEL CELLS EPSILON SEED OUT

Bounds and lists are given, so that it does not take them from the rows. It has its own accounting: the noisy margins cost
epsilon in addition to the network's epsilon. Its pool of processes is one thread here, with the same result. Needs
numpy 1: it reads the names of numbers back with eval.
"""

import json
import sys
import tempfile
from multiprocessing.pool import ThreadPool
from pathlib import Path

import numpy as np
from DataSynthesizer.DataDescriber import DataDescriber
from DataSynthesizer.DataGenerator import DataGenerator
from DataSynthesizer.lib import PrivBayes
from serve import serve
from synthesis_tables import read_case, repair, silence

folder, _, _, epsilon, seed, out = sys.argv[1:]
epsilon, seed = float(epsilon), int(seed)
rows, facts = read_case(folder)
KINDS = {"category": "String", "integer": "Integer", "number": "Float"}
PrivBayes.Pool = lambda: ThreadPool(1)


def synthesize():
    lists = {name: known["values"] for name, known in facts.items() if known["kind"] == "category"}
    ranges = {name: [known["lower"], known["upper"]] for name, known in facts.items() if name not in lists}
    with tempfile.TemporaryDirectory() as work_folder:
        table, domains, described = (
            str(Path(work_folder, name)) for name in ("rows.csv", "domains.json", "described.json")
        )
        rows.to_csv(table, index=False)
        Path(domains).write_text(json.dumps(lists))
        describer = DataDescriber(category_threshold=20)
        describer.describe_dataset_in_correlated_attribute_mode(
            table,
            k=2,
            epsilon=epsilon,
            attribute_to_datatype={name: KINDS[known["kind"]] for name, known in facts.items()},
            attribute_to_is_categorical={name: name in lists for name in facts},
            attribute_to_is_candidate_key=dict.fromkeys(facts, False),
            categorical_attribute_domain_file=domains,
            numerical_attribute_ranges=ranges,
            seed=seed,
        )
        describer.save_dataset_description_to_file(described)
        generator = DataGenerator()
        generator.generate_dataset_in_correlated_attribute_mode(len(rows), described, seed=seed)
    synthetic = repair(generator.synthetic_dataset, rows, facts, np.random.default_rng(seed))
    synthetic.to_parquet(out, index=False)
    return len(synthetic)


serve({"synthesize": silence(synthesize, out + ".log")}, "DataSynthesizer", "numpy", "pandas")
