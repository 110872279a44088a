//! Command lines that went wrong once.

use std::fs;
use std::io;

use super::trees::Tree;
use super::{Attack, Case, Class, Fault, Lab, small};

/// How a command line must end.
#[derive(Clone, Copy)]
enum End {
    /// With a result.
    Done,
    /// Refused, in a line that has this word.
    Refused(&'static str),
    /// With anything but a fault.
    Sound,
}
use End::{Done, Refused, Sound};

/// `REWARD`, `TINY` and `TYPE` are files.
const LINES: [(&str, End); 30] = [
    ("regimes --tasks 1 --states 8", Done),
    ("regimes --tasks 1 --states 8 --seed 1", Done),
    ("regimes --tasks 1 --states 10 --seed 2", Done),
    ("regimes --tasks 1 --states 32 --seed 3", Done),
    ("certify --states 8 --index 18 --score-scale 1000 --gamma 0.9", Done),
    ("certify --states 8 --index 18 --score-scale 999 --gamma 0.9", Done),
    ("certify --score-scale 5e307 --json", Sound),
    ("certify --score-scale 1e308 --json", Sound),
    ("bound --score-scale 5e307 --states 4 --lengths 10 --contexts 3 --json", Sound),
    ("neu --score-scale 5e307 --states 4 --lengths 3 --layers 1 --samples 4 --json", Sound),
    (
        "bound --task dense --states 3 --one-hot --gamma 0 --score-scale 500 --lengths 1000 --contexts 20 --json",
        Done,
    ),
    ("forward --input REWARD --fixed-point --layers 0 --json", Sound),
    ("forward --input REWARD --fixed-point --layers 0", Sound),
    ("forward --input TINY --layers 3 --out new", Sound),
    ("msve --tasks 2 --lengths 3,5 --layers 200000000000", Refused("layers")),
    ("msve --tasks 2 --lengths 3,5 --layers 9000000000000000000", Refused("layers")),
    ("msve --tasks 1000000000000 --lengths 3,5 --layers 2", Refused("tasks")),
    ("verify --trials 1000000000000", Refused("trials")),
    ("pretrain --seeds 0..1000000 --set epochs=1", Refused("seeds")),
    ("pretrain --seeds 1 --set features=1000000", Refused("features")),
    ("pretrain --seeds 1 --set epochs=1 --set n=500 --set layers=20 --set batch=1 --set batches=1", Sound),
    ("task dense --gamma NaN", Refused("gamma")),
    ("task dense --gamma inf", Refused("gamma")),
    ("certify --gamma NaN", Refused("gamma")),
    ("neu --layers -1", Refused("layers")),
    ("neu --lengths -1", Refused("lengths")),
    ("msve --lengths 3,-1", Refused("lengths")),
    ("pretrain TYPE", Refused("line 2")),
    ("pretrain --set epochs=many", Refused("epochs")),
    ("forward --input TINY --step-size -", Refused("step-size")),
];

pub fn attacks(lab: &Lab) -> io::Result<Vec<Attack<'_>>> {
    let inputs = lab.dir("known")?;
    fs::write(inputs.join("REWARD"), small::CONTEXT.replace("-0.5, 0.25]", "-1e308, 0.25]"))?;
    fs::write(inputs.join("TINY"), small::CONTEXT.replace("[1.0, -0.5, 0.25]", "[5e-324, 0, 5e-324]"))?;
    fs::write(inputs.join("TYPE"), "batch = 2\nepochs = \"many\"\n")?;
    Ok(vec![Attack::finite("known", LINES.len(), move |number, dir| {
        let (line, end) = LINES[number as usize];
        let path = |name: &str| inputs.join(name).to_string_lossy().into_owned();
        let words = line.split(' ').map(|word| match word {
            "REWARD" | "TINY" | "TYPE" => path(word),
            word => word.to_owned(),
        });
        let call = lab.call(dir, &[]).and(words);
        let answer = call.run()?;
        let mut faults = answer.faults_with(&Tree::read(dir));
        let mut other = |what: String| faults.push(Fault::new(Class::Other, what));
        match end {
            Done if answer.code != Some(0) => {
                other(format!("exit code {:?}: {}", answer.code, answer.last_line()))
            }
            Refused(_) if answer.code != Some(2) => other(format!("exit code {:?}, expected 2", answer.code)),
            Refused(word) if !answer.stderr.contains(word) => {
                other(format!("'{word}' is not named: {}", answer.last_line()))
            }
            _ => {}
        }
        Ok(Case { line: call.line(), faults })
    })])
}
