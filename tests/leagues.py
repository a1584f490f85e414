"""Results of football leagues, drawn at random."""

import itertools

import numpy as np
import pandas as pd

N_TEAMS = 6


def league(n_seasons, seed=0, spread=0.8):
    """Results of a league of teams that differ in strength."""
    rng = np.random.default_rng(seed)
    rows = []
    for year in range(2000, 2000 + n_seasons):
        strength = np.exp(spread * rng.normal(size=N_TEAMS))
        matches = list(itertools.permutations(range(N_TEAMS), 2))
        for number, place in enumerate(rng.permutation(len(matches))):
            home, away = matches[place]
            goals = rng.poisson([1.6 * strength[home], 1.2 * strength[away]])
            round_ = 1 + number // (N_TEAMS // 2)
            rows.append([year, round_, "2000-01-01", f"t{home}", f"t{away}", *goals])
    columns = ["year", "round", "date", "home", "away", "home_goals", "away_goals"]
    return pd.DataFrame(rows, columns=columns)
