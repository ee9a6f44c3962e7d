"""The tests that released records must pass, one file each. A promise can combine any of them."""

from __future__ import annotations

from tidegate.release.mechanisms.chi_square import ChiSquare
from tidegate.release.mechanisms.dixon import Dixon
from tidegate.release.mechanisms.kullback_leibler import KullbackLeibler
from tidegate.release.mechanisms.mutual_information import MutualInformation
from tidegate.release.mechanisms.posterior import Posterior
from tidegate.release.mechanisms.test import Reading, Test

REGISTERED: dict[str, type[Test]] = {
    test.name: test for test in (MutualInformation, KullbackLeibler, ChiSquare, Dixon, Posterior)
}

__all__ = ["REGISTERED", "ChiSquare", "Dixon", "KullbackLeibler", "MutualInformation", "Posterior", "Reading", "Test"]
