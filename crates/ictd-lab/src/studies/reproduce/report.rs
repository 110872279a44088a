//! The report: one HTML file that needs nothing else.

use std::fmt::Write as _;

use super::{Claim, Plan, Stability};
use crate::report::{escape, page as whole_page};
use crate::studies::{Paper, Scope, Section, Verdict};

/// The title of the page of a paper.
fn title(paper: Paper) -> &'static str {
    match paper {
        Paper::Main => "Softmax Transformers implement in-context RL: a reproduction",
        Paper::Predecessor => "Transformers can learn TD methods for in-context RL: a reproduction",
    }
}

/// The report as HTML, from the claims and the SVG of their figures. The same claims give the same bytes.
pub fn html(paper: Paper, claims: &[Claim], figures: &[(String, String)], plan: &Plan) -> String {
    let mut page = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        page,
        "<p>Every figure and claim of <cite>{}</cite>, \
         computed by <code>ictd {}</code> with <code>ictd reproduce{}{}</code>. Every claim is judged by a criterion that stands in the code that runs it.</p>",
        paper.title(),
        env!("CARGO_PKG_VERSION"),
        paper.option(),
        plan.options()
    );
    summary(&mut page, claims);
    differences(&mut page, claims);
    contents(&mut page, paper, claims);
    let mut drawn: Vec<&str> = Vec::new();
    for (anchor, title, members) in sections(paper, claims) {
        let _ = write!(page, "<section id=\"{anchor}\">\n<h2>{title}</h2>\n");
        for (k, claim) in members.iter().enumerate() {
            article(&mut page, claim);
            // A figure that several claims share stands after the last of them.
            let again = members[k + 1..].iter().any(|c| c.figure == claim.figure);
            let figure = claim.figure.as_deref().filter(|f| !again && !drawn.contains(f));
            if let Some((name, svg)) = figures.iter().find(|f| Some(f.0.as_str()) == figure) {
                drawn.push(name);
                let _ = write!(
                    page,
                    "<figure>\n<div class=\"scroll\" tabindex=\"0\">{svg}</div>\n<figcaption><a href=\"{name}.svg\">{name}.svg</a>, \
                     <a href=\"{name}.pdf\">pdf</a>, <a href=\"{name}.png\">png</a></figcaption>\n</figure>\n"
                );
            }
        }
        page.push_str("</section>\n");
    }
    page.push_str(
        "<footer><p>Numbers behind every figure are in the CSV files beside this page, all claims in \
         <a href=\"claims.json\">claims.json</a>, times in <a href=\"timings.json\">timings.json</a>.</p></footer>\n",
    );
    whole_page(title(paper), &page)
}

/// The sections that have claims, those of studies of one's own last.
fn sections(paper: Paper, claims: &[Claim]) -> Vec<(&'static str, &'static str, Vec<&Claim>)> {
    let section = |claim: &Claim| {
        let study = paper.studies().iter().find(|s| s.claims.contains(&claim.id.as_str()));
        study.map_or(Section::Others, |s| s.section)
    };
    let members = |of: Section| claims.iter().filter(|c| section(c) == of).collect::<Vec<_>>();
    let all = Section::ALL.into_iter().map(|(section, anchor, title)| (anchor, title, members(section)));
    all.filter(|s| !s.2.is_empty()).collect()
}

fn badge(verdict: Verdict) -> String {
    let class = match verdict {
        Verdict::Reproduced => "yes",
        Verdict::Consistent => "weak",
        Verdict::Partly => "partly",
        Verdict::NotReproduced => "no",
        Verdict::NotTestable => "none",
    };
    format!("<span class=\"badge {class}\">{verdict}</span>")
}

/// The verdict of a claim; illustrations have none.
fn badge_of(claim: &Claim) -> String {
    if claim.scope == Scope::Illustration {
        return "<span class=\"badge none\">illustration</span>".into();
    }
    badge(claim.verdict)
}

fn summary(page: &mut String, claims: &[Claim]) {
    for (scope, name) in Scope::COUNTED {
        if !claims.iter().any(|c| c.scope == scope) {
            continue;
        }
        let _ = write!(page, "<h4>{name}</h4>\n<ul class=\"counts\">\n");
        for verdict in Verdict::ALL {
            let count = claims.iter().filter(|c| c.scope == scope && c.verdict == verdict).count();
            if count > 0 {
                let _ = writeln!(page, "<li><b>{count}</b> {}</li>", badge(verdict));
            }
        }
        page.push_str("</ul>\n");
    }
}

/// The sections, how many claims they have by verdict, and their claims to unfold.
fn contents(page: &mut String, paper: Paper, claims: &[Claim]) {
    page.push_str("<nav aria-label=\"Contents\">\n<h2>Contents</h2>\n");
    for (anchor, title, members) in sections(paper, claims) {
        let _ = write!(page, "<h3><a href=\"#{anchor}\">{title}</a></h3>\n<details>\n<summary>");
        let mut kinds = grouped(members.iter().copied(), badge_of);
        kinds.sort_by_key(|(_, members)| std::cmp::Reverse(members.len()));
        for (badge, members) in kinds {
            let _ = write!(page, "<span class=\"kind\"><b>{}</b> {badge}</span> ", members.len());
        }
        page.push_str("</summary>\n<ul>\n");
        for claim in members {
            let _ = writeln!(page, "<li>{}</li>", link(claim));
        }
        page.push_str("</ul>\n</details>\n");
    }
    page.push_str("</nav>\n");
}

/// A claim by name, linked, with its verdict.
fn link(claim: &Claim) -> String {
    format!("<a href=\"#{}\">{}</a> {}", escape(&claim.id), escape(&claim.paper), badge_of(claim))
}

fn article(page: &mut String, claim: &Claim) {
    let Claim { id, paper, says, measured, uncertainty, criterion, .. } = claim;
    let [id, paper, says, measured] = [id, paper, says, measured].map(|text| escape(text));
    let [uncertainty, criterion] = [uncertainty, criterion].map(|text| escape(text));
    let whose = if claim.scope == Scope::PastThePaper { "Past the paper" } else { "The paper" };
    let _ = write!(
        page,
        "<article id=\"{id}\">\n<h3>{paper} {}</h3>\n<div class=\"pair\">\n<div><h4>{whose}</h4><p>{says}</p></div>\n<div><h4>Here</h4><p>{measured}</p><p class=\"small\">{uncertainty}</p></div>\n</div>\n<p class=\"small\">Criterion: {criterion}.</p>\n",
        badge_of(claim)
    );
    if !claim.why.is_empty() {
        let _ = writeln!(page, "<p>Why it differs: {}</p>", escape(&claim.why));
    }
    if let Some(slack) = claim.slack.map(rounded) {
        *page += &format!(
            "<p class=\"small\">Slack: the bound is {slack} times what was measured, where tightest.</p>\n"
        );
    }
    if let Some(stability) = claim.stability {
        let class = if stability.is_doubtful() { "small no" } else { "small" };
        let Stability { same, seeds } = stability;
        *page += &format!(
            "<p class=\"{class}\">The same verdict on {same} of {seeds} seeds of the whole study.</p>\n"
        );
    }
    page.push_str("<p class=\"small\">");
    if let Some(data) = &claim.data {
        let _ = write!(page, "Numbers: <a href=\"{0}\">{0}</a>. ", escape(data));
    }
    let _ = write!(page, "Again: <code>{}</code></p>\n</article>\n", escape(&claim.command));
}

/// The news: claims that were not or only partly reproduced, the paper's own first, those with one reason in one item, and
/// the first sentence of the reason. All of it stands with the claim.
fn differences(page: &mut String, claims: &[Claim]) {
    page.push_str("<section id=\"differences\">\n<h2>Where results differ, and why</h2>\n");
    let differs = |c: &&Claim| matches!(c.verdict, Verdict::NotReproduced | Verdict::Partly);
    let of_scope = |(scope, _)| claims.iter().filter(differs).filter(move |c| c.scope == scope);
    let reasons = grouped(Scope::COUNTED.into_iter().flat_map(of_scope), |claim| claim.why.as_str());
    if reasons.is_empty() {
        page.push_str(
            "<p>Nowhere: every claim that can be tested was reproduced, or nothing contradicts it.</p>\n",
        );
    }
    page.push_str("<ul class=\"news\">\n");
    for (why, claims) in reasons {
        let names: Vec<String> = claims.into_iter().map(link).collect();
        let first_sentence = why.find(". ").map_or(why, |end| &why[..=end]);
        let why = if why.is_empty() { "No reason is known." } else { first_sentence };
        let _ = writeln!(page, "<li>{}<br>{}</li>", names.join(", "), escape(why));
    }
    page.push_str("</ul>\n</section>\n");
}

/// Claims that have something in common, in the order in which it is first met.
fn grouped<'a, K: PartialEq>(
    claims: impl Iterator<Item = &'a Claim>,
    of: impl Fn(&'a Claim) -> K,
) -> Vec<(K, Vec<&'a Claim>)> {
    let mut groups: Vec<(K, Vec<&Claim>)> = Vec::new();
    for claim in claims {
        let key = of(claim);
        match groups.iter_mut().find(|group| group.0 == key) {
            Some(group) => group.1.push(claim),
            None => groups.push((key, vec![claim])),
        }
    }
    groups
}

/// Three digits, without an exponent where they fit.
fn rounded(x: f64) -> String {
    if (0.1..1e4).contains(&x) { format!("{x:.1}") } else { format!("{x:.1e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every claim stands in exactly one section, one of nobody's study in the last.
    #[test]
    fn every_claim_has_its_place() {
        for paper in Paper::ALL {
            let ids = paper.studies().iter().flat_map(|s| s.claims).chain([&"own"]);
            let claims: Vec<Claim> = ids.map(|id| Claim::new(id, "", "", "")).collect();
            let sections = sections(paper, &claims);
            assert_eq!(sections.iter().map(|s| s.2.len()).sum::<usize>(), claims.len());
            assert_eq!(sections.last().map(|s| (s.0, s.2[0].id.as_str())), Some(("others", "own")));
        }
    }
}
