//! Families of chips: how their instructions differ beyond their names.

/// Chips whose instructions behave alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Gfx9,
    Gfx11,
    Gfx12,
}

/// A chip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chip {
    pub name: &'static str,
    pub family: Family,
    /// Lanes of a wave.
    pub wave: usize,
}

impl Chip {
    pub fn named(name: &'static str, wave: usize) -> Chip {
        let family = match name {
            "gfx90a" | "gfx942" | "gfx950" => Family::Gfx9,
            "gfx1200" | "gfx1201" => Family::Gfx12,
            _ => Family::Gfx11,
        };
        Chip { name, family, wave }
    }

    /// Loads from GLOBAL memory write back in issue order, so of two loads to one register the later one wins. On gfx12 only
    /// the counter decrements in order.
    pub fn loads_in_order(&self) -> bool {
        self.family != Family::Gfx12
    }
}
