//! "Did you mean": the method whose name is nearest.

use super::METHODS;

/// The method whose name is nearest to `name`, if one is near.
pub fn nearest(name: &str) -> Option<&'static str> {
    let distances = METHODS.iter().map(|method| (edit_distance(name, method.name), method.name));
    distances.filter(|(distance, near)| *distance <= 1 + near.len().min(name.len()) / 4).min().map(|(_, near)| near)
}

/// Insertions, deletions and replacements between two words (Levenshtein, 1966).
fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + (x != y) as usize;
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
