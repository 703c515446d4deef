//! Named tensors that are not those that were wanted.

use std::fmt;

/// In what they differ: all of it, to be told at once.
#[derive(Default, Debug)]
pub(super) struct Differences {
    /// Names that are wanted and not there.
    pub missing: Vec<String>,
    /// Names that are there and not wanted.
    pub unexpected: Vec<String>,
    /// What has another shape or dtype, in words.
    pub wrong: Vec<String>,
}

impl Differences {
    pub fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.unexpected.is_empty() && self.wrong.is_empty()
    }
}

impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let list = |what: &str, names: &[String]| match names {
            [] => None,
            names => Some(format!("{what}: {}", names.join(", "))),
        };
        let names = list("missing", &self.missing).into_iter().chain(list("unexpected", &self.unexpected));
        let reasons: Vec<String> = names.chain(self.wrong.iter().cloned()).collect();
        f.write_str(&reasons.join("; "))
    }
}
