//! A claim of one's own: half the temperature is half the score scale, judged like the paper's.

use std::path::Path;

use ictd_lab::files::OutputDir;
use ictd_lab::studies::reproduce;
use ictd_lab::studies::theory::certify::{self, LayerConfig};
use ictd_lab::studies::{Claim, Plan, Section, Study, Tasks, verdict};
use ictd_lab::{LabError, Progress};

const TEMPERATURE: Study = Study::new("temperature", Section::Others, &["temperature"], temperature);

fn temperature(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let layer = |temperature| LayerConfig { temperature, ..LayerConfig::default() };
    let paper = Tasks::paper(plan.seed);
    let sharper = paper.rescaled(false, 2.0);
    let tasks = plan.samples(50, 10);
    let count = |family, scale| certify::count(family, tasks, &layer(scale), &Progress::default());
    let counts = [count(&paper, 0.5)?, count(&sharper, 1.0)?];
    out.json("temperature", &counts)?;
    let same = counts[0] == counts[1];
    let says = "Dividing scores by τ is multiplying A by 1/τ.";
    let claim = Claim::new("temperature", "Section 2", says, "the same tasks are stable either way");
    let measured = format!("{} and {} provably stable", counts[0].provably_stable, counts[1].provably_stable);
    Ok(vec![
        claim
            .found(verdict(same), f64::from(u8::from(same)), measured, format!("{tasks} tasks"))
            .shown(None, Some("temperature.json")),
    ])
}

fn main() -> Result<(), LabError> {
    let out = std::env::args().nth(1).unwrap_or_else(|| "out/new_claim".into());
    let plan = Plan { seed: 0, seeds: None, quick: true };
    let found = reproduce::run(&[TEMPERATURE], &plan, Path::new(&out), true, |_, _| Ok(()))?;
    println!("{}: {}; {out}/report.html", found.claims[0].verdict, found.claims[0].measured);
    Ok(())
}
