"""
Ratings: what to recommend
==========================

People rate a few of many films, from −5 to 5. What would they think of the others? The ratings
are simulated: 400 people, 80 films of five genres, three kinds of taste in amounts ≥ 0, and only
one rating in four is there. (``seminmf.datasets.load_jester`` reads real ratings of jokes from a
file of yours.)
"""

import matplotlib.pyplot as plt
import numpy as np

from seminmf import SkellamSNMF

# %%
# A taste likes some genres and dislikes others, and each film has something of its own. People have
# tastes in amounts that are often near zero.

rng = np.random.default_rng(4)
genres = ["comedy", "romance", "drama", "action", "horror"]
genre = np.repeat(np.arange(5), 16)
likes = np.array(
    [[1.2, 1.0, 0.2, -0.8, -1.2], [-0.6, -0.8, -0.4, 1.4, 0.9], [0.2, -0.3, 1.5, -0.6, 0.1]]
)
tastes = likes[:, genre] + rng.normal(scale=0.4, size=(3, 80))
amounts = rng.gamma(0.7, 2.0, size=(400, 3))
opinions = amounts @ tastes + rng.normal(scale=0.5, size=80)
ratings = np.clip(np.round(opinions + rng.normal(scale=1.0, size=opinions.shape)), -5, 5)
seen = rng.random(ratings.shape) < 0.25
X = np.where(seen, ratings, np.nan)

# %%
# The intercept is what everybody thinks of a film. A prediction is compared with the ratings that
# were hidden, and with what the means of films and people say.

model = SkellamSNMF(n_components=3, fit_intercept=True, random_state=0).fit(X)
predicted = np.clip(model.impute(X), -5, 5)
film = np.nanmean(X, axis=0)
person = np.nanmean(X - film, axis=1, keepdims=True)
for name, guess in {"means of films and people": film + person, "SkellamSNMF": predicted}.items():
    error = np.sqrt(np.mean((guess - ratings)[~seen] ** 2))
    print(f"{name}: error of a hidden rating {error:.2f}")

# %%
# Does the best of the films that somebody has not rated please? On the right, the hidden ratings
# of each person's first recommendation, and of a film drawn at random.

first = np.where(seen, -np.inf, predicted).argmax(axis=1)
random = np.where(seen, -np.inf, rng.random(seen.shape)).argmax(axis=1)
people = np.arange(len(X))

figure, axes = plt.subplots(1, 3, figsize=(10, 5), layout="constrained", width_ratios=(3, 3, 2))
colours = plt.get_cmap("RdBu_r").with_extremes(bad="0.85")
rows = np.lexsort((-model.amounts_.max(axis=1), model.amounts_.argmax(axis=1)))[::4]
for panel, values, title in zip(
    axes, (X, predicted), ("ratings that are there", "and those that are predicted"), strict=False
):
    panel.imshow(values[rows], cmap=colours, vmin=-5, vmax=5, aspect="auto")
    panel.set_xticks(np.arange(5) * 16 + 7.5, genres)
    panel.tick_params(axis="x", length=0)
    panel.set(title=title, xlabel="film", yticks=[])
axes[0].set_ylabel("person")
bins = np.arange(-5.5, 6)
axes[2].hist(ratings[people, random], bins, color="0.8", label="drawn at random")
axes[2].hist(ratings[people, first], bins, histtype="step", color="C1", lw=2, label="recommended")
axes[2].set(title="the hidden ratings of films", xlabel="rating", ylabel="people")
axes[2].legend(loc="upper left")
plt.show()
