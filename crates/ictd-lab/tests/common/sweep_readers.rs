//! Readers of sweeps: plans, and journals that were begun.
#![allow(dead_code, missing_docs)]

use std::fs;
use std::path::Path;

use ictd_lab::sweep::{Plan, Request, TABLE};
use ictd_lab::{LabError, Progress};

use super::fuzz::{Reader, words};
use super::readers::bytes;

/// A plan is refused, or all its settings are made, unless they are many.
pub fn plan() -> Reader {
    Reader {
        name: "sweep-plan",
        refuses: true,
        valid: bytes(&[
            "seeds = \"0..3\"\nmetrics = \"every 4\"\ncheckpoints = \"all\"\n[set]\nepochs = 10\n[grid]\nkernel = [\"softmax\", \"linear\"]\n[[zip]]\nn = [5, 8]\nlayers = [2, 3]\n",
            "name = \"a\"\npreset = \"mask-relaxed\"\nseeds = [1, 2]\n[grid.optimizer]\nlr = { from = 1e-4, to = 1e-2, points = 3, scale = \"log\" }\n",
            "[[case]]\ntitle = \"one\"\nset = { tau = 2 }\n[[case]]\ntitle = \"two\"\nset = { \"rho.start\" = 0.5 }\n",
        ]),
        words: words![
            "seeds",
            "preset",
            "config",
            "metrics",
            "[grid]",
            "[[zip]]",
            "[[case]]",
            "title",
            "set",
            "from",
            "points",
            "scale",
            "\"log\"",
            "\"0..18446744073709551615\"",
            "1000000000",
            "1e308",
            "[]",
            "nan",
            "\"\"",
            "[[1, 2]]",
        ],
        read: Box::new(|path, _| {
            let settings = || -> Result<(), LabError> {
                let plan = Plan::read(path)?;
                if plan.num_settings() <= 100 {
                    Request::of_plan(plan, None, Vec::new(), None)?.sweep()?;
                }
                Ok(())
            };
            settings().into()
        }),
    }
}

/// A journal of a sweep, damaged: the runs that it does not tell of are done again, and the table is that of before.
pub fn journal(dir: &Path) -> Reader {
    let plan = dir.join("plan.toml");
    let text = "seeds = 2\nmetrics = \"every 1\"\n[set]\nepochs = 2\nbatches = 1\nbatch = 1\nn = 1\nlayers = 1\nstates = 3\nfeatures = 1\n[grid]\nkernel = [\"linear\", \"relu\"]\n";
    fs::write(&plan, text).expect("the scratch directory can be written to");
    let out = dir.join("out");
    let plan = Plan::read(&plan).expect("a small plan");
    let request = Request::of_plan(plan, Some(out.clone()), Vec::new(), None).expect("a small sweep");
    let run = move || -> Result<Vec<u8>, LabError> {
        let opened = request.open(true)?;
        let progress = Progress::default();
        opened.work(&(0..opened.sweep.num_runs()), &progress)?;
        opened.finish(&progress, |_| {})?;
        Ok(fs::read(opened.root().join(TABLE)).expect("a table"))
    };
    let table = run().expect("a small sweep");
    let folder = out.join("journal");
    let files = || fs::read_dir(&folder).expect("a journal").flatten().map(|file| file.path());
    let own = files().find(|path| path.extension().is_some_and(|e| e == "log")).expect("a journal");
    let valid = vec![fs::read(&own).expect("a journal")];
    Reader {
        name: "sweep-journal",
        refuses: false,
        valid,
        words: words!["\t", "\n", ",", ";", "diverged", "0\t", "\r\n"],
        read: Box::new(move |_, input| {
            fs::remove_dir_all(&folder).expect("the sweep can be written to");
            fs::create_dir(&folder).expect("the sweep can be written to");
            let _ = fs::remove_file(out.join("results.json"));
            fs::write(&own, input).expect("the journal can be written to");
            let found = run();
            if let Ok(found) = &found {
                assert!(*found == table, "a damaged journal became another table");
            }
            found.into()
        }),
    }
}
