use ictd::context::{Context, End};
use ictd::kernel::{Attention, Effort, KernelName, Precision};
use ictd::transformer::{Evaluator, TransformerConfig};
use ictd::{Purpose, Stream};
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let (n, d, layers): (usize, usize, usize) =
        (a[1].parse().unwrap(), a[2].parse().unwrap(), a[3].parse().unwrap());
    let tolerance = a.get(4).map(|t| t.parse().unwrap());
    let mut s = Stream::new(0, Purpose::Prompt, 0);
    let f: Vec<Vec<f64>> = (0..=n).map(|_| s.uniform_vec(d, -1.0, 1.0)).collect();
    let r: Vec<f64> = f[..n].iter().map(|x| x[0] + 0.1).collect();
    let c = Context::builder().episode(&f, &r, End::Truncated).build().unwrap();
    let att = Attention::new(KernelName::Softmax.at(1.0).unwrap(), 0.0).unwrap();
    let t = TransformerConfig::theta_star(att, layers, 0.9).check().unwrap();
    let mut out = Vec::new();
    let efforts: Vec<Effort> = match tolerance {
        None => [Precision::Single, Precision::Double]
            .map(|precision| Effort { precision, ..Effort::default() })
            .to_vec(),
        Some(_) => vec![Effort { tolerance, ..Effort::default() }],
    };
    for e in efforts {
        let mut ev = Evaluator::with(e);
        let now = std::time::Instant::now();
        let v = ev.evaluate(&t, &c).unwrap();
        eprintln!(
            "{e:?} {:?} {:.3}s {:?} {:?}",
            ev.route(),
            now.elapsed().as_secs_f64(),
            ev.approximation(),
            v.output()
        );
        out.push(v.values(layers));
    }
    if out.len() > 1 {
        let top = out[1].iter().fold(0.0f64, |m, x| m.max(x.abs()));
        let err = out[0].iter().zip(&out[1]).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
        eprintln!("relative {:.2e}", err / top);
    }
}
