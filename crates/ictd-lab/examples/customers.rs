//! The log of the tutorial: 250 simulated customers of a service that is paid by the week, as CSV.
//!
//! Every week a customer logs in a number of times and pays 9 for each seat. Who logs in rarely is more likely to leave. After a year recording
//! stops. The next week depends on this week alone, so that logins and seats are a state.

use ictd::random::{Purpose, Stream};

const WEEKS: usize = 52;

fn main() {
    println!("customer,week,logins,seats,reward,terminated");
    for customer in 0..250 {
        let mut stream = Stream::new(2026, Purpose::User(7), customer);
        let mut logins = f64::from(stream.below(9));
        let mut seats = 1 + stream.below(8);
        for week in 0..WEEKS {
            let leaves = stream.uniform() < 1.0 / (1.0 + (1.2 + 0.5 * logins).exp());
            println!("c{customer:03},{week},{logins},{seats},{},{}", 9 * seats, u8::from(leaves));
            if leaves {
                break;
            }
            logins = (logins + 0.15 * (4.0 - logins) + 1.2 * stream.normal()).round().clamp(0.0, 14.0);
            seats = match stream.below(40) {
                0 => seats.saturating_sub(1).max(1),
                1 => seats + 1,
                _ => seats,
            };
            if week + 1 == WEEKS {
                // The state in which recording stops, without a payment.
                println!("c{customer:03},{WEEKS},{logins},{seats},,");
            }
        }
    }
}
