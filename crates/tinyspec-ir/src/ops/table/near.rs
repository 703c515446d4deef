//! "Did you mean": the method whose name is nearest.

use super::METHODS;

/// The method whose name is nearest to `name`, if one is near.
pub fn nearest(name: &str) -> Option<&'static str> {
    nearest_of(name, METHODS.iter().map(|method| method.name))
}

/// The name that is nearest to `name`, if one is near.
pub fn nearest_of<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distances = names.into_iter().map(|near| (edit_distance(name, near), near));
    // Of a short name a letter is much.
    let most = |near: &str| match near.len().min(name.len()) {
        0..=2 => 0,
        3..=5 => 1,
        length => 1 + length / 4,
    };
    distances.filter(|(distance, near)| *distance <= most(near)).min().map(|(_, near)| near)
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
