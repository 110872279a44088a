"""ICU-Sepsis (Choudhary, Gupta and Thomas 2024): a problem made from real patients whose values can be computed exactly.

The clinicians' policy acts; an episode ends with reward 1 when the patient survives, and the discount is 1. Twenty data sets of each size
are drawn with the seeds 0 to 19. The program sees features of 47 columns, and is asked for the values of all states that are
not terminal, seen or not; errors and coverage are weighted by how often the policy visits a state.

The program's rule for intervals was settled on data sets of other seeds, but after a look at seeds 0 to 7 under an earlier rule: coverage on
the data sets since then is shown beside that on all.
"""

import math

import numpy as np
from scipy.sparse import block_diag, csr_array

from common import WORK, KeptEvaluation, folder_of, mean_and_error, say

SIZES, SEEDS, LOOKED_AT = (100, 300, 1000, 3000), range(20), 8
# Rivals that take long and are far behind are fitted to the first ten of the long logs, and compared on them.
SLOW, SLOW_SIZES, SLOW_SEEDS = ("kbrl", "linear-td"), (1000, 3000), 10
OURS, RIVAL, TABLE = "softmax-td", "kernel-lstd", "lstd"
ESTIMATORS = {
    OURS: "softmax TD",
    RIVAL: "ridge kernel LSTD",
    "linear-lstd": "ridge linear LSTD",
    "kbrl": "KBRL",
    TABLE: "tabular LSTD",
    "lstd-lambda": "tabular LSTD(λ)",
    "tabular-td": "tabular TD",
    "linear-td": "linear TD",
    "monte-carlo": "every-visit Monte Carlo",
    "constant": "one number for all",
}
INTERVALS = {"ours": "`ictd evaluate`", "resampling": "resampled episodes alone", "first": "the same with a smoothed residual as bias"}


class Problem:
    """Transitions between states under the clinicians' policy, and what follows exactly."""

    def __init__(self):
        data = np.load(folder_of("icu_sepsis") / "envs" / "assets" / "dynamics.npz")
        policy, moves = data["expert_policy"], data["tx_mat"]
        chain = np.einsum("sa,sat->st", policy, moves)
        gained = np.einsum("sa,sat,sat->st", policy, moves, data["r_mat"])
        # The last three states are death, survival and what follows for ever.
        self.count = len(chain) - 3
        self.features = data["state_cluster_centers"][: self.count]
        self.start = np.cumsum(data["d_0"]) / data["d_0"].sum()
        self.moves = np.cumsum(chain[: self.count], axis=1)
        self.moves /= self.moves[:, -1:]
        inside = np.eye(self.count) - chain[: self.count, : self.count]
        self.truth = np.linalg.solve(inside, gained[: self.count].sum(axis=1))
        visits = np.linalg.solve(inside.T, data["d_0"][: self.count])
        self.occupancy = visits / visits.sum()
        # The same number both ways.
        by_visits, by_values = visits @ gained[: self.count].sum(axis=1), data["d_0"][: self.count] @ self.truth
        assert abs(by_visits - by_values) < 1e-10, (by_visits, by_values)
        self.survival = self.count + 1
        columns = [f"x_{k}" for k in range(self.features.shape[1])]
        self.header = ",".join(columns)
        self.cells = [",".join(repr(float(x)) for x in row) for row in self.features]

    def episodes(self, number, seed):
        """Lists of states, and whether the patient survived."""
        rng = np.random.default_rng(seed)
        state = np.searchsorted(self.start, rng.random(number), side="right")
        alive, paths, survived = np.arange(number), [[] for _ in range(number)], [False] * number
        while len(state):
            for episode, s in zip(alive, state):
                paths[episode].append(int(s))
            draw = rng.random(len(state))
            state = (self.moves[state] < draw[:, None]).sum(axis=1)
            for episode in alive[state == self.survival]:
                survived[episode] = True
            goes_on = state < self.count
            alive, state = alive[goes_on], state[goes_on]
        return list(zip(paths, survived))

    def write(self, path, episodes):
        with open(path, "w") as file:
            file.write(f"episode,t,{self.header},reward,terminated\n")
            for number, (states, survived) in enumerate(episodes):
                last = len(states) - 1
                for t, s in enumerate(states):
                    file.write(f"{number},{t},{self.cells[s]},{int(survived and t == last)},{int(t == last)}\n")

    def write_states(self, path):
        with open(path, "w") as file:
            file.write("\n".join([self.header, *self.cells]) + "\n")

    def rmse(self, values):
        return math.sqrt(self.occupancy @ (np.array(values) - self.truth) ** 2)


def coverage(problem, value, half):
    return float(problem.occupancy @ (np.abs(value - problem.truth) <= half)), float(2 * problem.occupancy @ half)


def softmax_td(kernel, visits, rewards, moves, layers):
    """Softmax TD at discount 1 as the program does it, for several logs at once (columns), from their mean return on."""
    started = [n.sum() - m.sum() for n, m in zip(visits.T, moves)]
    values = np.tile(rewards.sum(axis=0) / started, (len(visits), 1))
    weights, following_states = kernel @ visits, block_diag(moves, format="csr")
    for _ in range(layers):
        following = (following_states @ values.T.ravel()).reshape(values.T.shape).T
        values = values + kernel @ (rewards + following - visits * values) / weights
    return values


def first_correction(problem, episodes, chosen, value):
    """A first idea for the bias of a state: what held-out returns are larger by than values that were fitted without them, smoothed
    with a narrower kernel. The program has no such option, so that it is written out here; the fit to all episodes is compared with its values."""
    shape, folds = (problem.count, problem.count), 5
    visits, rewards, excess = np.zeros((problem.count, folds)), np.zeros((problem.count, folds)), np.zeros(problem.count)
    pairs = [([], []) for _ in range(folds)]
    for k, (path, survived) in enumerate(episodes):
        np.add.at(visits[:, k % folds], path, 1)
        rewards[path[-1], k % folds] += survived
        pairs[k % folds][0].extend(path[:-1])
        pairs[k % folds][1].extend(path[1:])
    moves = [csr_array((np.ones(len(a)), (a, b)), shape=shape) for a, b in pairs]
    # All episodes, then all but those of each fold.
    whole = visits.sum(axis=1)
    without = [lambda parts, f=f: sum(part for k, part in enumerate(parts) if k != f) for f in (None, *range(folds))]
    columns = lambda table: np.column_stack([take(table.T) for take in without])
    mean = whole @ problem.features / whole.sum()
    spread = np.sqrt(whole @ (problem.features - mean) ** 2 / whole.sum())
    scaled = (problem.features - mean) / np.where(spread > 0, spread, np.inf)
    squares = (scaled**2).sum(axis=1)
    distance = np.maximum(squares[:, None] + squares - 2 * scaled @ scaled.T, 0)
    gaussian = lambda temperature: np.exp(-np.minimum(0.5 * distance / temperature, 600))
    fits = softmax_td(gaussian(chosen["temperature"]), columns(visits), columns(rewards), [take(moves) for take in without], chosen["layers"])
    fits = np.clip(fits, 0, 1)
    gap = np.abs(fits[whole > 0, 0] - value[whole > 0]).max()
    assert gap < 1e-6, f"softmax TD written out differs from the program by {gap}"
    for k, (path, survived) in enumerate(episodes):
        np.add.at(excess, path, survived - fits[path, 1 + k % folds])
    # As much narrower as where the correction was found.
    kernel = gaussian(chosen["temperature"] * 8 / 30)
    return (kernel @ excess) / (kernel @ whole)


def study(criteria):
    problem = Problem()
    WORK.mkdir(parents=True, exist_ok=True)
    states, log = WORK / "icu-states.csv", WORK / "icu.csv"
    problem.write_states(states)
    errors = {(name, size): [] for name in ESTIMATORS for size in SIZES}
    held = {(name, size): [] for name in INTERVALS for size in SIZES}
    seconds = {(name, size): [] for name in ESTIMATORS for size in SIZES}
    judgements = {size: {} for size in SIZES}
    for seed in SEEDS:
        for size in SIZES:
            say(f"icu: data set {seed + 1} of {len(SEEDS)}, {size} episodes")
            episodes = problem.episodes(size, seed)
            problem.write(log, episodes)
            for name in ESTIMATORS:
                if name in SLOW and size in SLOW_SIZES and seed >= SLOW_SEEDS:
                    continue
                run = KeptEvaluation(log, 1, "--query", states, "--estimator", name)
                assert len(run.rows) == problem.count, len(run.rows)
                errors[name, size].append(problem.rmse(run.column("value")))
                seconds[name, size].append(run.seconds)
                if name == OURS:
                    ours = run
            value, low, high = (np.array(ours.column(name)) for name in ("value", "low", "high"))
            inside = (low <= problem.truth) & (problem.truth <= high)
            held["ours", size].append((float(problem.occupancy @ inside), float(problem.occupancy @ (high - low))))
            scatter, quantile = np.array(ours.column("scatter")), ours.chosen["quantile"]
            held["resampling", size].append(coverage(problem, value, quantile * scatter))
            shift = first_correction(problem, episodes, ours.chosen, value)
            held["first", size].append(coverage(problem, value, quantile * np.sqrt(scatter**2 + shift**2)))
            judgements[size][ours.judgement] = judgements[size].get(ours.judgement, 0) + 1
    show(problem, errors, held, seconds, judgements)
    for size in SIZES:
        ratio, sets = against(errors, RIVAL, size)
        criteria.check(ratio <= 1.05, f"{size} episodes: the error of softmax TD is {ratio:.3f} of that of ridge kernel LSTD on {sets} data sets, at most 1.05")
        ratio, sets = against(errors, TABLE, size)
        criteria.check(ratio <= 1 / 1.5, f"{size} episodes: the error of softmax TD is {ratio:.3f} of that of tabular LSTD on {sets} data sets, at most {1 / 1.5:.3f}")
        share = mean_and_error([c for c, _ in held["ours", size]])[0]
        criteria.check(0.90 <= share <= 0.98, f"{size} episodes: 95 % intervals hold for {share:.1%}, 90 to 98 %")


def against(errors, rival, size):
    """The mean error of softmax TD over that of another on the data sets of both, and how many these are."""
    theirs = errors[rival, size]
    return sum(errors[OURS, size][: len(theirs)]) / sum(theirs), len(theirs)


def show(problem, errors, held, seconds, judgements):
    header = "| | " + " | ".join(f"{size}" for size in SIZES) + " |\n|---|" + "---:|" * len(SIZES)
    spread = math.sqrt(problem.occupancy @ (problem.truth - problem.occupancy @ problem.truth) ** 2)
    print(f"\n## ICU-Sepsis: {len(SEEDS)} data sets of each size, mean ± standard error over data sets\n")
    print(f"RMSE of the values of {problem.count} states, weighted by occupancy, by number of episodes. Their standard deviation is {spread:.4f}.")
    slow = ", ".join(ESTIMATORS[name] for name in SLOW)
    print(f"Of {slow}: the first {SLOW_SEEDS} data sets at {' and '.join(map(str, SLOW_SIZES))} episodes.\n")
    print(header)
    for name, label in ESTIMATORS.items():
        row = [mean_and_error(errors[name, size]) for size in SIZES]
        print(f"| {label} | {' | '.join(f'{mean:.4f} ± {error:.4f}' for mean, error in row)} |")
    # On the same data sets, so that what they have in common cancels.
    print("\nError less that of softmax TD on the same data sets, and that in standard errors; negative: softmax TD loses.\n")
    print(header)
    for name, label in list(ESTIMATORS.items())[1:]:
        row = []
        for size in SIZES:
            gap, error = mean_and_error([a - b for a, b in zip(errors[name, size], errors[OURS, size])])
            row.append(f"{gap:+.4f} ({gap / error:+.1f})" + (" **loss**" if gap < 0 else ""))
        print(f"| {label} | {' | '.join(row)} |")
    print("\nShare of occupancy whose value lies in its 95 % interval, and mean width.\n")
    print(header)
    rows = [(label, name, 0) for name, label in INTERVALS.items()]
    rows.insert(1, (f"{INTERVALS['ours']}, data sets of seeds {LOOKED_AT} to {SEEDS[-1]}", "ours", LOOKED_AT))
    for label, name, first in rows:
        row = []
        for size in SIZES:
            (share, error), (width, _) = (mean_and_error(column) for column in zip(*held[name, size][first:]))
            row.append(f"{share:.3f} ± {error:.3f} ({width:.3f})")
        print(f"| {label} | {' | '.join(row)} |")
    low = " | ".join(f"{min(c for c, _ in held['ours', size]):.3f}" for size in SIZES)
    print(f"| `ictd evaluate`, the worst data set | {low} |")
    print("\nSeconds for a data set, all of the program: read, tune, fit, intervals.\n")
    print(header)
    for name, label in ESTIMATORS.items():
        print(f"| {label} | {' | '.join(f'{mean_and_error(seconds[name, size])[0]:.2f}' for size in SIZES)} |")
    print("\nJudgements: " + "; ".join(f"{size} episodes: " + ", ".join(f"{n} {j}" for j, n in sorted(judgements[size].items())) for size in SIZES) + "\n")
