"""dpmm: MST, PrivBayes or AIM, as (epsilon, delta = 1e-5) for rows added or removed. FOLDER MODEL CELLS EPSILON SEED OUT

CELLS native: the bounds and lists are given, its own PrivTree cuts the numbers (a tenth of epsilon); public: the public
cells are given as categories, all of epsilon goes to the model, and a number is drawn evenly inside its cell. AIM has the size
limit of its paper, 80 MB, which the pipeline would leave out; AIM1MB a smaller one.
"""

import sys
from time import perf_counter

import numpy as np
from dpmm.models.base.mbi import FactoredInference
from dpmm.pipelines import AIMPipeline, MSTPipeline, PrivBayesPipeline
from serve import serve
from synthesis_tables import cells_of, codes_of, frame_of, labels, read_case, silence

MODELS = {"MST": MSTPipeline, "PrivBayes": PrivBayesPipeline, "AIM": AIMPipeline, "AIM1MB": AIMPipeline}
SIZES = {"AIM": {"max_model_size": 80}, "AIM1MB": {"max_model_size": 1}}
DELTA = 1e-5

folder, model, cells, epsilon, seed, out = sys.argv[1:]
epsilon, seed, is_public = float(epsilon), int(seed), cells == "public"
codes, facts = read_case(folder)


def domain_of(known):
    if is_public:
        return {"categories": labels(len(known["starts"]))}
    return (
        {"categories": labels(known["size"])}
        if known["kind"] == "category"
        else {"lower": 0, "upper": known["size"] - 1}
    )


def synthesize():
    budget = (
        {"epsilon": epsilon, "proc_epsilon": None}
        if is_public
        else {"epsilon": 0.9 * epsilon, "proc_epsilon": 0.1 * epsilon}
    )
    pipeline = MODELS[model](**budget, delta=DELTA, n_jobs=1, **SIZES.get(model, {}))
    domain = {known["name"]: domain_of(known) for known in facts}
    pipeline.fit(cells_of(codes, facts) if is_public else frame_of(codes, facts), domain=domain, random_state=seed)
    frame = pipeline.generate(n_records=len(codes), random_state=seed + 1)
    synthetic = codes_of(frame, facts, np.random.default_rng(seed), cells=is_public)
    np.save(out, synthetic)
    return len(synthetic)


def log_fits(estimate):
    """Log every fit of the graphical model with its seconds: AIM takes long and prints nothing."""

    def estimated(self, measurements, *more, **settings):
        started = perf_counter()
        model = estimate(self, measurements, *more, **settings)
        print(f"{len(measurements)} tables fitted in {perf_counter() - started:.1f} s, model of {model.size:,} cells")
        return model

    return estimated


FactoredInference.estimate = log_fits(FactoredInference.estimate)
serve({"synthesize": silence(synthesize, out + ".log")}, "dpmm", "numpy", "pandas")
