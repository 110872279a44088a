//! The report: one HTML file that needs nothing else.

use std::fmt::Write as _;

use ictd::evaluate::Level;

use super::show::{Digits, four};
use super::{Evaluation, Row};
use crate::figure::{Width, to_svg};
use crate::report::{escape, page};

/// Rows of the table on the page; all are in the CSV file beside it.
const SHOWN: usize = 100;

/// The report of an evaluation.
pub(super) fn html(evaluation: &Evaluation) -> String {
    let Evaluation { chosen, counts, gamma, .. } = evaluation;
    let mut body = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        body,
        "<p>What followed the states of {} logged episodes, {} transitions, discounted by {gamma} per step. Computed by \
         <code>ictd {} evaluate</code>.</p>",
        counts.episodes,
        counts.transitions,
        env!("CARGO_PKG_VERSION")
    );
    judgement(&mut body, evaluation);
    if let Some(mean) = evaluation.mean {
        let _ = write!(
            body,
            "<ul class=\"counts\">\n<li><b>{}</b> an episode is worth</li>\n<li><b>{} to {}</b> with 95 % confidence</li>\n</ul>\n",
            four(mean.value),
            four(mean.low),
            four(mean.high)
        );
    }
    let _ = writeln!(
        body,
        "<p class=\"small\">Estimator: {}; {}.</p>",
        escape(chosen.estimator.title()),
        escape(&chosen.words())
    );
    if !evaluation.columns.is_empty() {
        let _ = writeln!(
            body,
            "<p class=\"small\">Columns as they were read: {}.</p>",
            escape(&evaluation.columns.join("; "))
        );
    }
    for warning in &evaluation.warnings {
        let _ = writeln!(body, "<p class=\"small\">Note: {}.</p>", escape(warning));
    }
    charts(&mut body, evaluation);
    estimators(&mut body, evaluation);
    rows(&mut body, evaluation);
    body.push_str(
        "<footer><p>All values are in <a href=\"values.csv\">values.csv</a>, all settings that were tried in \
         <a href=\"tuning.csv\">tuning.csv</a>, judgement and reasons in <a href=\"evaluation.json\">evaluation.json</a>. How often \
         such intervals hold the truth where it is known: <code>ictd evaluate --self-test</code>.</p></footer>\n",
    );
    page("The value of every state in a log", &body)
}

fn judgement(body: &mut String, evaluation: &Evaluation) {
    let (class, words) = match evaluation.judgement {
        Level::Trust => ("yes", "Nothing that was checked speaks against these values."),
        Level::Caution => ("partly", "Use these values with the cautions below in mind."),
        Level::Refuse => ("no", "Do not use these values."),
    };
    let name = evaluation.judgement.as_str().to_uppercase();
    let _ = write!(body, "<h2><span class=\"badge {class}\">{name}</span> {words}</h2>\n<ul>\n");
    for reason in &evaluation.judged.reasons {
        let class = match reason.level {
            Level::Trust => "small",
            Level::Caution => "partly",
            Level::Refuse => "no",
        };
        let _ = writeln!(body, "<li class=\"{class}\">{}</li>", escape(&reason.text));
    }
    body.push_str("</ul>\n");
}

fn charts(body: &mut String, evaluation: &Evaluation) {
    let explained = |name: &str| match name {
        "values" => {
            "Every value with its interval. Where intervals of two rows overlap widely, do not rank them."
        }
        "calibration" => {
            "Coverage that can be seen without knowing the truth: episodes were held out, the others predicted their \
             values, and the returns that followed should scatter about the dashed line."
        }
        "tuning" => {
            "Depth is what keeps the noise out: too few layers miss what the states tell, too many repeat the data. The \
             smallest loss was chosen; the dashed line is one number for all states."
        }
        _ => "How values move from layer to layer, and past the chosen depth.",
    };
    body.push_str("<div class=\"charts\">\n");
    for (name, chart) in evaluation.charts() {
        let svg = to_svg(&chart.scene(Width::Column));
        let _ = write!(
            body,
            "<figure>\n<div class=\"scroll\" tabindex=\"0\">{svg}</div>\n<figcaption>{} <a href=\"{name}.svg\">svg</a>, <a href=\"{name}.pdf\">pdf</a>, \
             <a href=\"{name}.png\">png</a></figcaption>\n</figure>\n",
            escape(explained(name))
        );
    }
    body.push_str("</div>\n");
    let along = evaluation.along();
    if !along.is_empty() {
        body.push_str(
            "<h2>Values along features</h2>\n<p class=\"small\">Means over visits with about the same entry of a feature, other features \
             as they come: associations in the log, not effects. The features along which values change most come \
             first.</p>\n<div class=\"charts\">\n",
        );
        for chart in along {
            let svg = to_svg(&chart.scene(Width::Column));
            let _ = writeln!(body, "<figure><div class=\"scroll\" tabindex=\"0\">{svg}</div></figure>");
        }
        body.push_str("</div>\n");
    }
}

fn estimators(body: &mut String, evaluation: &Evaluation) {
    if evaluation.estimators.is_empty() {
        return;
    }
    body.push_str(
        "<h2>Estimators side by side</h2>\n<p class=\"small\">Every estimator at the settings that do best on the same held-out \
         episodes. \u{201c}Behind\u{201d} is by how much its loss is larger than that of the first, with the standard error of the \
         difference; a negative number is ahead.</p>\n<div class=\"scroll\" tabindex=\"0\"><table>\n\
         <tr><th>estimator</th><th>loss</th><th>behind</th><th>an episode is worth</th><th>settings</th></tr>\n",
    );
    for line in evaluation.estimator_lines() {
        let cells: String = line.iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
        let _ = writeln!(body, "<tr>{cells}</tr>");
    }
    body.push_str("</table></div>\n");
}

fn rows(body: &mut String, evaluation: &Evaluation) {
    if evaluation.rows.is_empty() {
        return;
    }
    let (total, shown) = (evaluation.rows.len(), evaluation.rows.len().min(SHOWN));
    let which = if shown < total { format!(", {shown} of {total}") } else { String::new() };
    let _ = write!(
        body,
        "<h2>Values{which}</h2>\n<div class=\"scroll\" tabindex=\"0\"><table>\n<tr><th>{}</th><th>visits</th><th>value</th><th>low</th><th>high</th><th></th></tr>\n",
        evaluation.row_kind()
    );
    let digits = Digits::of(evaluation.rows.iter().flat_map(|row| [row.interval.low, row.interval.high]));
    for row in evaluation.shown_rows().into_iter().take(SHOWN) {
        let Row { visits, interval, .. } = row;
        let numbers =
            [interval.value, interval.low, interval.high].map(|x| format!("<td>{}</td>", digits.text(x)));
        let mark = row.mark();
        let name = escape(&row.name());
        let _ = writeln!(
            body,
            "<tr><td>{name}</td><td>{visits}</td>{}<td class=\"partly\">{mark}</td></tr>",
            numbers.concat()
        );
    }
    body.push_str("</table></div>\n");
}
