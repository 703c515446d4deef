//! Which digits were taken for which: counted by a kernel written by hand.

use tinyspec::prelude::*;

/// Number of digits.
const CLASSES: usize = 10;

uop! { <N>
    /// `counts[label, guess]`: all images at once, each adds one.
    fn confusion(labels: &Global<i32, N>, guesses: &Global<i32, N>) -> Global<i32, CLASSES, CLASSES> as counts {
        for i in global(N) {
            let label = labels[i];
            let guess = guesses[i];
            let classes = CLASSES as i32;
            if label >= 0 && label < classes && guess >= 0 && guess < classes {
                atomic_add(&mut counts[label, guess], 1);
            }
        }
    }
}

/// Counts of (label, guess), row by row.
pub struct Confusion {
    counts: Vec<i32>,
}

impl Confusion {
    /// Compares guesses with labels.
    pub fn count(labels: &Tensor, guesses: &Tensor) -> Result<Confusion> {
        Ok(Confusion { counts: confusion(labels, guesses).to_vec()? })
    }

    /// Share that was recognised, in percent.
    pub fn accuracy(&self) -> f64 {
        let right = (0..CLASSES).map(|digit| self.counts[digit * (CLASSES + 1)]).sum();
        percent(right, self.counts.iter().sum())
    }

    /// Share of each digit that was recognised, in percent.
    pub fn recognised(&self) -> impl Iterator<Item = f64> {
        self.counts.chunks(CLASSES).enumerate().map(|(digit, row)| percent(row[digit], row.iter().sum()))
    }
}

fn percent(part: i32, whole: i32) -> f64 {
    100.0 * f64::from(part) / f64::from(whole.max(1))
}
