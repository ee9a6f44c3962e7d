"""DataSynthesizer: a Bayesian network with two parents. FOLDER MODEL CELLS EPSILON SEED OUT

Bounds and lists are given. It has its own accounting: the noisy margins cost epsilon in addition to the network's epsilon. It
still counts cells only up to the largest one that a row is in (PrivBayes.get_noisy_distribution_of_attributes), without noise. Its pool of processes is one thread here, with the same result. Needs
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
from synthesis_tables import codes_of, frame_of, labels, read_case, silence

folder, _, _, epsilon, seed, out = sys.argv[1:]
epsilon, seed = float(epsilon), int(seed)
codes, facts = read_case(folder)
PrivBayes.Pool = lambda: ThreadPool(1)


def synthesize():
    lists = {known["name"]: labels(known["size"]) for known in facts if known["kind"] == "category"}
    names = [known["name"] for known in facts]
    with tempfile.TemporaryDirectory() as work_folder:
        table, domains, described = (
            str(Path(work_folder, name)) for name in ("rows.csv", "domains.json", "described.json")
        )
        frame_of(codes, facts).to_csv(table, index=False)
        Path(domains).write_text(json.dumps(lists))
        describer = DataDescriber(category_threshold=20)
        describer.describe_dataset_in_correlated_attribute_mode(
            table,
            k=2,
            epsilon=epsilon,
            attribute_to_datatype={name: "String" if name in lists else "Integer" for name in names},
            attribute_to_is_categorical={name: name in lists for name in names},
            attribute_to_is_candidate_key=dict.fromkeys(names, False),
            categorical_attribute_domain_file=domains,
            numerical_attribute_ranges={
                known["name"]: [0, known["size"] - 1] for known in facts if known["name"] not in lists
            },
            seed=seed,
        )
        describer.save_dataset_description_to_file(described)
        generator = DataGenerator()
        generator.generate_dataset_in_correlated_attribute_mode(len(codes), described, seed=seed)
    synthetic = codes_of(generator.synthetic_dataset, facts, np.random.default_rng(seed))
    np.save(out, synthetic)
    return len(synthetic)


serve({"synthesize": silence(synthesize, out + ".log")}, "DataSynthesizer", "numpy", "pandas")
