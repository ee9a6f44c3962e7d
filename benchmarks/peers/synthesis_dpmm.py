"""dpmm: MST, PrivBayes or AIM, as (epsilon, delta = 1e-5) for rows added or removed. FOLDER MODEL CELLS EPSILON SEED OUT

CELLS native: the bounds and lists are given, its own PrivTree cuts the numbers (a tenth of epsilon); ours: the public
cells are given as categories, all of epsilon goes to the model, and a number is drawn evenly inside its cell. AIM has the size
limit of its paper, 80 MB, which the pipeline would leave out; AIM1MB a smaller one.
"""

import sys
from time import perf_counter

import numpy as np
from dpmm.models.base.mbi import FactoredInference
from dpmm.pipelines import AIMPipeline, MSTPipeline, PrivBayesPipeline
from serve import serve
from synthesis_tables import cells_of, read_case, repair, silence, values_of

MODELS = {"MST": MSTPipeline, "PrivBayes": PrivBayesPipeline, "AIM": AIMPipeline, "AIM1MB": AIMPipeline}
SIZES = {"AIM": {"max_model_size": 80}, "AIM1MB": {"max_model_size": 1}}
DELTA = 1e-5

folder, model, cells, epsilon, seed, out = sys.argv[1:]
epsilon, seed = float(epsilon), int(seed)
rows, facts = read_case(folder)
limit = SIZES.get(model, {})


def native():
    domain = {
        name: {"categories": known["values"]}
        if known["kind"] == "category"
        else {"lower": known["lower"], "upper": known["upper"]}
        for name, known in facts.items()
    }
    pipeline = MODELS[model](epsilon=0.9 * epsilon, proc_epsilon=0.1 * epsilon, delta=DELTA, n_jobs=1, **limit)
    pipeline.fit(rows, domain=domain, random_state=seed)
    return pipeline.generate(n_records=len(rows), random_state=seed + 1)


def ours():
    coded, domain = cells_of(rows, facts)
    pipeline = MODELS[model](epsilon=epsilon, proc_epsilon=None, delta=DELTA, n_jobs=1, **limit)
    pipeline.fit(coded, domain=domain, random_state=seed)
    synthetic = pipeline.generate(n_records=len(rows), random_state=seed + 1)
    return values_of(synthetic, facts, np.random.default_rng(seed))


def log_fits(estimate):
    """Log every fit of the graphical model with its seconds: AIM takes long and prints nothing."""

    def estimated(self, measurements, *more, **settings):
        started = perf_counter()
        model = estimate(self, measurements, *more, **settings)
        print(f"{len(measurements)} tables fitted in {perf_counter() - started:.1f} s, model of {model.size:,} cells")
        return model

    return estimated


FactoredInference.estimate = log_fits(FactoredInference.estimate)


def synthesize():
    synthetic = repair(ours() if cells == "ours" else native(), rows, facts, np.random.default_rng(seed))
    synthetic.to_parquet(out, index=False)
    return len(synthetic)


serve({"synthesize": silence(synthesize, out + ".log")}, "dpmm", "numpy", "pandas")
