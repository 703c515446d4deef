//! Vector clocks of waves: which accesses happened before which.
//!
//! A wave's own entry counts the synchronisations it has passed; its entry for another wave is the last one of that wave that
//! it knows of. An access of wave `w` at clock `c` happened before what wave `v` does now if `v` knows of `c`: if
//! `c <= v[w]`. Lanes of one wave are ordered by its own synchronisations alone.

/// The origin and time of an access: the workgroup, the wave and its clock, the lane; and whether it was atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(pub u64);

const LANE: u32 = 6;
const WAVE: u32 = 5;
const CLOCK: u32 = 24;
/// Other lanes of the wave did so too.
const SHARED: u64 = 1 << (LANE + WAVE);
const ATOMIC: u64 = 1 << (LANE + WAVE + 1);
/// Bits below clock and workgroup.
pub(crate) const WHO: u32 = LANE + WAVE + 2;
/// Workgroups that can be told apart.
pub(crate) const MOST_GROUPS: u64 = (1 << (64 - WHO - CLOCK)) - 2;
/// Synchronisations of a workgroup that can be told apart.
pub(crate) const MOST_CLOCKS: u32 = (1 << CLOCK) - 2;

impl Stamp {
    pub const NEVER: Stamp = Stamp(0);

    /// `group` counts from 1.
    pub fn new(group: u64, clock: u32, wave: usize) -> Stamp {
        Stamp(group << (CLOCK + WHO) | u64::from(clock) << WHO | (wave as u64) << LANE)
    }

    pub fn lane(self, lane: usize) -> Stamp {
        Stamp(self.0 | lane as u64)
    }

    pub fn atomic(self) -> Stamp {
        Stamp(self.0 | ATOMIC)
    }

    pub fn shared(self) -> Stamp {
        Stamp(self.0 | SHARED)
    }

    pub fn is_shared(self) -> bool {
        self.0 & SHARED != 0
    }

    /// Of the same wave between the same synchronisations, and as atomic.
    #[inline]
    pub fn is_beside(self, other: Stamp) -> bool {
        (self.0 ^ other.0) & !(SHARED | ((1 << LANE) - 1)) == 0
    }

    pub fn is_atomic(self) -> bool {
        self.0 & ATOMIC != 0
    }

    pub fn lane_of(self) -> usize {
        (self.0 & ((1 << LANE) - 1)) as usize
    }

    pub fn wave_of(self) -> usize {
        ((self.0 >> LANE) & ((1 << WAVE) - 1)) as usize
    }

    pub fn clock_of(self) -> u32 {
        ((self.0 >> WHO) & ((1 << CLOCK) - 1)) as u32
    }

    pub fn group_of(self) -> u64 {
        self.0 >> (CLOCK + WHO)
    }

    /// Workgroup and clock, to compare with the bounds of [`Now`].
    pub fn moment(self) -> u64 {
        self.0 >> WHO
    }
}

/// The clocks of a workgroup's waves.
pub(crate) struct Clocks {
    waves: usize,
    known: Vec<u32>,
    /// By wave, the least of what it knows of the others.
    least: Vec<u32>,
}

impl Clocks {
    pub fn new(waves: usize) -> Clocks {
        let mut clocks = Clocks { waves, known: Vec::new(), least: Vec::new() };
        clocks.reset();
        clocks
    }

    pub fn reset(&mut self) {
        self.known.clear();
        self.known.resize(self.waves * self.waves, 0);
        for wave in 0..self.waves {
            self.known[wave * self.waves + wave] = 1;
        }
        self.least.clear();
        self.least.resize(self.waves, if self.waves > 1 { 0 } else { u32::MAX });
    }

    pub fn of(&self, wave: usize) -> &[u32] {
        &self.known[wave * self.waves..][..self.waves]
    }

    /// The wave's lanes synchronise: all know what each did before.
    pub fn meet(&mut self, wave: usize) {
        self.known[wave * self.waves + wave] += 1;
    }

    /// Joins the wave's vector clock into another.
    pub fn join(&self, into: &mut Vec<u32>, wave: usize) {
        into.resize(self.waves, 0);
        for (most, &clock) in into.iter_mut().zip(self.of(wave)) {
            *most = (*most).max(clock);
        }
    }

    /// The wave learns what others knew, and passes a synchronisation.
    pub fn learn(&mut self, wave: usize, others: &[u32]) {
        let known = &mut self.known[wave * self.waves..][..self.waves];
        for (clock, &other) in known.iter_mut().zip(others) {
            *clock = (*clock).max(other);
        }
        known[wave] += 1;
        let of_others = known.iter().enumerate().filter(|&(other, _)| other != wave).map(|(_, &clock)| clock);
        self.least[wave] = of_others.min().unwrap_or(u32::MAX);
    }

    /// The moment of a wave, to check its accesses.
    pub fn now(&self, group: u64, wave: usize) -> Now<'_> {
        let known = self.of(wave);
        let own = known[wave];
        let floor = self.least[wave].min(own - 1);
        let base = Stamp::new(group, 0, 0).moment();
        let floor = u64::from(floor);
        Now { stamp: Stamp::new(group, own, wave), known, base, floor, is_private: false }
    }
}

/// A wave at one instruction.
#[derive(Clone, Copy)]
pub(crate) struct Now<'a> {
    /// Its accesses' stamp, without the lane.
    pub stamp: Stamp,
    known: &'a [u32],
    /// Moments of this workgroup begin here.
    base: u64,
    /// The clock up to which the wave has synchronised with all accesses of its workgroup.
    floor: u64,
    /// The memory is the workgroup's own: earlier ones had another.
    is_private: bool,
}

impl Now<'_> {
    /// Of accesses to memory of the workgroup's own.
    pub fn private(self, is_private: bool) -> Self {
        Now { is_private, ..self }
    }

    /// Whether nothing orders the two: an access made before, and one of this lane now.
    #[inline]
    pub fn meets(&self, before: Stamp, lane: usize) -> bool {
        if before == Stamp::NEVER || self.knows(before) {
            return false;
        }
        self.meets_slowly(before, lane)
    }

    #[cold]
    #[inline(never)]
    fn meets_slowly(&self, before: Stamp, lane: usize) -> bool {
        if before.group_of() != self.stamp.group_of() {
            return !self.is_private;
        }
        let wave = before.wave_of();
        if wave == self.stamp.wave_of() {
            let is_other = before.lane_of() != lane || before.is_shared();
            return is_other && before.clock_of() >= self.stamp.clock_of();
        }
        self.known.get(wave).is_none_or(|&known| before.clock_of() > known)
    }

    /// Whether an access cannot race with the wave: the wave made it itself, or has synchronised with it.
    #[inline]
    pub fn knows(&self, before: Stamp) -> bool {
        // Workgroups run in any order, so one with a greater number may have written before.
        let clock = before.moment().wrapping_sub(self.base);
        let is_own = || before.wave_of() == self.stamp.wave_of() && clock < u64::from(self.stamp.clock_of());
        clock <= self.floor || self.is_private && clock > MOST_CLOCKS.into() || is_own()
    }

    /// In this workgroup.
    #[inline]
    pub fn is_here(&self, before: Stamp) -> bool {
        before.moment().wrapping_sub(self.base) <= MOST_CLOCKS.into()
    }
}
