//! What the mock is told, and what is to fail.

/// Words of `MOCK_CUDA`, such as `capability=90 memory=4096`.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many GPUs there are: `devices=0`.
    pub devices: usize,
    /// Their compute capability, `capability=90` for 9.0.
    pub capability: i32,
    /// The CUDA that the driver is for, `version=11080` for 11.8.
    pub version: i32,
    /// The newest PTX that it reads, `ptx=70` for 7.0.
    pub ptx: u32,
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
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            devices: 2,
            capability: 80,
            version: 13_000,
            ptx: 90,
            memory: 64 << 30,
            pinned: 1 << 30,
            fault: None,
            refused: None,
            lost: None,
            unknown: None,
        }
    }
}

impl Settings {
    pub(crate) fn of_environment() -> Settings {
        let mut settings = Settings::default();
        for word in std::env::var("MOCK_CUDA").unwrap_or_default().split_whitespace() {
            let known = word.split_once('=').and_then(|(name, number)| settings.set(name, number.parse().ok()?));
            known.unwrap_or_else(|| panic!("MOCK_CUDA={word}: unknown"));
        }
        settings
    }

    fn set(&mut self, name: &str, number: u64) -> Option<()> {
        match name {
            "devices" => self.devices = number as usize,
            "capability" => self.capability = number as i32,
            "version" => self.version = number as i32,
            "ptx" => self.ptx = number as u32,
            "memory" => self.memory = number as usize,
            "pinned" => self.pinned = number as usize,
            "fault" => self.fault = Some(number),
            "refused" => self.refused = Some(number),
            "lost" => self.lost = Some(number),
            "unknown" => self.unknown = Some(number),
            _ => return None,
        }
        Some(())
    }
}
