//! Two processes and one directory.

use std::io;
use std::time::Duration;

use super::draw::Draw;
use super::process::Answer;
use super::small;
use super::trees::Tree;
use super::{Attack, Case, Class, Fault, Lab};

pub fn attacks(lab: &Lab) -> io::Result<Vec<Attack<'_>>> {
    let all = |_: &str| true;
    let pair = |name: &'static str,
                command: &'static [&'static str],
                more: &'static [&'static str],
                before: Tree,
                is_result: fn(&str) -> bool| {
        // A checkpoint after each of many epochs: the more is written, the more gets into each other's way.
        let busy = |word: &&'static str| match *word {
            "epochs=40" => "epochs=300",
            "20" => "1",
            other => other,
        };
        let command: Vec<&str> = command.iter().map(busy).collect();
        let dir = lab.dir("pair")?;
        before.write(&dir)?;
        let finished = small::again(lab, &dir, &command)?;
        let expected = finished.tree.only(is_result);
        Ok::<_, io::Error>(Attack::endless(name, 60, move |number, dir| {
            let mut draw = Draw::new(name, number);
            before.write(dir)?;
            let (first, second) = (lab.call(dir, &command), lab.call(dir, &command).and(more));
            // The other comes at once, or at any time while the first works, before it draws.
            let time = Duration::from_secs_f64(finished.seconds).mul_f64(draw.below(1000) as f64 / 2000.0);
            let running = first.start("first")?;
            if number % 2 == 1 {
                std::thread::sleep(time);
            }
            let other = second.start("second")?;
            let answers = [running.wait()?, other.wait()?];
            let mut faults: Vec<Fault> = answers.iter().flat_map(Answer::faults).collect();
            for answer in &answers {
                let says_so = answer.is_refusal() && answer.last_line().contains("in use");
                if answer.code != Some(0) && !says_so && answer.signal.is_none() {
                    let what =
                        format!("fails, and not because the directory is in use: {}", answer.last_line());
                    faults.push(Fault::new(Class::Other, what));
                }
            }
            if answers.iter().all(|answer| answer.code != Some(0)) {
                faults.push(Fault::new(Class::Other, "both fail"));
            } else if let Some(difference) = Tree::read(dir).only(is_result).difference(&expected) {
                let class = if difference.ends_with("differs") { Class::Silent } else { Class::Other };
                faults.push(Fault::new(class, difference));
            }
            let line = format!("{} & {}", first.line(), second.line());
            Ok(Case { line, faults })
        }))
    };
    Ok(vec![
        pair("pairs/pretrain", &small::PRETRAIN, &[], Tree::default(), all)?,
        pair("pairs/pretrain-resume", &small::PRETRAIN, &["--resume"], Tree::default(), all)?,
        pair("pairs/reproduce", &small::REPRODUCE, &[], Tree::default(), all)?,
        pair("pairs/readings", &small::READINGS, &[], Tree::default(), all)?,
        pair("pairs/sweep", &small::SWEEP, &[], small::plan(), small::is_swept)?,
    ])
}
