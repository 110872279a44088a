//! Whether to use the values of a construction in linear attention.

use ictd::construction::{ConstructionError, Outlook};
use ictd::evaluate::{Judgement, Level, Reason};
use ictd::statistics::largest;

use super::show::number;
use crate::counted;

/// A factor of errors that is no further from 1 is 1 but for rounding.
const ROUNDING: f64 = 1e-9;
/// A value that is no further from its limit, and that the last layer changes no more, as shares of the limit, is as good as there.
const NEAR: f64 = 0.01;
/// Values that rest on fewer transitions are an anecdote, as for layers of softmax.
const FEWEST: usize = 3;
/// Returns of which the end of the trajectory cuts off a larger share of their weight, on average, miss rewards that count.
const CUT: f64 = 0.05;
/// Layers diverge where late changes exceed earlier ones by more than this factor.
const GROWTH: f64 = 1.01;
/// Values swing for ever where two layers later they swing by at least this share.
const STEADY: f64 = 0.99;
/// A value that is further from its limit than so many times what 0 is, and further than so many of the largest rewards, is worse than none: on
/// the way to a limit values may overshoot, hardly by more than they had to go.
const FURTHER: f64 = 2.0;
/// Where the limit is not known, a value so many times larger than sums of discounted rewards can be is none. Linear functions go beyond those
/// sums at states unlike those that were left, though hardly so far while layers change them more and more.
const BEYOND: f64 = 100.0;
/// Of numbers whose errors layers have multiplied by more than this the first layers' rounding, 1e-16 of them, leaves fewer than four digits.
const DROWNED: f64 = 1e12;
/// Of what a layer changes at least so much must be what it adds for ever, where values are said to grow for ever.
const SETTLED: f64 = 0.5;

/// What is said of values that no layer can change.
const BLANK: &str = "the query's features are all 0: its value is 0 whatever the rewards are";

/// What is known of a pass.
pub(super) struct Evidence<'a> {
    /// Those before the first and after every layer, as far as they are finite.
    pub values: &'a [f64],
    /// The first layer in which they overflow.
    pub overflow: Option<usize>,
    /// The step size of the last layer.
    pub step_size: f64,
    /// Whether all layers have it.
    pub is_one: bool,
    /// How much of the weight of returns lies beyond the end of the trajectory, on average: 0 for algorithms that bootstrap.
    pub cut: f64,
    /// Whether equal states have different successors, and the algorithm goes astray where that is so.
    pub is_biased: bool,
    /// Where more layers lead; `None` where nobody looked.
    pub outlook: Option<&'a Outlook>,
    pub num_transitions: usize,
    pub feature_dim: usize,
    /// The largest reward, without its sign.
    pub reward: f64,
    /// How many rewards a value is the sum of, discounted: 1/(1 − γ), or all there are.
    pub horizon: f64,
    /// Whether the query's features are all 0.
    pub is_blank: bool,
}

/// How much the layers of a pass change the value.
struct Changes {
    /// The last one.
    last: f64,
    /// At most, in the last quarter of the layers: swinging values do not hide it.
    late: f64,
    /// The same in the quarter before.
    before: f64,
    /// Whether late ones are larger than those before, and no rounding.
    grow: bool,
}

impl Evidence<'_> {
    fn depth(&self) -> usize {
        self.values.len() - 1
    }

    /// The limit, where layers with these step sizes lead to it.
    pub fn limit(&self) -> Option<f64> {
        let outlook = self.outlook?;
        let converges = !self.is_one || outlook.rate.is_none_or(|rate| rate < 1.0 - ROUNDING);
        outlook.limit.as_ref().ok().copied().filter(|_| converges)
    }

    /// Not to be used where they overflow, nor where layers change them more and more or for ever and have no limit or are far from it; with
    /// care where they are away from their limit, it is not known, or transitions say nothing of what is asked for.
    pub fn judge(&self) -> Judgement {
        let depth = self.depth();
        let say = |level, text| Reason { level, text };
        if let Some(layer) = self.overflow {
            let text = format!(
                "values overflow in layer {layer}: layers diverge; lower the step size or the depth (values are given up to layer {depth})"
            );
            return Judgement::of(vec![say(Level::Refuse, text)]);
        }
        if depth == 0 {
            return Judgement::of(vec![say(Level::Caution, "without layers all values are 0".into())]);
        }
        let mut reasons = vec![self.pace()];
        if self.is_blank {
            reasons.push(say(Level::Caution, BLANK.into()));
        }
        if let Some(outlook) = self.outlook.filter(|outlook| outlook.is_outside()) {
            let text = format!(
                "{} of the query's features point where no transition says anything: weights stay 0 there, and so does what they would add to \
                 the value",
                percent(outlook.outside)
            );
            reasons.push(say(Level::Caution, text));
        }
        if self.cut > CUT {
            let text = format!(
                "returns end with the trajectory: rewards after it, {} of the weight of a return on average, count as 0",
                percent(self.cut)
            );
            reasons.push(say(Level::Caution, text));
        }
        if self.is_biased {
            let text = "equal states have different successors: the limit is not that of TD, but biased towards predictable transitions";
            reasons.push(say(Level::Caution, text.into()));
        }
        let (n, d) = (self.num_transitions, self.feature_dim);
        if n < d {
            let text = format!("the value rests on fewer transitions ({n}) than there are features ({d})");
            reasons.push(say(Level::Caution, text));
        } else if n < FEWEST {
            let text =
                format!("the value rests on {n}, expected {FEWEST} or more", n = counted(n, "transition"));
            reasons.push(say(Level::Caution, text));
        }
        Judgement::of(reasons)
    }

    /// Whether the last layers go back and forth about the limit, as far as those before and not little.
    fn swings(&self, limit: f64) -> bool {
        let changes: Vec<f64> = self.values.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let [.., before, last, next] = changes[..] else { return false };
        let turns = before * last < 0.0 && last * next < 0.0;
        turns && next.abs() >= STEADY * before.abs() && next.abs() > NEAR * limit.abs()
    }

    fn changes(&self) -> Changes {
        let changes: Vec<f64> = self.values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
        let span = (changes.len() / 4).max(1);
        let late = largest(changes.iter().rev().take(span).copied());
        let before = largest(changes.iter().rev().skip(span).take(span).copied());
        let is_rounding = late <= ROUNDING * self.values[self.depth()].abs();
        let grow = changes.len() > span && late > GROWTH * before && !is_rounding;
        Changes { last: changes[changes.len() - 1], late, before, grow }
    }

    /// Why layers that change the value more and more diverge, however errors go in the long run; `None` where the value may be on its way.
    fn diverges(&self, limit: Option<f64>) -> Option<String> {
        let value = self.values[self.depth()];
        let Some(limit) = limit else {
            let allowed = self.reward * self.horizon;
            let text = format!(
                "the value is {value:.1e} where sums of discounted rewards are up to {allowed:.1e}, and no limit is known"
            );
            return (value.abs() > BEYOND * allowed).then_some(text);
        };
        let away = (value - limit).abs();
        let text =
            format!("the value is {away:.1e} from its limit {}, further than without layers", number(&limit));
        (away > FURTHER * limit.abs().max(self.reward)).then_some(text)
    }

    /// Where layers lead, and how far that is.
    fn pace(&self) -> Reason {
        let (values, depth) = (self.values, self.depth());
        let Changes { last: change, late, before, grow } = self.changes();
        let last = format!("the last layer changes the value by {change:.1e}");
        let say = |level, text| Reason { level, text };
        let (rate, limit) = match self.outlook {
            Some(outlook) => (outlook.rate.filter(|_| self.is_one), Some(&outlook.limit)),
            None => (None, None),
        };
        let pace = format!(
            "the last of {depth} layers change the value by up to {late:.1e}, those before by {before:.1e}"
        );
        let helps = "lower the step size or the depth";
        let known = limit.and_then(|limit| limit.as_ref().ok().copied());
        let above = rate.filter(|&rate| rate > 1.0 + ROUNDING);
        if let Some(why) = self.diverges(known).filter(|_| grow && above.is_none()) {
            return say(Level::Refuse, format!("values diverge: {pace}, and {why}; {helps}"));
        }
        match (rate, limit) {
            (Some(rate), _) if above.is_some() => {
                let run = format!("in the long run a layer multiplies errors by {}", factor(rate));
                if grow {
                    return say(Level::Refuse, format!("values diverge: {pace}, and {run}; {helps}"));
                }
                // As a logarithm, because the power may overflow.
                let power = depth as f64 * rate.log10();
                if power > DROWNED.log10() {
                    let text = format!(
                        "values diverge: {run}, {depth} layers by 1e{power:.0}, which leaves rounding in place of the value; {helps}; {last}"
                    );
                    return say(Level::Refuse, text);
                }
                say(Level::Caution, format!("there is no limit: {run}; lower the step size; {last}"))
            }
            (_, Some(Err(ConstructionError::Drift { per_layer }))) if self.step_size != 0.0 => {
                let added = self.step_size * per_layer;
                let level = if change >= SETTLED * added.abs() { Level::Refuse } else { Level::Caution };
                let text = format!(
                    "values have no limit: rewards contradict transitions in a direction that no layer corrects, and in the long run every layer \
                     adds {added:.1e} to the value; {last}"
                );
                say(level, text)
            }
            (_, Some(Err(error @ ConstructionError::Unresolved { .. }))) => {
                say(Level::Caution, format!("where layers lead is not known: {error}; {last}"))
            }
            (Some(rate), Some(Ok(limit))) if rate >= 1.0 - ROUNDING && self.swings(*limit) => {
                let text = format!(
                    "values swing about {} for ever: a layer multiplies some errors by -1; lower the step size; {last}",
                    number(limit)
                );
                say(Level::Refuse, text)
            }
            (Some(rate), limit) if rate >= 1.0 - ROUNDING => {
                let why = match limit {
                    Some(Err(error)) => format!("transitions leave a value open ({error})"),
                    _ => "the step size is 0, or very small".into(),
                };
                let text =
                    format!("a layer multiplies some errors by 1, which no depth mends: {why}; {last}");
                say(Level::Caution, text)
            }
            (rate, Some(Ok(limit))) => {
                let away = (values[depth] - limit).abs();
                let near = |distance: f64| distance <= NEAR * limit.abs();
                // With step sizes of their own layers have no one factor; where it could not be found nobody knows that they converge.
                let is_known = rate.is_some() || !self.is_one;
                let is_near = is_known && near(away) && near(change);
                let level = if is_near { Level::Trust } else { Level::Caution };
                let pace = match rate {
                    Some(rate) => format!("; in the long run a layer multiplies errors by {}", factor(rate)),
                    None if is_known => String::new(),
                    None => "; what a layer multiplies errors by could not be found".into(),
                };
                say(level, format!("the value is {away:.1e} from its limit {}{pace}; {last}", number(limit)))
            }
            (_, Some(Err(error))) => {
                say(Level::Caution, format!("where layers lead is not known: {error}; {last}"))
            }
            (_, None) => {
                say(Level::Caution, format!("where layers lead is not known: features are many; {last}"))
            }
        }
    }
}

/// A factor that is seen to differ from 1.
fn factor(rate: f64) -> String {
    let above = rate - 1.0;
    if above.abs() >= 5e-5 {
        format!("{rate:.4}")
    } else {
        format!("1 {} {:.1e}", if above < 0.0 { '-' } else { '+' }, above.abs())
    }
}

/// A share of at most 1, in words.
fn percent(share: f64) -> String {
    if share > 0.999 {
        "all".into()
    } else if share >= 0.001 {
        format!("{:.1} %", 100.0 * share)
    } else {
        format!("{:.0e} %", 100.0 * share)
    }
}
