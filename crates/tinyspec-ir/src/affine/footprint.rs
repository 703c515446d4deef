//! The elements that an address covers while its loops run.

use smallvec::SmallVec;

/// A contiguous run of elements, repeated at some strides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Footprint {
    /// Elements of a run, which has no gaps.
    pub run: i64,
    /// The strides of rows and their number, smallest first.
    pub rows: SmallVec<[(i64, i64); 4]>,
}

impl Footprint {
    /// The footprint of an address that each `(step, trips)` moves. The direction does not matter.
    ///
    /// A step within the run lengthens it; a longer one repeats it. The same holds for steps of whole rows.
    ///
    /// ```
    /// use tinyspec_ir::affine::Footprint;
    /// // A window of 3 over 16 places, in 8 rows of 100.
    /// let footprint = Footprint::of([(1, 16), (1, 3), (100, 8)]);
    /// assert_eq!((footprint.run, &footprint.rows[..]), (18, &[(100, 8)][..]));
    /// // A window of 3 by 3 over 16 places in each of 8 rows.
    /// let footprint = Footprint::of([(1, 16), (1, 3), (100, 8), (100, 3)]);
    /// assert_eq!((footprint.run, &footprint.rows[..]), (18, &[(100, 10)][..]));
    /// ```
    pub fn of(steps: impl IntoIterator<Item = (i64, i64)>) -> Footprint {
        let steps = steps.into_iter().map(|(step, trips)| (step.saturating_abs(), trips));
        let mut steps: SmallVec<[(i64, i64); 8]> = steps.filter(|&(step, trips)| step > 0 && trips > 1).collect();
        steps.sort_unstable();
        let mut footprint = Footprint { run: 1, rows: SmallVec::new() };
        for (step, trips) in steps {
            if step <= footprint.run {
                footprint.run = footprint.run.saturating_add(step.saturating_mul(trips - 1));
                continue;
            }
            match footprint.rows.last_mut() {
                Some((row, count)) if step % *row == 0 && step / *row <= *count => {
                    *count = count.saturating_add((step / *row).saturating_mul(trips - 1));
                }
                _ => footprint.rows.push((step, trips)),
            }
        }
        footprint
    }

    /// Elements of all rows.
    pub fn elements(&self) -> i64 {
        self.rows.iter().fold(self.run, |elements, &(_, count)| elements.saturating_mul(count))
    }
}
