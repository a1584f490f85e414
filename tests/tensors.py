"""Tensor models for tests, and what they are by plain einsum, written from the formulas alone."""

from typing import Any, NamedTuple

import numpy as np

from seminmf._model.language import read, sizes_of


class Case(NamedTuple):
    """A model, and data that suit it."""

    model: Any
    n_components: Any
    signed: Any
    shapes: Any
    factors: Any = None
    frozen: Any = None

    def data(self, likelihood, gaps, seed=3):
        """Random data, with gaps or without."""
        random = np.random.default_rng(seed)
        shapes = self.shapes if isinstance(self.shapes, dict) else {"X": self.shapes}
        found = {}
        for name, shape in shapes.items():
            X = random.normal(0, 6, shape)
            if self.signed is None:
                X = X if "-" in str(self.model).replace("->", "") else np.abs(X)
            X = X.round() if likelihood == "integer" else X
            if gaps:
                X[random.random(shape) < 0.2] = np.nan
            found[name] = X
        return found if isinstance(self.shapes, dict) else found["X"]

    def rates(self, parts, weights):
        """Rates of both signs of each tensor, by einsum with all letters at once."""
        plan = read(self.model)
        shapes = self.shapes if isinstance(self.shapes, dict) else {"X": self.shapes}
        sizes, found, number = sizes_of(plan, self.n_components, shapes), {}, 0
        for one in plan.observations:
            total = np.zeros((2, *shapes[one.name]))
            for term in one.terms:
                total += _term(term, one.output, sizes, parts, _weight(plan, number, weights))
                number += 1
            found[one.name] = total
        return found


def _weight(plan, number, weights):
    """The unit of a term and its weights, if it shares that."""
    for unit, own in weights.items():
        terms = [n for n, term in enumerate(plan.terms) if unit in [u.factor for u in term.uses]]
        if number in terms:
            latent = [str(axis) for axis in plan.factors[unit] if str(axis) in plan.latent]
            return own[terms.index(number)], latent
    return None


def _term(term, output, sizes, parts, weight):
    numbers, operands, signs = {}, [], []

    def number(label):
        return numbers.setdefault(label, len(numbers))

    for n, use in enumerate(term.uses):
        own = parts[use.factor]
        labels = [number(f"sign {n}")]
        signs.append(labels[0])
        for axis in use.axes:
            labels.append(number(str(axis)))
            if axis.lag:
                n_cells, n_lags = sizes[axis.letter], sizes[axis.lag]
                lagged = np.zeros((n_cells, n_cells + n_lags - 1, n_lags))
                for t in range(n_cells):
                    for d in range(n_lags):
                        lagged[t, t - d + n_lags - 1, d] = 1
                operands += [lagged, [number(axis.letter), labels[-1], number(axis.lag)]]
        operands += [own, labels]
    if weight is not None:
        operands += [weight[0], [number(label) for label in weight[1]]]
    full = np.einsum(*operands, [*signs, *(number(letter) for letter in output)], optimize=True)
    total = np.zeros((2, *full.shape[len(signs) :]))
    for sign in np.ndindex(full.shape[: len(signs)]):
        total[(sum(sign) + term.subtracted) % 2] += full[sign]
    return total


_BASIS = np.exp(-0.5 * ((np.arange(9) - np.linspace(0, 8, 4)[:, None]) / 2) ** 2)
CASES = {
    "CP": Case("nr,jr,kr->njk", 2, "jr", (8, 5, 4)),
    "two signed": Case("nr,jr,kr->njk", 2, ("jr", "kr"), (8, 5, 4)),
    "signed unit": Case("nr,jr,kr->njk", 2, "nr", (8, 5, 4)),
    "Tucker": Case("na,abc,jb,kc->njk", {"a": 3, "b": 2, "c": 2}, "jb", (8, 5, 4)),
    "train": Case("na,ajb,bk->njk", {"a": 3, "b": 2}, "bk", (8, 5, 4)),
    "ring": Case("zna,ajb,bkz->njk", {"z": 2, "a": 2, "b": 2}, "ajb", (8, 5, 4)),
    "coupled": Case(
        {"a": "nr,jr,kr->njk", "b": "nr,mr->nm"}, 2, ("jr", "mr"), {"a": (8, 5, 4), "b": (8, 3)}
    ),
    "convolutive": Case("(t-d)r,dcr->tc", {"r": 2, "d": 3}, "dcr", (14, 3)),
    "jitter": Case("ndr,(t-d)r,cr->ntc", {"r": 2, "d": 3}, "cr", (7, 6, 3)),
    "sum": Case("nk,kt + nq,qt -> nt", {"k": 2, "q": 1}, "kt", (8, 9)),
    "difference": Case("nk,kt - n,t -> nt", 2, None, (8, 9)),
    "tied": Case("r,A:ir,A:jr->ij", 2, "r", (7, 7)),
    "frozen": Case("nr,rb,bt->nt", {"r": 2, "b": 4}, "rb", (8, 9), {"bt": _BASIS}, {"bt": True}),
    "nonnegative": Case("nr,jr,kr->njk", 2, None, (8, 5, 4)),
}
