#![allow(missing_docs)]
use ictd::pretrain::*;
use std::time::Instant;
fn main() {
    let mut config = PretrainConfig::paper();
    if let Some(a) = std::env::args().nth(1) {
        if a == "skip" {
            config.query = QueryPosition::Skip
        }
        if a == "relaxed" {
            config = PretrainConfig::mask_relaxed()
        }
        if a == "stationary" {
            config.query = QueryPosition::Stationary
        }
    }
    for seed in 0..std::env::args().nth(2).and_then(|s| s.parse().ok()).unwrap_or(2u64) {
        let t = Instant::now();
        let mut tr = Trainer::<f32>::new(&config, seed).unwrap();
        while !tr.is_done() {
            tr.epoch().unwrap();
        }
        let e = emergence_of(&config.shape(), &tr.state().params);
        let h = &tr.state().history;
        let rows = config.features + 3;
        let p = &tr.state().params;
        println!(
            "{seed} {:.3}s {:?} v {:.3} a {:.3} vs {:.3} as {:.3} d {:.3} td {:.4} msve {:.4} best {} {:?} row {:?} diag {:?}",
            t.elapsed().as_secs_f64(),
            e.branch,
            e.value,
            e.score,
            e.value_signed,
            e.score_signed,
            h.eval_diagonal.last().unwrap(),
            h.eval_td_loss.iter().rev().take(100).sum::<f32>() / 100.0,
            h.eval_msve.iter().rev().take(100).sum::<f32>() / 100.0,
            tr.state().best.step,
            tr.state().best.joint,
            &p[(rows - 1) * rows + config.features..rows * rows],
            (0..config.features).map(|i| p[rows * rows + i * rows + i]).collect::<Vec<_>>()
        );
    }
}
