"""How to read each number, in a sentence."""

from __future__ import annotations

CAUTION = "Not for analysts: computed from the true rows and not paid for."
WHY = (
    "These numbers depend on true rows beyond what the ledger charged. They are for whoever holds the data; an analyst who "
    "sees them learns more than was promised. What analysts may see is the paid quality (private_quality), which is charged on the ledger."
)

READS = {
    "tree": "A tree tries to tell synthetic from original rows. pMSE is 0 where it cannot, and the largest possible where it "
    "always can. The ratio compares it with trees that tell apart rows shuffled between the tables: about 1 means as alike "
    "as two samples of one population, and rows drawn from a good fit to these very rows can come out below. The same difference gives a larger ratio in larger tables, so compare tables of one size.",
    "logistic": "A regression on every column by itself: it notices shifted means and shares, and no associations. The ratio is "
    "about 1 where the synthetic rows come from the right model fitted to these rows; the null follows from the sizes alone, "
    "so noise for privacy is not excused.",
    "logistic with pairs": "The same with products of columns: it also notices associations that are weaker or stronger.",
    "margin": "Total variation: the share of rows that would have to change their value for the two columns to agree. The tick is "
    "what two samples of one population show by chance at these sizes.",
    "pair": "Total variation of two columns at once, each in at most 12 groups: the share of rows that would have to change.",
    "association": "Cramér's V: 0 where two columns have nothing to do with each other, 1 where one settles the other. A "
    "difference below 0 is an association that the synthetic table lost.",
    "regression": "Where an interval of the synthetic tables covers the original estimate, an analyst comes to the same. Overlap is 1 "
    "for equal intervals, 0 where they touch, below 0 where they are apart.",
    "single": "Interval from one table: v (n_s/n + 1), for rows drawn from a fitted model (Raab, Nowok, Dibben 2017). The noise for "
    "privacy is not in it, as one table cannot show it: at a small epsilon it is too short. It is wider than the original's, so "
    "overlaps of 0.85 are the best that one table of the same size can reach.",
    "between": "Intervals from several tables, each of a private model of its own: v n_s/n + b/m (Reiter 2003, with the sizes). The "
    "noise for privacy is in b, the variance between tables.",
    "raghunathan": "Intervals from several tables by (1 + 1/m) b - v (Raghunathan, Reiter, Rubin 2003), made for multiple imputation: "
    "for private models, which are not drawn from the original's posterior, it is mostly too wide.",
}
