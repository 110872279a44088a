//! `ictd neu`.

use std::path::{Path, PathBuf};

use clap::Args;
use ictd::transformer::AttentionParams;
use ictd_lab::LabError;
use ictd_lab::files::{OutputDir, read_params};
use ictd_lab::studies::theory::TaskFamily;
use ictd_lab::studies::theory::neu::{self, NeuConfig, NeuPoint};

use crate::certify::FamilyArguments;
use crate::{Common, Outcome, message, print_data, print_json, table};

/// Arguments of `ictd neu`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    family: FamilyArguments,
    /// A checkpoint of `pretrain` or JSON parameters to compare with theta_*, at the first length and depth
    #[arg(long, value_name = "FILE")]
    params: Option<PathBuf>,
    /// Context lengths, separated by commas [default: 30,100,300,1000,3000; 10 for --params]
    #[arg(long, value_delimiter = ',', value_name = "N,N,…", allow_negative_numbers = true)]
    lengths: Option<Vec<usize>>,
    /// Depths, separated by commas [default: 1,2,3,4,5,6,8,10,12,15,40; 3 for --params]
    #[arg(long, value_delimiter = ',', value_name = "L,L,…")]
    layers: Option<Vec<usize>>,
    /// Tasks per estimate, one trajectory each; short contexts get up to four times as many
    #[arg(long, default_value_t = 2000, allow_negative_numbers = true)]
    samples: u64,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments) -> Result<Outcome, LabError> {
    let seed = arguments.common.seed;
    let path = arguments.common.out.as_deref().unwrap_or(Path::new("out/neu"));
    if let Some(file) = &arguments.params {
        return compare(&arguments, file);
    }
    let families = if arguments.family.is_given() {
        vec![arguments.family.family(TaskFamily::certified(seed))]
    } else {
        vec![TaskFamily::certified(seed), TaskFamily::paper(seed)]
    };
    let out = OutputDir::create(path)?;
    let mut reports = Vec::new();
    for (k, family) in families.iter().enumerate() {
        message(&format!("{}: {} tasks per estimate", family.describe(), arguments.samples));
        let config = NeuConfig {
            family: family.clone(),
            lengths: arguments.lengths.clone().unwrap_or_else(|| vec![30, 100, 300, 1000, 3000]),
            layers: arguments.layers.clone().unwrap_or_else(|| vec![1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 40]),
            samples: arguments.samples,
        };
        let report = neu::run(&config)?;
        report.write(&out, &format!("neu{}", k + 1))?;
        reports.push(report);
    }
    out.figure("neu", &neu::figure(&reports))?;
    let plane = neu::landscape(&families[0], 100, 10, arguments.samples.min(200))?;
    plane.write(&out)?;
    if arguments.common.json {
        print_json(&reports)?;
    } else {
        let mut text = String::new();
        for report in &reports {
            text += &format!("{}\n", report.describe());
            text += &match report.threshold {
                Some(n) => format!(
                    "Assumption 5.1 holds with margin {:.4}; Theorem 3 speaks from n = {n:.2e} on\n",
                    report.margin
                ),
                None => format!("premise fails: Assumption 5.1, margin {:.4}\n", report.margin),
            };
            let slope = |s: Option<(f64, f64)>| {
                s.map_or_else(|| "none above noise".into(), |(s, w)| format!("{s:.3} ± {w:.3}"))
            };
            text += &format!(
                "slope of log J: {} in log n, {} per layer\n\n",
                slope(report.length_slope.map(|s| (s.slope, s.half_width))),
                slope(report.depth_slope.map(|s| (s.slope, s.half_width)))
            );
            // The table shows the edges of the grid; the CSV has all of it.
            let deepest = report.config.layers.iter().max();
            let longest = report.config.lengths.iter().max();
            let at_edge = |p: &&NeuPoint| Some(&p.layers) == deepest || Some(&p.n) == longest;
            let edge: Vec<NeuPoint> = report.points.iter().filter(at_edge).cloned().collect();
            text += &render(&edge);
            text += "\n";
        }
        print_data(&text)?;
    }
    message(&format!("figures and tables: {}", path.display()));
    Ok(Outcome::Success)
}

/// J at a file's parameters beside theta_*.
fn compare(arguments: &Arguments, file: &Path) -> Result<Outcome, LabError> {
    let family = arguments.family.family(TaskFamily::paper(arguments.common.seed));
    let first = |list: &Option<Vec<usize>>, default| {
        list.as_ref().and_then(|l| l.first().copied()).unwrap_or(default)
    };
    let (n, layers) = (first(&arguments.lengths, 10), first(&arguments.layers, 3));
    let theta = neu::looped(&read_params(file)?)?;
    let star = AttentionParams::theta_star(family.feature_dim());
    let mut points = Vec::new();
    for (name, params) in [("theta_*".to_owned(), &star), (file.display().to_string(), &theta)] {
        let found = neu::estimate(&family, params, n, &[layers], arguments.samples)?;
        points.extend(found.iter().map(|f| neu::point(&name, n, f, None)));
    }
    if let Some(out) = &arguments.common.out {
        OutputDir::create(out)?.csv("neu", &points)?;
    }
    if arguments.common.json {
        print_json(&points)?
    } else {
        print_data(&format!("{}\n\n{}", family.describe(), render(&points)))?
    }
    Ok(Outcome::Success)
}

fn render(points: &[NeuPoint]) -> String {
    let bound = |x: Option<f64>| x.map_or_else(String::new, |x| format!("{x:.1e}"));
    let rows: Vec<Vec<String>> = points
        .iter()
        .map(|p| {
            vec![
                p.theta.clone(),
                p.n.to_string(),
                p.layers.to_string(),
                format!("{:.5}", p.neu),
                format!("{:.5}", p.sem),
                format!("{:.5}", p.noise),
                format!("{:.5}", p.split),
                format!("{:.5}", p.split_sem),
                format!("{:.5}", p.same_prompt),
                bound(p.bound_depth),
                bound(p.bound_sampling),
                bound(p.bound_events),
            ]
        })
        .collect();
    let header = [
        "theta",
        "n",
        "L",
        "J",
        "± s.e.",
        "noise",
        "without noise",
        "± s.e.",
        "same prompt",
        "depth term",
        "sampling term",
        "event term",
    ];
    table::render(&header, &rows)
}
