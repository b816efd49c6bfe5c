"""Loose prefixes of `relevant` rows: an object needs one of these terms to reach the threshold."""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import kernel
from placewire.objects.kernels.best_of_rows import ALPHA, NORM, ScoredRows

PADDING = 1e-7  # more than any rounding error of a score


@kernel
def rows_to_prefixes(rows: ScoredRows, frequency: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Return which literals are in the loose prefix of their row: bool[literals].

    Terms are added from the rarest on, by (`frequency` f64[literals], hash), until the rest
    cannot reach the threshold, even at the row's own place. An object's weights form a vector of
    length 1, so the rest contributes at most the length of the row's own weights.
    """
    literal_offsets, literal_term = rows.literal_offsets, rows.literal_term
    literal_idf, weights = rows.literal_idf, rows.weights
    prefix = np.zeros(frequency.size, np.bool_)
    for row in range(theta.size):
        first, last = literal_offsets[row], literal_offsets[row + 1]
        alpha, norm = weights[row, ALPHA], weights[row, NORM]
        needed = theta[row] / 1e9 - alpha - PADDING
        left = 0.0
        if norm > 0.0:
            for at in range(first, last):
                weight = literal_idf[at] / norm
                left += weight * weight
        while True:
            rarest = -1
            for at in range(first, last):
                if prefix[at]:
                    continue
                if (
                    rarest < 0
                    or frequency[at] < frequency[rarest]
                    or (
                        frequency[at] == frequency[rarest]
                        and literal_term[at] < literal_term[rarest]
                    )
                ):
                    rarest = at
            if rarest < 0 or (theta[row] >= 0 and (1.0 - alpha) * np.sqrt(max(left, 0.0)) < needed):
                break
            prefix[rarest] = True
            if norm > 0.0:
                weight = literal_idf[rarest] / norm
                left -= weight * weight
                if left < 1e-12:
                    left = 0.0
    return prefix
