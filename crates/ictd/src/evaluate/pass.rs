//! Whether the values of a forward pass can be used, in plain words.

use super::judgement::{Judgement, Level, Reason, range, thin};
use super::wording::{ROUNDING, Unit, factor, percent, plain};
use crate::context::{Context, ContextStatistics, Role};
use crate::statistics::largest;
use crate::transformer::Approximation;

/// Values nearer to the limit than this share of their spread are in its order, but for near ties.
const NEAR: f64 = 0.1;
/// Where the limit is not known: ten more layers like a last one of this size would be as much as [`NEAR`].
const STILL: f64 = 0.01;
/// Values that differ by less than this share of what follows them look the same in six decimals.
const SAME: f64 = 1e-6;
/// States that have so many times fewer values than there are things that follow them are not told apart.
const FEWER: usize = 10;
/// Layers diverge where late changes exceed earlier ones by more than this factor: trained layers change values by about the same, or swing.
const GROWTH: f64 = 1.2;
/// Who attends to more than this share of all transitions hardly tells them apart.
const FLAT: f64 = 0.99;
/// Where infinitely many layers lead.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit<'a> {
    /// To these values, column by column.
    Known(&'a [f64]),
    /// Nowhere: in the long run a layer multiplies errors by this factor, which is at least 1.
    Diverges(f64),
    /// That is not known, for this reason.
    Unknown(String),
}

/// What is known of a forward pass.
#[derive(Clone, Debug)]
pub struct PassEvidence<'a> {
    /// What it was run on.
    pub context: &'a Context,
    /// Its columns, one group per distinct state.
    pub statistics: &'a ContextStatistics,
    /// Discount.
    pub gamma: f64,
    /// Row l: the values of all columns after l layers, as far as they are finite; at least row 0.
    pub layers: &'a [Vec<f64>],
    /// The first layer in which values overflow, where one does.
    pub overflow: Option<usize>,
    /// Where more layers lead.
    pub limit: Limit<'a>,
    /// How many transitions the value of every source column rests on, 1/Σ w² for weights w of transitions; empty where not
    /// known.
    pub effective: &'a [f64],
    /// What is known of values that were not computed exactly.
    pub approximation: Option<Approximation>,
    /// Whether step size and depth are those of a checkpoint, so that none can be chosen.
    pub is_fixed: bool,
}

/// How many numbers there are when those that lie within `gap` of the next are one.
fn distinct(mut numbers: Vec<f64>, gap: f64) -> usize {
    numbers.sort_by(f64::total_cmp);
    1 + numbers.windows(2).filter(|pair| pair[1] - pair[0] > gap).count()
}

impl PassEvidence<'_> {
    /// What follows.
    pub fn judge(&self) -> Judgement {
        let mut reasons = Vec::new();
        let mut say = |level, text: String| reasons.push(Reason { level, text });
        if let Some(layer) = self.overflow {
            let text = format!(
                "values overflow in layer {layer}: layers diverge; {} (values are given up to layer {})",
                self.advice(),
                self.num_layers()
            );
            say(Level::Refuse, text);
        } else if self.num_layers() == 0 {
            say(Level::Caution, "without layers all values are 0".into());
        } else {
            let collapsed = self.collapse(&mut say);
            self.growth(&mut say);
            self.depth(&mut say);
            if !collapsed {
                self.support(&mut say);
            }
            self.error(&mut say);
        }
        Judgement::of(reasons)
    }

    /// Whether an approximation may hide what values say.
    fn error(&self, say: &mut impl FnMut(Level, String)) {
        let Some(Approximation { rank, value_error_bound: bound, .. }) = self.approximation else { return };
        // Without pivots it is the arithmetic that approximates, whatever tolerance there is.
        let smaller = if rank.is_some() { "a smaller --tolerance brings it down, " } else { "" };
        // Negated, so that NaN is said.
        if !(bound <= NEAR * range(&self.last())) {
            say(
                Level::Caution,
                format!(
                    "weights are approximated and no bound better than {bound:.1e} is known for the values after {} layers: {smaller}--precision double without --tolerance computes them exactly",
                    self.num_layers()
                ),
            );
        }
    }

    /// What to do where layers diverge.
    fn advice(&self) -> &'static str {
        if self.is_fixed {
            "the checkpoint is what it is, and its values are of no use on this context"
        } else {
            "lower the step size or the depth"
        }
    }

    fn num_layers(&self) -> usize {
        self.layers.len() - 1
    }

    /// Of a row, the columns that are states.
    fn states<'b>(&'b self, row: &'b [f64]) -> Vec<f64> {
        self.columns(row, |role| role != Role::Terminal)
    }

    fn columns(&self, row: &[f64], wanted: impl Fn(Role) -> bool) -> Vec<f64> {
        row.iter().zip(self.context.roles()).filter(|(_, role)| wanted(**role)).map(|(v, _)| *v).collect()
    }

    fn last(&self) -> Vec<f64> {
        self.states(&self.layers[self.num_layers()])
    }

    /// The largest change that each layer made.
    fn changes(&self) -> Vec<f64> {
        let change = |pair: &[Vec<f64>]| largest(pair[0].iter().zip(&pair[1]).map(|(a, b)| (a - b).abs()));
        self.layers.windows(2).map(change).collect()
    }

    /// Whether all states have one value, or few, though what follows them differs.
    fn collapse(&self, say: &mut impl FnMut(Level, String)) -> bool {
        let row = &self.layers[self.num_layers()];
        let backups = self.backups(row);
        let (apart, size) = (range(&backups), largest(backups.iter().map(|b| b.abs())));
        // A process in which the same follows on every state has one value, and so has one with a single state.
        if !(apart > ROUNDING * size) {
            return false;
        }
        let values = self.columns(row, |role| role == Role::Source);
        let (found, expected) = (distinct(values, SAME * apart), distinct(backups, SAME * apart));
        let collapsed = expected > 1 && (found == 1 || FEWER * found <= expected);
        if collapsed && largest(self.changes()) == 0.0 {
            say(
                Level::Refuse,
                "no layer changes a value: step sizes or parameters are 0, or states attend to nothing"
                    .into(),
            );
        } else if collapsed {
            let values = if found == 1 { "the same value".into() } else { format!("only {found} values") };
            let text = format!(
                "attention has collapsed: {} states have {values} though what follows them differs; \
                 scale the features, or change the temperature",
                self.statistics.num_source_groups()
            );
            say(Level::Refuse, text);
        }
        collapsed
    }

    /// Whether layers change values more and more, and whether values are beyond what rewards allow.
    fn growth(&self, say: &mut impl FnMut(Level, String)) {
        let (changes, values) = (self.changes(), self.last());
        // The last quarter of the layers against the one before, so that swinging values do not hide it.
        let span = (changes.len() / 4).max(1);
        let late = largest(changes.iter().rev().take(span).copied());
        let before = largest(changes.iter().rev().skip(span).take(span).copied());
        let size = largest(values.iter().map(|v| v.abs()));
        let grows = changes.len() > span && late > GROWTH * before && late > ROUNDING * size;
        let rewards = self.context.rewards();
        let sum = |reward: f64| reward / (1.0 - self.gamma);
        let low = sum(rewards.iter().copied().fold(0.0, f64::min));
        let high = sum(rewards.iter().copied().fold(0.0, f64::max));
        let rounding = 1e-9 * (high - low);
        let beyond = values.iter().filter(|v| !(low - rounding..=high + rounding).contains(*v)).count();
        let worse_than_none = match &self.limit {
            Limit::Known(limit) => {
                let (limit, unit) = (self.states(limit), Unit::of(&self.states(limit)));
                let none = unit.apart(&vec![0.0; limit.len()], &limit).unwrap_or(0.0);
                unit.apart(&values, &limit).is_none_or(|gap| gap > none)
            }
            Limit::Diverges(_) => true,
            Limit::Unknown(_) => beyond > 0,
        };
        let pace = format!(
            "the last of {} layers change values by up to {late:.1e}, those before by {before:.1e}",
            changes.len()
        );
        let helps = if self.is_fixed { "" } else { ", `ictd certify` says what helps" };
        match (grows, worse_than_none) {
            (true, true) => {
                say(Level::Refuse, format!("values diverge: {pace}; {}{helps}", self.advice()));
            }
            (true, false) => say(Level::Caution, format!("layers gather pace: {pace}")),
            _ => {}
        }
        if beyond > 0 {
            say(
                Level::Caution,
                format!(
                    "{beyond} of {} values lie outside what the rewards allow, {} to {}",
                    values.len(),
                    plain(low),
                    plain(high)
                ),
            );
        }
    }

    /// How far values are from those of infinitely many layers.
    fn depth(&self, say: &mut impl FnMut(Level, String)) {
        let (count, values) = (self.num_layers(), self.last());
        let layers = if count == 1 { "1 layer is".to_owned() } else { format!("{count} layers are") };
        let unit = Unit::of(&values);
        let residual = unit.apart(&values, &self.states(&self.layers[count - 1]));
        let last = match residual {
            Some(share) => format!("the last layer changes values by {} of {}", percent(share), unit.name),
            None => "all values are 0 after the last layer".into(),
        };
        match &self.limit {
            Limit::Known(limit) => {
                let limit = self.states(limit);
                let unit = Unit::of(&limit);
                let gap = unit.apart(&values, &limit);
                // Negated, so that NaN is no small distance.
                let far = !gap.is_some_and(|gap| gap <= NEAR);
                let gap = gap.map_or_else(|| "far".into(), percent);
                let advice = if far {
                    "; `ictd certify` says how many layers are near, `ictd evaluate` which depth predicts best"
                } else {
                    ""
                };
                let text = format!(
                    "{layers} {gap} from the limit of infinitely many, as a share of {}: {last}{advice}",
                    unit.name
                );
                say(if far { Level::Caution } else { Level::Trust }, text);
            }
            Limit::Diverges(by) => say(
                Level::Caution,
                format!(
                    "there is no limit: in the long run a layer multiplies errors by {}; {last}",
                    factor(*by)
                ),
            ),
            Limit::Unknown(why) => {
                let still = residual.is_some_and(|share| share <= STILL);
                let text = format!("the limit of infinitely many layers is not known ({why}); {last}");
                say(if still { Level::Trust } else { Level::Caution }, text);
            }
        }
    }

    /// How many transitions values rest on.
    fn support(&self, say: &mut impl FnMut(Level, String)) {
        let (rows, n) = (self.effective.len(), self.context.num_transitions() as f64);
        let all = |wanted: &dyn Fn(f64) -> bool| rows > 1 && self.effective.iter().all(|ess| wanted(*ess));
        if all(&|ess| ess <= 1.0 + SAME) {
            say(
                Level::Caution,
                "every value rests on one transition: attention is so sharp that nothing is averaged".into(),
            );
        } else if self.statistics.num_source_groups() > 1 && all(&|ess| ess >= FLAT * n) {
            let text = format!(
                "attention hardly tells states apart: every value rests on more than {} of all transitions; \
                 a lower temperature, or larger features, would sharpen it",
                percent(FLAT)
            );
            say(Level::Caution, text);
        } else {
            thin(self.effective, rows, say);
        }
    }

    /// What follows every source state on average: rewards and discounted values of successors.
    fn backups(&self, row: &[f64]) -> Vec<f64> {
        let (statistics, rewards) = (self.statistics, self.context.rewards());
        let mut sums = vec![0.0; statistics.num_source_groups()];
        for (j, &role) in self.context.roles().iter().enumerate() {
            if let (Role::Source, Some(group)) = (role, statistics.group_of(j)) {
                // Divided first: rewards may be as large as numbers are.
                sums[group] += (rewards[j] + self.gamma * row[j + 1]) / statistics.visits()[group];
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::End;

    /// Three states, each left twice, with rewards that differ.
    fn context(rewards: [f64; 6]) -> Context {
        let states = [[0.0], [1.0], [2.0], [0.0], [1.0], [2.0], [0.0]];
        Context::builder().episode(&states, &rewards, End::Truncated).build().unwrap()
    }

    /// The judgement of values of the three states, layer by layer.
    fn judged(
        context: &Context,
        layers: &[[f64; 3]],
        limit: Limit<'_>,
        effective: &[f64],
    ) -> (Level, Vec<String>) {
        let row = |v: &[f64; 3]| vec![v[0], v[1], v[2], v[0], v[1], v[2], v[0]];
        let rows: Vec<Vec<f64>> = [[0.0; 3]].iter().chain(layers).map(row).collect();
        let known = if let Limit::Known(v) = &limit { row(&[v[0], v[1], v[2]]) } else { Vec::new() };
        let limit = if known.is_empty() { limit } else { Limit::Known(&known) };
        let statistics = ContextStatistics::per_state(context);
        let evidence = PassEvidence {
            context,
            statistics: &statistics,
            gamma: 0.5,
            layers: &rows,
            overflow: None,
            limit,
            effective,
            approximation: None,
            is_fixed: false,
        };
        let found = evidence.judge();
        (found.level, found.reasons.into_iter().map(|reason| reason.text).collect())
    }

    const REWARDS: [f64; 6] = [1.0, 2.0, 3.0, 1.0, 2.0, 3.0];
    const END: [f64; 3] = [3.0, 4.0, 5.0];

    fn assert_first(found: (Level, Vec<String>), level: Level, text: &str) {
        assert_eq!(found.0, level, "{found:?}");
        assert!(found.1[0].contains(text), "{found:?}");
    }

    #[test]
    fn the_distance_to_the_limit_is_told_as_a_share_of_its_spread() {
        let context = context(REWARDS);
        let near = [[2.0, 3.0, 4.0], [2.96, 3.96, 4.96]];
        // Seven columns, three of them of the first state: their variance is 34/49, and 0.04 of its root 4.8 %.
        let unit = Unit::of(&[3.0, 4.0, 5.0, 3.0, 4.0, 5.0, 3.0]);
        assert!((unit.size - (34.0f64 / 49.0).sqrt()).abs() < 1e-15);
        assert_first(
            judged(&context, &near, Limit::Known(&END), &[4.0; 6]),
            Level::Trust,
            "2 layers are 4.8 % from the limit",
        );
        let far = [[1.0, 2.0, 3.0], [1.5, 2.5, 3.5]];
        assert_first(
            judged(&context, &far, Limit::Known(&END), &[4.0; 6]),
            Level::Caution,
            "% from the limit",
        );
        let unknown = |last: [f64; 3]| {
            let why = Limit::Unknown("nobody looked".into());
            judged(&context, &[[2.0, 3.0, 4.0], last], why, &[])
        };
        assert_first(unknown([2.001, 3.001, 4.001]), Level::Trust, "not known (nobody looked)");
        assert_first(unknown([2.1, 3.1, 4.1]), Level::Caution, "changes values by 12 %");
    }

    #[test]
    fn values_that_run_away_are_refused_and_those_that_come_back_are_not() {
        let context = context(REWARDS);
        let runaway = [[1.0, 2.0, 3.0], [-1.0, 4.0, 5.0], [5.0, -4.0, -7.0], [-9.0, 12.0, 19.0]];
        for limit in [Limit::Diverges(1.9), Limit::Unknown(String::new())] {
            assert_first(judged(&context, &runaway, limit, &[]), Level::Refuse, "values diverge");
        }
        assert_first(judged(&context, &runaway, Limit::Known(&END), &[]), Level::Refuse, "values diverge");
        // More and more, and nearer to the limit than at the start.
        let start = [[0.1, 0.1, 0.2], [1.0, 2.0, 3.0]];
        assert_eq!(judged(&context, &start, Limit::Known(&END), &[]).0, Level::Caution);
        // Divergence that does not show at this depth.
        let calm = [[1.0, 2.0, 3.0], [1.1, 2.1, 3.1]];
        assert_first(judged(&context, &calm, Limit::Diverges(1.0 + 1e-9), &[]), Level::Caution, "1 + 1.0e-9");
        let high = [[6.0, 6.5, 6.9], [6.001, 6.501, 6.901]];
        assert_first(
            judged(&context, &high, Limit::Unknown(String::new()), &[]),
            Level::Caution,
            "7 of 7 values lie outside",
        );
    }

    /// Three layers of a trained network whose limit is not known: each changes values by about the same, beyond what rewards allow.
    #[test]
    fn changes_of_about_the_same_size_are_no_divergence() {
        let context = context(REWARDS);
        let by = |last: f64| {
            let steps = [[8.0, 9.0, 10.0], [8.1, 9.2, 10.3], [8.1, 9.2, 10.3 + last]];
            judged(&context, &steps, Limit::Unknown(String::new()), &[]).1
        };
        assert!(!by(0.3005).iter().any(|text| text.contains("values diverge")), "{:?}", by(0.3005));
        assert!(by(0.9).iter().any(|text| text.contains("values diverge")), "{:?}", by(0.9));
    }

    /// Of a checkpoint neither step size nor depth can be lowered.
    #[test]
    fn advice_is_what_can_be_done() {
        let context = context(REWARDS);
        let statistics = ContextStatistics::per_state(&context);
        let rows: Vec<Vec<f64>> = [0.0, 10.0, -20.0, 70.0].map(|v| vec![v; 7]).to_vec();
        let of = |is_fixed, overflow| {
            let evidence = PassEvidence {
                context: &context,
                statistics: &statistics,
                gamma: 0.5,
                layers: &rows,
                overflow,
                limit: Limit::Unknown(String::new()),
                effective: &[],
                approximation: None,
                is_fixed,
            };
            evidence.judge().reasons.into_iter().map(|reason| reason.text).collect::<Vec<_>>().join("\n")
        };
        for overflow in [None, Some(4)] {
            assert!(of(false, overflow).contains("lower the step size or the depth"));
            let text = of(true, overflow);
            assert!(text.contains("the checkpoint is what it is") && !text.contains("step size"), "{text}");
        }
    }

    #[test]
    fn one_value_for_all_is_refused_where_what_follows_differs() {
        let same = [[2.0; 3], [2.1; 3]];
        let limit = || Limit::Unknown(String::new());
        assert_first(
            judged(&context(REWARDS), &same, limit(), &[]),
            Level::Refuse,
            "3 states have the same value",
        );
        assert_first(judged(&context(REWARDS), &[[0.0; 3]], limit(), &[]), Level::Refuse, "no layer changes");
        // Where the same follows everywhere one value is right.
        let (level, reasons) = judged(&context([1.0; 6]), &[[1.5; 3], [1.501; 3]], limit(), &[]);
        assert_eq!(level, Level::Trust, "{reasons:?}");
        assert!(reasons[0].contains("of their size"), "{reasons:?}");
    }

    #[test]
    fn attention_that_is_flat_or_sharp_is_told() {
        let context = context(REWARDS);
        let near = [[2.9, 3.9, 4.9], [2.99, 3.99, 4.99]];
        for (effective, text) in [
            ([5.99; 6], "hardly tells states apart"),
            ([1.0; 6], "rests on one transition"),
            ([2.0; 6], "6 of 6 values rest on fewer than 3"),
            ([f64::NAN; 6], "6 of 6 values rest on fewer than 3"),
        ] {
            let found = judged(&context, &near, Limit::Known(&END), &effective);
            assert_first(found, Level::Caution, text);
        }
    }
}
