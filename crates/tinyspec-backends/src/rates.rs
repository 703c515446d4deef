//! How fast a core works: the physical parameters of the cost model.

/// What a core does per cycle, and how fast the levels of its memory are, for one thread. Counts are per 100 cycles, so that targets
/// compare exactly; a vector is as long as the target's registers.
///
/// ```
/// use tinyspec_backends::Processor;
/// let rates = Processor::named("znver4")?.target(1).rates;
/// // A 512-bit multiply-add takes both 256-bit units.
/// assert_eq!((rates.multiply_adds, rates.latency), (100, 4));
/// # Ok::<(), tinyspec_backends::UnknownProcessor>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rates {
    /// The clock in MHz while vector units are busy.
    pub megahertz: u32,
    /// Vector instructions of a usual mix of arithmetic that start in 100 cycles.
    pub arithmetic: u32,
    /// Fused multiply-adds of vectors that start in 100 cycles.
    pub multiply_adds: u32,
    /// Cycles from the start of a multiply-add to its result.
    pub latency: u32,
    /// Vector loads that start in 100 cycles.
    pub loads: u32,
    /// Loads of one element, broadcast or not, that start in 100 cycles.
    pub scalar_loads: u32,
    /// Vector stores that start in 100 cycles.
    pub stores: u32,
    /// Instructions of all kinds that start in 100 cycles.
    pub instructions: u32,
    /// MB/s that one thread reads from the second-level cache, from the last-level cache, and from memory.
    pub bandwidths: [u32; 3],
}

impl Rates {
    /// A core that nothing is known of: two vector units and two load units as wide as its registers, and a last-level cache that
    /// others share, so that it delivers no more than memory.
    pub const TYPICAL: Rates = Rates {
        megahertz: 4000,
        arithmetic: 200,
        multiply_adds: 200,
        latency: 4,
        loads: 200,
        scalar_loads: 200,
        stores: 100,
        instructions: 500,
        bandwidths: [128_000, 24_000, 24_000],
    };
    /// Zen 3. Instructions: AMD 56665. Bandwidths: those of [`Rates::ZEN4`], whose caches have the same ports.
    pub const ZEN3: Rates = Rates { bandwidths: Rates::ZEN4.bandwidths, ..Rates::TYPICAL };
    /// Zen 4, whose 512-bit instructions take two passes through 256-bit units; a mix of additions and products uses separate units.
    /// Instructions: AMD 57647. Clock and bandwidths: measured (`cargo bench -- limit/`).
    pub const ZEN4: Rates = Rates {
        megahertz: 3600,
        arithmetic: 150,
        multiply_adds: 100,
        latency: 4,
        loads: 100,
        scalar_loads: 200,
        stores: 50,
        instructions: 600,
        bandwidths: [110_000, 90_000, 26_000],
    };
    /// Zen 5. Instructions: AMD 58455. Clock and bandwidths: measured (`cargo bench -- limit/`).
    pub const ZEN5: Rates =
        Rates { megahertz: 4200, instructions: 800, bandwidths: [250_000, 115_000, 42_000], ..Rates::TYPICAL };
    /// Neoverse V2, with vectors of 128 bits. Arm Neoverse V2 Core Software Optimization Guide; bandwidths are typical.
    pub const NEOVERSE_V2: Rates = Rates {
        megahertz: 3000,
        arithmetic: 400,
        multiply_adds: 400,
        loads: 300,
        scalar_loads: 300,
        stores: 200,
        instructions: 800,
        ..Rates::TYPICAL
    };
}
