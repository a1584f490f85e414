"""The model and its two algorithms, written for reading: plain NumPy, a loop over the cells.

It follows Algorithms 1 and 2 and the appendix of Fuentes and Richard (2021) with their misprints
corrected, in the library's orientation: X is (J, I) with NaN for a gap, activations are (J, K),
atoms are (2, K, I). It shares no code with the library, which is tested against it.

Meant for small problems with moderate values. Rates must be positive where the data need them.

Priors are scalars, or broadcast to (J, K) for activations and (2, K, I) for atoms. A sample weight
w counts a sample w times: its likelihood, its activations' prior, and its share in the atoms.
"""

import numpy as np
from scipy.special import digamma, gammaln, logsumexp, xlogy

# --- One cell ---


def bessel_log_weights(n, sigma):
    """Logarithms of sigma^m / (m! Γ(n + m + 1)) for m = 0, 1, …: the terms of 0F1(n+1, σ)/Γ(n+1).

    They are also the unnormalised probabilities of m hidden counts on the smaller side, given a
    difference of n. All terms are positive, so their sum loses nothing.
    """
    mode = (np.sqrt(n * n + 4 * sigma) - n) / 2
    m = np.arange(int(mode + 20 * np.sqrt(mode + 1)) + 60)
    return xlogy(m, sigma) - gammaln(m + 1) - gammaln(n + m + 1)


def log_hyp(x, sigma, likelihood):
    """ln[0F1(|x|+1, σ) / Γ(|x|+1)] for integer data, and its limit for real data."""
    n = abs(x)
    if likelihood == "integer":
        return logsumexp(bessel_log_weights(n, sigma))
    root = np.sqrt(n * n + 4 * sigma)
    return root - xlogy(n, (n + root) / 2)


def log_likelihood(x, rates, likelihood):
    """ln P(x) of the Skellam distribution, or minus the divergence D(x | λ₀, λ₁)."""
    positive, negative = max(x, 0.0), max(-x, 0.0)
    return (
        log_hyp(x, rates[0] * rates[1], likelihood)
        + xlogy(positive, rates[0])
        + xlogy(negative, rates[1])
        - rates[0]
        - rates[1]
    )


def smaller_side(x, sigma, likelihood):
    """The smaller of E[Z₀ | x] and E[Z₁ | x]; the larger one is |x| more."""
    n = abs(x)
    if likelihood == "integer":
        log_weights = bessel_log_weights(n, sigma)
        probability = np.exp(log_weights - logsumexp(log_weights))
        return np.sum(np.arange(probability.size) * probability)
    root = np.sqrt(n * n + 4 * sigma)
    return 2 * sigma / (n + root) if root > 0 else 0.0


def multipliers(x, rates, likelihood):
    """U₀ and U₁, the expected hidden counts over their rates; 1 where nothing was observed."""
    if np.isnan(x):
        return np.ones(2)
    smaller = smaller_side(x, rates[0] * rates[1], likelihood)
    expected = np.array([smaller + max(x, 0.0), smaller + max(-x, 0.0)])
    # A rate of zero has no hidden counts, and whatever U is there, it is multiplied by zero.
    return np.divide(expected, rates, out=np.zeros(2), where=rates > 0)


# --- One pass over the data ---


def expected_counts(X, activations, atoms, likelihood, sample_weight, background=0.0):
    """Hidden counts of each activation (J, K) and each atom (2, K, I).

    `background` (2, J, I) has rates without any component.
    """
    rates = activations @ atoms + background
    U = np.ones_like(rates)
    for j, i in np.ndindex(X.shape):
        U[:, j, i] = multipliers(X[j, i], rates[:, j, i], likelihood)
    U_act = np.einsum("sji,ski->jk", U, atoms)
    U_atoms = np.einsum("sji,jk->ski", U, activations * sample_weight[:, np.newaxis])
    return activations * U_act, atoms * U_atoms


# --- Algorithm 1: EM ---


def em_iteration(
    X,
    activations,
    atoms,
    *,
    likelihood,
    activation_shape=1.0,
    activation_rate=1e-3,
    atom_shape=1.0,
    sample_weight=None,
    frozen=None,
    activation_floor=0.0,
    atom_floor=0.0,
):
    """One iteration of Algorithm 1: both factors from the same E-step.

    Where some shape is below 1, the floors must be positive; the objective depends on them.
    """
    counts, atom_counts = expected_counts(
        X, activations, atoms, likelihood, weights_of(sample_weight, X)
    )
    numerator = counts + activation_shape - 1
    new_activations = np.maximum(numerator / (1 + activation_rate), activation_floor)
    new_atoms = normalise_with_floor(atom_counts + atom_shape - 1, atom_floor)
    return new_activations, keep_frozen(new_atoms, atoms, frozen)


def normalise_with_floor(counts, floor):
    """θ = max(c/ν, ε) for each component, with ν such that Σθ = 1."""
    theta = np.empty_like(counts)
    for k in range(counts.shape[1]):
        theta[:, k, :] = floored_distribution(counts[:, k, :], floor)
    return theta


def floored_distribution(c, floor):
    """The θ that maximises Σ c ln θ subject to θ ≥ ε and Σθ = 1."""
    if c.max() <= 0:
        # Nothing holds the distribution apart: all that the floor leaves goes to one entry.
        theta = np.full(c.shape, floor)
        theta[np.unravel_index(c.argmax(), c.shape)] += 1 - floor * c.size
        return theta
    free = c > 0
    while True:
        nu = c[free].sum() / (1 - floor * np.sum(~free))
        still_free = free & (c / nu >= floor)
        if (still_free == free).all():
            return np.where(free, c / nu, floor)
        free = still_free  # ν grows, so that what has reached the floor stays there


def em_objective(
    X,
    activations,
    atoms,
    *,
    likelihood,
    activation_shape=1.0,
    activation_rate=1e-3,
    atom_shape=1.0,
    sample_weight=None,
):
    """f of the paper, with its constants dropped."""
    rates = activations @ atoms
    weights = weights_of(sample_weight, X)
    log_prior = xlogy(np.subtract(activation_shape, 1), activations)
    log_prior -= np.multiply(activation_rate, activations)
    f = np.sum(weights[:, np.newaxis] * log_prior)
    f += np.sum(xlogy(np.subtract(atom_shape, 1), atoms))
    for j, i in zip(*np.nonzero(~np.isnan(X)), strict=True):
        f += weights[j] * log_likelihood(X[j, i], rates[:, j, i], likelihood)
    return float(f)


# --- Algorithm 2: variational Bayes ---


def vb_iteration(
    X,
    activation_shape_post,
    atom_shape_post,
    *,
    likelihood,
    activation_shape=1.0,
    activation_rate=1e-3,
    atom_shape=1.0,
    sample_weight=None,
    frozen=None,
    background=0.0,
):
    """One iteration of Algorithm 2, on the posterior shapes. The posterior rate is 1 + β, always.

    Frozen components keep their atoms' posterior.
    """
    counts, atom_counts = expected_counts(
        X,
        geometric_activations(activation_shape_post, activation_rate),
        geometric_atoms(atom_shape_post),
        likelihood,
        weights_of(sample_weight, X),
        background,
    )
    new_atom_shape = keep_frozen(atom_counts + atom_shape, atom_shape_post, frozen)
    return counts + activation_shape, new_atom_shape


def geometric_activations(activation_shape_post, activation_rate):
    """ℓ = exp(E ln λ)."""
    return np.exp(digamma(activation_shape_post)) / (1 + np.asarray(activation_rate))


def geometric_atoms(atom_shape_post):
    """h = exp(E ln θ)."""
    return np.exp(expected_log_atoms(atom_shape_post))


def expected_log_atoms(atom_shape_post):
    total = atom_shape_post.sum(axis=(0, 2), keepdims=True)
    return digamma(atom_shape_post) - digamma(total)


def vb_bound(
    X,
    activation_shape_post,
    atom_shape_post,
    *,
    likelihood,
    activation_shape=1.0,
    activation_rate=1e-3,
    atom_shape=1.0,
    sample_weight=None,
    background=0.0,
):
    """The normalised ELBO g of the paper's appendix, corrected."""
    weights = weights_of(sample_weight, X)
    shapes = activation_shape_post, atom_shape_post
    rows = bound_of_data(X, *shapes, likelihood, activation_rate, background)
    rows += bound_of_activations(activation_shape_post, activation_shape, activation_rate)
    return float(weights @ rows + bound_of_atoms(atom_shape_post, atom_shape))


def bound_of_data(
    X, activation_shape_post, atom_shape_post, likelihood, activation_rate, background
):
    """g_Z, a term for each sample."""
    rates = geometric_activations(activation_shape_post, activation_rate) @ geometric_atoms(
        atom_shape_post
    )
    all_rates = rates + background
    rows = -np.sum(activation_shape_post / (1 + np.asarray(activation_rate)), axis=1)
    for j, i in np.ndindex(X.shape):
        total = rates[:, j, i].sum()
        if np.isnan(X[j, i]):
            rows[j] += total
        else:
            # The appendix has no −Σℓ̄ in an observed cell: −Σ E[λ] stands for it.
            rows[j] += log_likelihood(X[j, i], all_rates[:, j, i], likelihood) + total
    return rows


def bound_of_activations(post, prior, rate):
    """g_λ, summed over the components of each sample: minus the divergence from the prior."""
    rate_post = 1 + np.asarray(rate)
    g = (
        prior * np.log(rate / rate_post)
        + post * (1 - rate / rate_post)
        - digamma(post) * (post - prior)
        - gammaln(prior)
        + gammaln(post)
    )
    return g.sum(axis=1)


def bound_of_atoms(post, prior):
    """g_θ, summed over the components: minus the divergence from the prior."""
    prior = np.broadcast_to(prior, post.shape)
    g = gammaln(prior.sum(axis=(0, 2))) - gammaln(post.sum(axis=(0, 2)))
    g -= np.sum(gammaln(prior) - gammaln(post), axis=(0, 2))
    g -= np.sum((post - prior) * expected_log_atoms(post), axis=(0, 2))
    return g.sum()


# --- Small helpers ---


def weights_of(sample_weight, X):
    return np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight, dtype=float)


def keep_frozen(new_atoms, atoms, frozen):
    """The new atoms, but the old ones of frozen components (booleans or indices)."""
    if frozen is not None:
        new_atoms[:, frozen, :] = atoms[:, frozen, :]
    return new_atoms


def expected_log_prior(prior, activations, log_activations, log_atoms):
    """E_q[ln p(λ) + ln p(θ)], the part of the bound that depends on the prior."""
    shape, rate, atom_shape = prior
    gamma = shape * np.log(rate) - gammaln(shape) + (shape - 1) * log_activations
    atoms = np.broadcast_to(atom_shape, log_atoms.shape)
    dirichlet = np.sum((atoms - 1) * log_atoms - gammaln(atoms))
    totals = gammaln(atoms.sum(axis=(0, 2))).sum()
    return float(np.sum(gamma - rate * activations) + dirichlet + totals)
