//! Control as a study among others.
#![allow(missing_docs)]

use ictd_lab::studies::{Plan, STUDIES, Scope, Verdict, control, reproduce};

/// It can be judged and reported like the paper's claims, and is not among them.
#[test]
fn control_is_judged_past_the_paper() {
    assert!(STUDIES.iter().all(|study| study.id != control::STUDY.id));
    let dir = tempfile::tempdir().unwrap();
    let plan = Plan { seed: 3, seeds: None, quick: true };
    let found = reproduce::run(&[control::STUDY], &plan, dir.path(), true, |_, _| Ok(())).unwrap();
    let ids: Vec<&str> = found.claims.iter().map(|c| c.id.as_str()).collect();
    assert_eq!(ids, control::STUDY.claims);
    assert!(found.claims.iter().all(|c| c.scope == Scope::PastThePaper));
    // Inequalities and identities hold on any processes.
    for k in [0, 2, 3] {
        assert_eq!(found.claims[k].verdict, Verdict::Reproduced, "{:?}", found.claims[k]);
    }
    assert!(dir.path().join("report.html").is_file() && dir.path().join("control.svg").is_file());
}
