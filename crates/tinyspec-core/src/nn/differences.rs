//! Differences between the named tensors that were found and those that were expected.

use std::fmt;

/// All differences, to be reported together.
#[derive(Default, Debug)]
pub(super) struct Differences {
    /// Names that are expected but not there.
    pub missing: Vec<String>,
    /// Names that are there but not expected.
    pub unexpected: Vec<String>,
    /// Descriptions of tensors with a different shape or dtype.
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
