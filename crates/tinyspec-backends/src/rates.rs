//! Throughput, latency and bandwidth of a core: the physical parameters of the cost model.

/// Throughput of a core and bandwidth of its memory hierarchy, for one thread. Throughputs are per 100 cycles: integers, so that targets
/// can be hashed. A vector fills a register.
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
    /// Clock frequency in MHz under vector load.
    pub megahertz: u32,
    /// Vector arithmetic instructions issued per 100 cycles, in a typical mix.
    pub arithmetic: u32,
    /// Vector fused multiply-adds issued per 100 cycles.
    pub multiply_adds: u32,
    /// Latency of a fused multiply-add in cycles.
    pub latency: u32,
    /// Vector loads issued per 100 cycles.
    pub loads: u32,
    /// Scalar and broadcast loads issued per 100 cycles.
    pub scalar_loads: u32,
    /// Vector stores issued per 100 cycles.
    pub stores: u32,
    /// Instructions of all kinds issued per 100 cycles.
    pub instructions: u32,
    /// Read bandwidth of one thread in MB/s: second-level cache, last-level cache, memory.
    pub bandwidths: [u32; 3],
}

impl Rates {
    /// An unknown core: two vector units and two load units as wide as its registers, and a shared last-level cache
    /// that is no faster than memory.
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
    /// Sapphire and Emerald Rapids under 512-bit load, as virtual machines that share a socket: memory and last-level cache are slow for
    /// one thread. Instructions: Intel 248966. Clock and bandwidths: measured (`cargo bench -- limit/`, and sums of 0.5, 8 and 128 MiB).
    pub const SAPPHIRE_RAPIDS: Rates = Rates {
        megahertz: 2700,
        scalar_loads: 300,
        instructions: 600,
        bandwidths: [115_000, 28_000, 21_000],
        ..Rates::TYPICAL
    };
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
