//! Prints dims with the user's names, and minima as such.

use super::{Atom, Dim};
use std::cell::RefCell;
use std::fmt;

thread_local! {
    /// The current names of dims.
    static NAMES: RefCell<Vec<(u32, String)>> = const { RefCell::new(Vec::new()) };
}

fn name_of(slot: u32) -> Option<String> {
    NAMES.with_borrow(|names| names.iter().find(|(other, _)| *other == slot).map(|(_, name)| name.clone()))
}

/// Runs `body` with `names` (slot and name) for named dims, since users who read messages know no slots. Other dims
/// keep their current names.
///
/// ```
/// use tinyspec_ir::{Dim, dim};
/// let shown = dim::with_names(&[(0, "B".to_string())], || (Dim::named(0, 1, 9) * Dim::from(2)).to_string());
/// assert_eq!(shown, "2*B");
/// ```
pub fn with_names<T>(names: &[(u32, String)], body: impl FnOnce() -> T) -> T {
    struct Restore(Vec<(u32, String)>);
    impl Drop for Restore {
        fn drop(&mut self) {
            NAMES.set(std::mem::take(&mut self.0));
        }
    }
    let outer = NAMES.take();
    NAMES.set(names.iter().chain(&outer).cloned().collect());
    let _restore = Restore(outer);
    body()
}

impl Dim {
    /// Terms that are not a number.
    fn variables(&self) -> usize {
        self.terms().iter().filter(|(atoms, _)| !atoms.is_empty()).count()
    }

    /// As an operand of a division: in brackets unless it is a number or a name.
    ///
    /// ```
    /// use tinyspec_ir::{Dim, dim};
    /// let dim = Dim::named(0, 1, 9);
    /// let shown = dim::with_names(&[(0, "H".to_string())], || [dim.bracketed(), (dim * Dim::from(2)).bracketed()]);
    /// assert_eq!(shown, ["H", "(2*H)"]);
    /// ```
    pub fn bracketed(&self) -> String {
        match self.terms().as_slice() {
            [] => self.to_string(),
            [(atoms, 0..)] if atoms.is_empty() => self.to_string(),
            [(atoms, 1)] if matches!(atoms[..], [Atom::Named { .. } | Atom::Max(..)]) => self.to_string(),
            _ => format!("({self})"),
        }
    }

    /// `c · min(a, b)` and the rest: the normal form of a minimum is `c a + c b - c max(a, b)`.
    fn as_minimum(&self) -> Option<(i64, Dim, Dim, Dim)> {
        let super::Repr::Sum(sum) = &self.0 else { return None };
        sum.terms.iter().find_map(|(atoms, factor)| {
            let [Atom::Max(a, b)] = atoms.as_slice() else { return None };
            let count = factor.checked_neg().filter(|count| *count > 0)?;
            let rest = self - Dim::product(atoms, *factor) - (a + b) * count;
            // The sum has all terms of both sides.
            let is_there = rest.variables() + a.variables() + b.variables() + 1 == self.variables();
            let is_clamp = count == 1 && rest.as_const().is_some() && (a.is(0) || b.is(0));
            is_there.then(|| match is_clamp {
                true => (count, a + &rest, b + &rest, Dim::from(0)),
                false => (count, a.clone(), b.clone(), rest),
            })
        })
    }
}

fn factor(atom: &Atom, is_alone: bool) -> String {
    match atom {
        Atom::Named { slot, .. } => name_of(*slot).unwrap_or_else(|| format!("d{slot}")),
        Atom::Idiv(a, b) => quotient(is_alone, a, "/", b),
        Atom::Mod(a, b) => quotient(is_alone, a, "%", b),
        Atom::Max(a, b) => format!("max({a}, {b})"),
    }
}

/// The factors of a term. A dim `D` with an exact divisor is that divisor times a dim with the name `(D/H)` or
/// `(D/(2*H))`: their product is shown as `D`.
fn factors(atoms: &[Atom], mut coefficient: i64) -> (Vec<String>, i64) {
    let is_alone = atoms.len() == 1 && coefficient == 1;
    let mut shown: Vec<String> = atoms.iter().map(|atom| factor(atom, is_alone)).collect();
    for atom in atoms {
        let Atom::Named { .. } = atom else { continue };
        let quotient = factor(atom, false);
        let parts = quotient.strip_prefix('(').and_then(|text| text.strip_suffix(')')?.split_once('/'));
        let (Some((whole, by)), Some(place)) = (parts, shown.iter().position(|other| *other == quotient)) else {
            continue;
        };
        let (mut others, mut left) = (shown.clone(), coefficient);
        others[place] = whole.to_string();
        let is_there = |factor: &str| match factor.parse::<i64>() {
            Ok(number) if number > 1 && left % number == 0 => {
                left /= number;
                true
            }
            Ok(_) => false,
            Err(_) => others.iter().position(|other| other == factor).map(|place| others.remove(place)).is_some(),
        };
        if by.trim_matches(['(', ')']).split('*').all(is_there) {
            (shown, coefficient) = (others, left);
        }
    }
    (shown, coefficient)
}

/// `a / b` with the necessary brackets: as a factor it is bracketed, because it rounds.
fn quotient(is_alone: bool, a: &Dim, sign: &str, b: &Dim) -> String {
    let text = format!("{}{sign}{}", a.bracketed(), b.bracketed());
    if is_alone { text } else { format!("({text})") }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((count, a, b, rest)) = self.as_minimum() {
            if count != 1 {
                write!(f, "{count}*")?;
            }
            write!(f, "min({a}, {b})")?;
            return if rest.is(0) { Ok(()) } else { write!(f, "+{rest}") };
        }
        let mut terms = self.terms();
        if terms.is_empty() {
            return f.write_str("0");
        }
        // Positive terms first, numbers last: `D-K`, `B+1`.
        terms.sort_by_key(|(atoms, coefficient)| (*coefficient < 0, atoms.is_empty()));
        for (position, (atoms, coefficient)) in terms.iter().enumerate() {
            let (shown, coefficient) = factors(atoms, *coefficient);
            match (position, coefficient) {
                (0, _) | (_, ..0) => {}
                _ => f.write_str("+")?,
            }
            match (shown.is_empty(), coefficient) {
                (true, _) => write!(f, "{coefficient}")?,
                (false, 1) => {}
                (false, -1) => f.write_str("-")?,
                (false, _) => write!(f, "{coefficient}*")?,
            }
            f.write_str(&shown.join("*"))?;
        }
        Ok(())
    }
}
