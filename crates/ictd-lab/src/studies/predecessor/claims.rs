//! What is claimed of an experiment, and when it counts.

use ictd::predecessor::{Activation, PairMeasures};

use super::experiment::Trained;
use crate::counted;
use crate::studies::{Claim, Verdict};

/// How many times the mean of P's other entries its corner must be.
const CORNER: f64 = 5.0;
/// How many times the mean of Q's other entries the means of the two diagonals must be.
const DIAGONAL: f64 = 2.0;
/// What IWS and SS must reach.
const SIMILAR: f64 = 0.9;

/// The claims of an experiment, in the order in which it lists them.
pub fn judge(trained: &Trained) -> Vec<Claim> {
    let file = super::figures::file_name(trained);
    let ids = trained.experiment.claims;
    let mut claims = Vec::new();
    if let [id, _] = ids {
        claims.push(
            parameters(trained, id)
                .shown(Some(&format!("{file}_matrices")), Some(&format!("{file}_parameters.csv"))),
        );
    }
    if let Some(id) = ids.last() {
        claims.push(similarity(trained, id).shown(Some(&file), Some(&format!("{file}.csv"))));
    }
    claims.into_iter().map(|claim| claim.scoped(trained.experiment.scope)).collect()
}

/// P and Q against those of the TD(0) block.
fn parameters(trained: &Trained, id: &str) -> Claim {
    let d = trained.config.shape().feature_dim as f64;
    let (mut signs, mut sizes, mut smallest) = (true, true, f64::INFINITY);
    let mut texts = Vec::new();
    let pairs = trained.num_pairs();
    for pair in 0..pairs {
        let last = |of: fn(&PairMeasures) -> f64| trained.last(|m| of(&m.pairs[pair])).0;
        let corner = last(|p| p.p_corner) / last(|p| p.p_rest);
        let (left, right) = (last(|p| p.q_left) / d, last(|p| p.q_right) / d);
        let rest = last(|p| p.q_rest);
        // The query has no successor: what the last of several pairs makes of one decides nothing.
        let is_free = pairs > 1 && pair + 1 == pairs;
        signs &= left < 0.0 && (right > 0.0 || is_free);
        sizes &= corner >= CORNER && -left >= DIAGONAL * rest && (right >= DIAGONAL * rest || is_free);
        smallest = f64::min(smallest, corner);
        let name = if pairs > 1 { format!("layer {pair}: ") } else { String::new() };
        texts.push(format!(
            "{name}P's corner {corner:.1} times the rest; mean diagonals of Q {left:.2} and {right:.2}, the rest {rest:.2}"
        ));
    }
    let free = if pairs > 1 {
        " (but the upper right block of the last layer, which only the query's successor would meet)"
    } else {
        ""
    };
    let criterion = format!(
        "means over seeds and the last tenth of training, signs aligned, in every layer{free}: Q's upper left diagonal negative and its upper right one \
         positive; P's corner at least {CORNER} times the mean size of P's other trained entries and both diagonals at least {DIAGONAL} times that of Q's. \
         Partly when only the signs are right"
    );
    Claim::new(
        id,
        &format!("P and Q, {}", trained.experiment.place),
        "Training finds the parameters of TD(0): P has its last corner alone, Q a negative and a positive multiple of the identity in its upper blocks.",
        &criterion,
    )
    .found(Verdict::stepwise(signs, sizes), smallest, texts.join("; "), counted(trained.num_seeds(), "seed"))
    .because("Entries that TD(0) has at 0 stay large, or keep their sign from the start, within this many tasks.")
}

/// Values and sensitivities against those of TD(0) with its trained step size.
fn similarity(trained: &Trained, id: &str) -> Claim {
    let (iws, iws_sem) = trained.last(|m| m.weight_similarity);
    let (ss, ss_sem) = trained.last(|m| m.sensitivity_similarity);
    let (before, _) = trained.first(|m| m.value_difference);
    let (after, after_sem) = trained.last(|m| m.value_difference);
    let ((alpha, _), (loss, _)) = (trained.last(|m| m.alpha), trained.last(|m| m.loss));
    let lost = match trained.lost(|m| m.weight_similarity) {
        0 => String::new(),
        lost => format!(" ({} without it left out)", counted(lost, "measurement")),
    };
    let ((error, _), (td_error, _)) = (trained.last(|m| m.value_error), trained.last(|m| m.td_value_error));
    let met = [iws >= SIMILAR, ss >= SIMILAR, after <= 0.5 * before];
    let criterion = format!(
        "means over seeds and the last tenth of training: IWS and SS at least {SIMILAR}, VD at most half of what it is over the first tenth; partly when \
         some of the three hold"
    );
    Claim::new(
        id,
        &format!("VD, IWS and SS, {}", trained.experiment.place),
        "The trained Transformer comes to predict what as many steps of TD(0) with a trained step size predict, and to depend on the query in the same way.",
        &criterion,
    )
    .found(
        Verdict::by_share(met.iter().filter(|m| **m).count() as u64, 3),
        iws,
        format!("IWS {iws:.3}{lost}, SS {ss:.3}, VD from {before:.3} to {after:.3}; value error {error:.3}, of TD(0) {td_error:.3}; α {alpha:.2}, loss {loss:.3}"),
        format!(
            "± {iws_sem:.3}, ± {ss_sem:.3} and ± {after_sem:.3} (s.e.m. over {})",
            counted(trained.num_seeds(), "seed")
        ),
    )
    .because(match trained.config.activation {
        Activation::Softmax => {
            "Softmax attention is not linear in the query's features, and training uses that: the sensitivity of what it finds differs from state to \
             state, that of TD(0) does not."
        }
        Activation::Linear if met[0] && met[1] => {
            "Its weights point where those of TD(0) with one step size for all directions point, and are of another size."
        }
        Activation::Linear => "Its weights point elsewhere than those of TD(0).",
    })
}
