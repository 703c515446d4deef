//! A failing program, reduced to one that is small and fails in the same way: steps and inputs are left out, and numbers
//! made smaller, as long as the failure stays.

use crate::program::Program;
use std::time::{Duration, Instant};

/// Time after which the smallest program so far is good enough.
const BUDGET: Duration = Duration::from_secs(300);

/// What kind of failure a message tells of: its first line, without what differs from program to program.
pub fn kind(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    let words = line.split_whitespace().filter(|word| !word.contains(|letter: char| letter.is_ascii_digit()));
    words.collect::<Vec<_>>().join(" ")
}

/// The smallest program found for which `check` fails as for this one.
pub fn reduce(program: &Program, check: impl Fn(&Program) -> Result<(), String>) -> Program {
    let Err(message) = check(program) else { return program.clone() };
    let (kind_of_failure, start) = (kind(&message), Instant::now());
    let fails = |smaller: &Program| check(smaller).is_err_and(|message| kind(&message) == kind_of_failure);
    let mut smallest = program.clone();
    loop {
        let smaller = candidates(&smallest).into_iter().take_while(|_| start.elapsed() < BUDGET).find(&fails);
        match smaller {
            Some(smaller) => smallest = smaller,
            None => return smallest,
        }
    }
}

/// Programs that are one change smaller, the greatest changes first.
fn candidates(program: &Program) -> Vec<Program> {
    let mut all = Vec::new();
    let (steps, inputs) = (program.steps.len(), program.inputs.len());
    for length in [steps / 2, steps / 4, 1].into_iter().filter(|&length| length > 0 && length < steps) {
        // Later steps depend on earlier ones, and are tried first.
        for from in (0..=steps - length).rev() {
            let mut smaller = program.clone();
            smaller.steps.drain(from..from + length);
            all.push(smaller);
        }
    }
    for input in (0..inputs).filter(|_| inputs > 1) {
        let mut smaller = program.clone();
        smaller.inputs.remove(input);
        all.push(smaller);
    }
    for (list, count) in [(0, inputs), (1, steps)] {
        for (position, gene) in (0..count).flat_map(|position| (0..6).map(move |gene| (position, gene))) {
            let value = if list == 0 { program.inputs[position][gene] } else { program.steps[position][gene] };
            // Genes are used modulo small numbers.
            let smaller = [0, value % 2, value % 8, value % 64, value / 2, value.saturating_sub(1)];
            for smaller in smaller.into_iter().filter(|&smaller| smaller < value) {
                let mut simpler = program.clone();
                let genes = if list == 0 { &mut simpler.inputs[position] } else { &mut simpler.steps[position] };
                genes[gene] = smaller;
                all.push(simpler);
            }
        }
    }
    all
}

mod tests {
    use super::*;
    use crate::program::Family;

    /// Fails where a step starts with a multiple of 7 and an input is odd.
    fn check(program: &Program) -> Result<(), String> {
        let bad = program.steps.iter().any(|step| step[0] > 0 && step[0] % 7 == 0);
        let odd = program.inputs.iter().any(|input| input[1] % 2 == 1);
        if bad && odd { Err(format!("WRONG element {} of 9", program.steps.len())) } else { Ok(()) }
    }

    #[test]
    fn what_does_not_matter_is_left_out() {
        let program = Program {
            family: Family::Exact,
            inputs: vec![[9, 8, 7, 6, 5, 4], [1, 2, 3, 4, 5, 6], [400, 301, 300, 20, 10, 5]],
            steps: vec![[10, 1, 1, 1, 1, 1], [700, 2, 3, 4, 5, 6], [11, 65535, 2, 2, 2, 2], [12, 0, 0, 0, 0, 9]],
        };
        let reduced = reduce(&program, check);
        assert_eq!(reduced.inputs, [[0, 1, 0, 0, 0, 0]]);
        assert_eq!(reduced.steps.len(), 1);
        assert!(reduced.steps[0][0].is_multiple_of(7) && reduced.steps[0][1..] == [0; 5], "{reduced:?}");
        assert!(check(&reduced).is_err());
    }

    #[test]
    fn failures_are_told_apart_by_what_they_say() {
        assert_eq!(
            kind("WRONG on cpu: element 3 is 0.5 instead of 1e9\nmore"),
            kind("WRONG on cpu: element 71 is 2 instead of 0")
        );
        assert_ne!(kind("ERROR on cpu: select: Reduces"), kind("WRONG on cpu: element 3"));
    }
}
