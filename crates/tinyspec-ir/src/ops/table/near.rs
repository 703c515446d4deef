//! "Did you mean": the method whose name is nearest.

use super::METHODS;

/// The method whose name is nearest to `name`, if one is near.
pub fn nearest(name: &str) -> Option<&'static str> {
    nearest_of(name, METHODS.iter().map(|method| method.name))
}

/// The name that is nearest to `name`, if one is near.
pub fn nearest_of<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters = |word: &str| {
        let mut letters = word.as_bytes().to_vec();
        letters.sort_unstable();
        letters
    };
    // Of names that are as near, one of the same letters: fingers exchange them more often than they leave one out.
    let distances = names.into_iter().map(|near| (edit_distance(name, near), letters(near) != letters(name), near));
    // Of a short name a letter is much.
    let most = |near: &str| match near.len().min(name.len()) {
        0..=2 => 0,
        3..=5 => 1,
        length => 1 + length / 4,
    };
    // Misspellings rarely change the first letter: short names that differ in it are different words, such as `act` and `cat`.
    let is_other = |near: &str| near.len().min(name.len()) <= 3 && near.as_bytes().first() != name.as_bytes().first();
    distances.filter(|(distance, _, near)| *distance <= most(near) && !is_other(near)).min().map(|(.., near)| near)
}

/// Insertions, deletions, replacements, and exchanges of neighbours between two words (Damerau, 1964).
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    // The rows for the prefixes of `a` that are two and one letters shorter than the one looked at.
    let mut before: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + (a[i - 1] != b[j - 1]) as usize;
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}
