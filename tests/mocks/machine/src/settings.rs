//! What a mock is told, and what is to fail.

/// Words of a variable, such as `chip=sm_90 memory=4096`.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many GPUs there are: `devices=0`.
    pub devices: usize,
    /// What they are: `chip=sm_90`, `chip=gfx1100`.
    pub chip: String,
    /// The version of the driver as it writes it: `version=11080` for CUDA 11.8.
    pub version: i32,
    /// The newest format of code that it reads: `format=70` for PTX 7.0.
    pub format: u32,
    /// Bytes that a GPU has.
    pub memory: usize,
    /// Bytes of the host's memory that may be pinned.
    pub pinned: usize,
    /// `fault=2`: the kernel of the third launch leaves its memory.
    pub fault: Option<u64>,
    /// `refused=2`: the third launch is refused, as one that needs too many registers.
    pub refused: Option<u64>,
    /// `lost=2`: the device is lost before the third launch.
    pub lost: Option<u64>,
    /// `unknown=2`: the third launch gives a result that no header has.
    pub unknown: Option<u64>,
    /// Bytes of stack that kernels have, with which they cannot be launched, unless their text says that one workgroup at a
    /// time will do: `stack=8`.
    pub stack: i32,
}

impl Settings {
    /// Two GPUs without faults.
    pub fn new(chip: &str, version: i32, format: u32) -> Settings {
        Settings {
            devices: 2,
            chip: chip.into(),
            version,
            format,
            memory: 64 << 30,
            pinned: 1 << 30,
            fault: None,
            refused: None,
            lost: None,
            unknown: None,
            stack: 0,
        }
    }

    pub(crate) fn changed_by(mut self, variable: &str) -> Settings {
        for word in std::env::var(variable).unwrap_or_default().split_whitespace() {
            let known = word.split_once('=').and_then(|(name, value)| self.set(name, value));
            known.unwrap_or_else(|| panic!("{variable}={word}: unknown"));
        }
        self
    }

    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        let launch = || value.parse().ok().map(Some);
        match name {
            "devices" => self.devices = value.parse().ok()?,
            "chip" => self.chip = value.into(),
            "version" => self.version = value.parse().ok()?,
            "format" => self.format = value.parse().ok()?,
            "memory" => self.memory = value.parse().ok()?,
            "pinned" => self.pinned = value.parse().ok()?,
            "fault" => self.fault = launch()?,
            "refused" => self.refused = launch()?,
            "lost" => self.lost = launch()?,
            "unknown" => self.unknown = launch()?,
            "stack" => self.stack = value.parse().ok()?,
            _ => return None,
        }
        Some(())
    }
}
