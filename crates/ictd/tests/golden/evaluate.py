"""Reference values of every estimator of logged episodes, in plain NumPy, transition by transition.

Writes evaluate.json beside this file. Nothing is summed by state here: estimators are computed from the list of transitions as
they are defined. Needs NumPy, and SciPy for quantiles of Student's t:

    pip install numpy scipy && python crates/ictd/tests/golden/evaluate.py
"""

import json
import pathlib

import numpy as np


def similarity(kernel, x, y):
    if kernel == "rbf":
        return ((x[:, None, :] - y[None, :, :]) ** 2).sum(-1)
    return x @ y.T


def weigh(kernel, tau, x, y):
    """Unnormalised weights of the rows of y for every row of x."""
    g = similarity(kernel, x, y)
    if kernel == "rbf":
        return np.exp(-g / (2 * tau))
    if kernel == "softmax":
        return np.exp(g / tau)
    if kernel == "relu":
        return np.maximum(g, 0)
    if kernel == "elu1":
        return np.where(g > 0, g / tau + 1, np.exp(np.minimum(g, 0) / tau))
    if kernel == "linear":
        return g / tau
    return (x[:, None, :] == y[None, :, :]).all(-1).astype(float)


class Data:
    """One row per transition: episode, state, reward, next state (-1 where the episode terminated), weight."""

    def __init__(self, case):
        self.x = np.array(case["features"])
        self.q = np.array(case["queries"])
        self.gamma, self.lam = case["gamma"], case["lambda"]
        rows = []
        for e, (episode, weight) in enumerate(zip(case["episodes"], case["weights"])):
            steps = len(episode["rewards"])
            for t, reward in enumerate(episode["rewards"]):
                following = episode["states"][t + 1] if t + 1 < len(episode["states"]) else -1
                rows.append((e, episode["states"][t], reward, following, weight, t == 0, t == steps - 1))
        columns = list(zip(*rows))
        self.e, self.s, self.next = (np.array(columns[k]) for k in (0, 1, 3))
        self.r, self.w = np.array(columns[2]), np.array(columns[4], float)
        self.first, self.last = np.array(columns[5]), np.array(columns[6])
        self.live = self.next >= 0
        self.c = (self.w @ self.r) / (self.w @ (1 - self.gamma * self.live))

    def delta(self, v):
        return self.r + self.gamma * np.where(self.live, v[self.next], 0.0) - v[self.s]

    def returns(self):
        g, d = np.zeros(len(self.r)), np.zeros(len(self.r))
        for k in reversed(range(len(self.r))):
            if self.last[k]:
                g[k], d[k] = self.r[k], self.gamma * self.live[k]
            else:
                g[k], d[k] = self.r[k] + self.gamma * g[k + 1], self.gamma * d[k + 1]
        return g, d

    def last_state(self, k):
        while not self.last[k]:
            k += 1
        return self.next[k]

    def seen(self):
        return np.array([(self.w[self.s == s]).sum() > 0 for s in range(len(self.x))])


def softmax_td(data, kernel, tau, layers, alpha, centred):
    k = weigh(kernel, tau, np.vstack([data.x, data.q]), data.x[data.s]) * data.w
    total = np.full(len(k), data.w.sum()) if kernel == "linear" else k.sum(1)
    k = np.divide(k, total[:, None], out=np.zeros_like(k), where=total[:, None] != 0)
    v = np.full(len(k), data.c if centred else 0.0)
    for _ in range(layers):
        v = v + alpha * k @ data.delta(v[: len(data.x)])
    return v


def tabular_td(data, layers, alpha, centred):
    start = data.c if centred else 0.0
    v = np.full(len(data.x), start)
    for _ in range(layers):
        delta, new = data.delta(v), v.copy()
        for s in np.flatnonzero(data.seen()):
            mine = data.s == s
            new[s] = v[s] + alpha * (data.w * delta)[mine].sum() / data.w[mine].sum()
        v = new
    return look_up(data, v, start)


def look_up(data, v, otherwise):
    found = [np.flatnonzero((data.x == q).all(1)) for q in data.q]
    return np.concatenate([v, [v[f[0]] if len(f) else otherwise for f in found]])


def linear_td(data, layers, alpha, centred):
    c, w = data.c if centred else 0.0, np.zeros(data.x.shape[1])
    for _ in range(layers):
        w = w + alpha / data.w.sum() * (data.w * data.delta(c + data.x @ w)) @ data.x[data.s]
    return c + np.concatenate([data.x @ w, data.q @ w])


def lstd_weights(data, phi, lam, ridge):
    """Traces forward in time, with v = c + phi w."""
    a, b, z = np.zeros((phi.shape[1],) * 2), np.zeros(phi.shape[1]), np.zeros(phi.shape[1])
    for k in range(len(data.r)):
        z = phi[data.s[k]] + (0 if data.first[k] else data.gamma * lam * z)
        following = phi[data.next[k]] if data.live[k] else np.zeros(phi.shape[1])
        ahead = data.gamma * data.c if data.live[k] else 0.0
        a += data.w[k] * np.outer(z, phi[data.s[k]] - data.gamma * following)
        b += data.w[k] * z * (data.r[k] + ahead - data.c)
    return np.linalg.solve(a + ridge * data.w.sum() * np.eye(len(b)), b)


def lstd_table(data, lam, ridge):
    seen = np.flatnonzero(data.seen())
    phi = np.zeros((len(data.x), len(seen)))
    phi[seen, np.arange(len(seen))] = 1
    return look_up(data, data.c + phi @ lstd_weights(data, phi, lam, ridge), data.c)


def lstd_linear(data, lam, ridge):
    w = lstd_weights(data, data.x, lam, ridge)
    return data.c + np.concatenate([data.x @ w, data.q @ w])


def lstd_kernel(data, kernel, tau, ridge):
    """The representer theorem on transitions: u = sum over transitions of beta k(., s), ridge n beta = w delta."""
    k = weigh(kernel, tau, np.vstack([data.x, data.q]), data.x[data.s])
    ahead = np.where(data.live[:, None], data.gamma * k[data.next], 0.0)
    a = np.diag(data.w) @ (k[data.s] - ahead) + ridge * data.w.sum() * np.eye(len(data.r))
    return data.c + k @ np.linalg.solve(a, data.w * data.delta(np.full(len(data.x), data.c)))


def kbrl(data, kernel, tau):
    k = weigh(kernel, tau, np.vstack([data.x, data.q]), data.x[data.s]) * data.w
    k /= k.sum(1, keepdims=True)
    m = len(data.x)
    follow = np.zeros((len(data.r), m))
    follow[np.flatnonzero(data.live), data.next[data.live]] = 1
    v = np.linalg.solve(np.eye(m) - data.gamma * k[:m] @ follow, k[:m] @ data.r)
    return k @ (data.r + data.gamma * follow @ v)


def monte_carlo(data):
    g, _ = data.returns()
    v = np.full(len(data.x), data.c)
    for s in np.flatnonzero(data.seen()):
        mine = data.s == s
        v[s] = (data.w * g)[mine].sum() / data.w[mine].sum()
    return look_up(data, v, data.c)


def return_loss(data, v):
    g, d = data.returns()
    last = np.array([data.last_state(k) for k in range(len(g))])
    error = v[data.s] - g - d * np.where(last >= 0, v[last], 0.0)
    return (data.w * error**2).sum() / data.w.sum()


def return_range(data):
    """Returns of all steps; those of truncated episodes go on as they were, g + d·g + …, of means over visits of an episode to a state."""
    g, d = data.returns()
    found = list(g[d == 0])
    for e in set(data.e):
        for s in set(data.s[(data.e == e) & (d > 0)]):
            chosen = (data.e == e) & (data.s == s)
            found.append(g[chosen].mean() / (1 - d[chosen].mean()))
    return min(found), max(found)


def intervals(case, rng, chosen, rough):
    """Softmax TD with the intervals of its states and queries: scatter over resampled episodes, and a bias that is estimated from
    the difference to a rougher fit. Student's t is that of SciPy."""
    from scipy import stats

    weights = [[1.0] * len(case["episodes"])] + rng.poisson(1.0, (12, len(case["episodes"]))).tolist()
    whole = Data({**case, "weights": weights[0]})
    low, high = return_range(whole)
    samples = [Data({**case, "weights": w}) for w in weights]
    fit = lambda s, tau, layers: np.clip(softmax_td(s, "rbf", tau, layers, 1.0, True), low, high)
    v = np.array([fit(s, *chosen) for s in samples])
    gaps = np.array([fit(s, *rough) for s in samples]) - v
    visits = np.array([(whole.s == s).sum() for s in range(len(whole.x))])
    k = weigh("rbf", rough[0], whole.x, whole.x[whole.s])
    effective = k.sum(1) ** 2 / (k**2).sum(1)
    use = (visits > 0) & (effective >= 2)
    share, factor = visits[use] / visits[use].sum(), effective[use] / (effective[use] - 1)
    gaps = gaps[:, : len(whole.x)][:, use]
    noise = (share * factor * (gaps[1:] - gaps[1:].mean(0)) ** 2).sum(1)
    x, sd = (share * gaps[0] ** 2).sum() - noise.mean(), noise.std()
    b = (np.arange(2000) + 0.5) / 2000 * np.sqrt(max(x, 0) + 6 * sd)
    log_weight = -0.5 * ((x - b**2) / sd) ** 2
    weight = np.exp(log_weight - log_weight.max())
    bias = np.sqrt((weight * b**2).sum() / weight.sum())
    scatter = v[1:].std(0, ddof=1)
    k = weigh("rbf", chosen[0], np.vstack([whole.x, case["queries"]]), whole.x[whole.s])
    rests = np.maximum(k.sum(1) ** 2 / (k**2).sum(1), 2)
    degrees = np.clip(np.floor(rests - 1), 4, len(case["episodes"]) - 1)
    half = stats.t.ppf(0.975, degrees) * np.sqrt(scatter**2 * rests / (rests - 1) + bias**2)
    start = np.array([s.w[s.first] @ values[s.s[s.first]] / s.w[s.first].sum() for s, values in zip(samples, v)])
    return dict(weights=weights, chosen=chosen, rough=rough, value=v[0].tolist(), scatter=scatter.tolist(), bias=float(bias),
                low=np.clip(v[0] - half, low, None).tolist(), high=np.clip(v[0] + half, None, high).tolist(),
                mean=float(start[0]), mean_scatter=float(start[1:].std(ddof=1)))


def draw(rng, gamma, lam, d):
    m = 7
    x = rng.uniform(-1.5, 1.5, (m, d))
    episodes = []
    for e in range(9):
        steps = int(rng.integers(1, 9))
        truncated = gamma < 1 and e % 2 == 0
        # State 6 is only ever reached last.
        states = [int(s) for s in rng.integers(0, m - 1, steps + truncated)]
        if e == 0 and truncated:
            states[-1] = m - 1
        episodes.append(dict(states=states, rewards=list(rng.normal(1.0, 1.0, steps)), truncated=bool(truncated)))
    weights = [1.0] * 9 if lam == 0.4 else [float(w) for w in rng.integers(0, 4, 8)] + [1.0]
    queries = [list(x[2]), list(rng.uniform(-1.5, 1.5, d))]
    return {"features": x.tolist(), "episodes": episodes, "weights": weights, "gamma": gamma, "lambda": lam,
            "queries": [[float(a) for a in q] for q in queries]}


def main():
    rng = np.random.default_rng(12)
    cases = []
    for gamma, lam, d in [(0.9, 0.4, 2), (0.9, 0.8, 3), (1.0, 0.4, 2), (1.0, 0.7, 3), (0.3, 0.0, 1), (0.95, 1.0, 2)]:
        case = draw(rng, gamma, lam, d)
        data, found = Data(case), []

        def add(name, values, **settings):
            found.append(dict(name=name, values=values.tolist(), **settings))

        for kernel in ["softmax", "rbf", "relu", "elu1", "linear", "tabular"]:
            for centred in [False, True]:
                s = dict(kernel=kernel, temperature=0.7, layers=9, step_size=0.8, centred=centred)
                add("softmax TD", softmax_td(data, kernel, 0.7, 9, 0.8, centred), **s)
        for centred in [False, True]:
            s = dict(layers=11, step_size=0.6, centred=centred)
            add("tabular TD", tabular_td(data, 11, 0.6, centred), **s)
            add("linear TD", linear_td(data, 11, 0.6, centred), **s)
        for ridge in [0.0, 0.03]:
            add("table LSTD", lstd_table(data, 0.0, ridge), ridge=ridge, traces=False)
            add("table LSTD", lstd_table(data, lam, ridge), ridge=ridge, traces=True)
            add("linear LSTD", lstd_linear(data, 0.0, ridge), ridge=ridge, traces=False)
            add("linear LSTD", lstd_linear(data, lam, ridge), ridge=ridge, traces=True)
        for kernel in ["rbf", "softmax", "linear"]:
            s = dict(kernel=kernel, temperature=0.9, ridge=0.02, traces=False)
            add("kernel LSTD", lstd_kernel(data, kernel, 0.9, 0.02), **s)
        for kernel in ["rbf", "softmax", "elu1"]:
            add("KBRL", kbrl(data, kernel, 0.5), kernel=kernel, temperature=0.5)
        add("Monte Carlo", monte_carlo(data))
        add("constant mean", np.full(len(data.x) + len(data.q), data.c))
        for estimate in found:
            estimate["loss"] = float(return_loss(data, np.array(estimate["values"][: len(data.x)])))
        case["estimates"] = found
        case["intervals"] = intervals(case, np.random.default_rng(5), (1.5, 6), (0.6, 16))
        cases.append(case)
    path = pathlib.Path(__file__).with_suffix(".json")
    path.write_text("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
    print(len(cases), "cases,", sum(len(c["estimates"]) for c in cases), "estimates,", path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
