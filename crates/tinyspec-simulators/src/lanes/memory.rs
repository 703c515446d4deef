//! Memory as lanes see it: regions with bounds, and the access history of those that are written.
//!
//! Every access of a wave goes through [`Memory`]: it finds the region that each address is in, refuses accesses that leave it or
//! are not aligned, looks for races, and says which lanes read unwritten bytes.

use super::clock::{Now, Stamp};
use super::launch::{Given, Launch};
use super::shadow::{Cell, Met, Shadow};
use super::{Mask, Trouble, lanes_of};
use crate::{FaultKind, SimulatorError};
use tinyspec_backends::Memory as _;
use tinyspec_backends::host_memory::HostMemory;

/// Lanes of a wave, at the most.
pub(crate) const MOST_LANES: usize = 64;
/// Elements of an access, at the most.
pub(crate) const MOST_ELEMENTS: usize = 8;
/// Bytes that an access reads in a lane, at the most.
pub(crate) const MOST_BYTES: usize = 32;
/// Where LOCAL memory begins in its own space: 0 is not an address of a buffer.
pub(crate) const LOCAL_BASE: u64 = 1024;

/// Bytes of a word. A smaller number is changed atomically with the word around it; that word's bytes beyond the buffer may be
/// read, and must keep their values. All memory of GPUs is allocated in whole words.
const WORD: u64 = 4;

/// Bytes of the widest load. Compilers widen a load if the resulting aligned vector overlaps the original: it cannot cross a page.
/// The bytes that it reads beyond the end of the buffer count as unwritten.
const VECTOR: u64 = 16;

/// Consecutive bytes that addresses may name.
pub(crate) struct Region {
    /// For messages.
    pub name: String,
    /// Its first address.
    pub base: u64,
    start: *mut u8,
    pub bytes: usize,
    is_writable: bool,
    /// Among those of the memory; `None` where nobody writes.
    shadow: Option<usize>,
    /// The address that its shadow begins at.
    shadow_base: u64,
}

impl Region {
    /// One for each parameter, empty for those that are no memory.
    ///
    /// # Safety
    /// The given memory is valid, including the rest of its first [`WORD`] and of its last [`VECTOR`], and is not used elsewhere
    /// while the regions live.
    pub unsafe fn of(given: &[Given]) -> Vec<Region> {
        let region = |(number, given): (usize, &Given)| {
            let (name, start, bytes) = match *given {
                Given::Memory { start, bytes, name: Some(name) } => {
                    (format!("buffer {number} (`{name}`)"), start, bytes)
                }
                Given::Memory { start, bytes, name: None } => (format!("buffer {number}"), start, bytes),
                Given::Value(_) => (format!("parameter {number}"), std::ptr::null_mut(), 0),
            };
            // SAFETY: as the caller promises; a parameter that is not memory has no bytes.
            unsafe { Region::new(name, start as u64, start, bytes) }
        };
        given.iter().enumerate().map(region).collect()
    }

    /// # Safety
    /// `bytes` bytes from `start` on are valid, including the rest of the [`WORD`] that they begin in and of the [`VECTOR`] that they
    /// end in, and nobody else uses them while the region lives.
    pub unsafe fn new(name: String, base: u64, start: *mut u8, bytes: usize) -> Region {
        Region { name, base, start, bytes, is_writable: true, shadow: None, shadow_base: base }
    }

    fn end(&self) -> u64 {
        self.base + self.bytes as u64
    }

    #[inline]
    fn holds(&self, first: u64, last: u64, bytes: usize) -> bool {
        let end = self.bytes as u64;
        first >= self.base && last - self.base < end && end - (last - self.base) >= bytes as u64
    }

    /// Whether an aligned access stays in a word, or in a vector, that lies in the region at least in part.
    #[cold]
    fn holds_part(&self, address: u64, bytes: usize, beyond: Beyond) -> bool {
        let fits = |most: u64| bytes as u64 <= most && address + bytes as u64 <= self.end().next_multiple_of(most);
        match beyond {
            Beyond::Never => false,
            Beyond::Words => self.bytes > 0 && address >= self.base & !(WORD - 1) && fits(WORD),
            Beyond::EndOfVectors => (self.base..self.end()).contains(&address) && fits(VECTOR),
        }
    }

    /// The bits of a word at this address that are beyond the region.
    #[inline]
    fn foreign(&self, address: u64, bytes: usize) -> u64 {
        if self.holds(address, address, bytes) {
            return 0;
        }
        let is_foreign = |byte: &u64| !(self.base..self.end()).contains(&(address + byte));
        (0..bytes as u64).filter(is_foreign).fold(0, |bits, byte| bits | 0xff << (8 * byte))
    }

    /// Where an address is, from the region's beginning.
    #[inline]
    fn place(&self, address: u64) -> isize {
        address.wrapping_sub(self.base) as isize
    }

    /// # Safety
    /// From `offset` on `SIZE` bytes are inside of the region, or of a word that is so in part.
    #[inline]
    unsafe fn get<const SIZE: usize>(&self, offset: isize) -> u64 {
        // SAFETY: as the caller promises; the region's bytes are ours.
        unsafe {
            let place = self.start.offset(offset);
            match SIZE {
                1 => place.read().into(),
                2 => place.cast::<u16>().read_unaligned().into(),
                4 => place.cast::<u32>().read_unaligned().into(),
                _ => place.cast::<u64>().read_unaligned(),
            }
        }
    }

    /// # Safety
    /// As [`Region::get`], of a region that may be written.
    #[inline]
    unsafe fn set<const SIZE: usize>(&self, offset: isize, bits: u64) {
        // SAFETY: as above.
        unsafe {
            let place = self.start.offset(offset);
            match SIZE {
                1 => place.write(bits as u8),
                2 => place.cast::<u16>().write_unaligned(bits as u16),
                4 => place.cast::<u32>().write_unaligned(bits as u32),
                _ => place.cast::<u64>().write_unaligned(bits),
            }
        }
    }
}

/// Which memory an instruction names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Global,
    /// Shared by the workgroup.
    Local,
}

/// Which part of an aligned access may lie outside its region.
#[derive(Clone, Copy)]
enum Beyond {
    Never,
    /// The rest of a word of [`WORD`] bytes.
    Words,
    /// The end of a vector of [`VECTOR`] bytes that begins inside.
    EndOfVectors,
}

/// An instruction's access to memory, by lane.
pub(crate) struct Access<'a> {
    pub now: &'a Now<'a>,
    pub space: Space,
    pub mask: Mask,
    pub addresses: &'a [u64; MOST_LANES],
    /// Consecutive elements that each lane accesses.
    pub count: usize,
    /// Regions that the address may be in, by bit; all of them if 0.
    pub origins: u64,
    /// Volatile or relaxed: threads may meet.
    pub is_strong: bool,
    /// No thread may write the memory.
    pub is_constant: bool,
}

impl Access<'_> {
    /// Whether its address may be in the region of this number.
    #[inline]
    fn may_be_in(&self, number: usize) -> bool {
        self.origins == 0 || number >= 64 || self.origins >> number & 1 == 1
    }
}

/// For each byte of an access, the lanes in which it is defined; `None` if all bytes are.
pub(crate) type Known = Option<Box<[Mask; MOST_BYTES]>>;

fn bytes_of(known: &mut Known) -> &mut [Mask; MOST_BYTES] {
    known.get_or_insert_with(|| Box::new([Mask::MAX; MOST_BYTES]))
}

/// All memory of a launch.
pub(crate) struct Memory {
    regions: Vec<Region>,
    local: Region,
    _local_bytes: HostMemory,
    /// One for each span of memory; parameters may name the same one, or parts of it.
    shadows: Vec<Shadow>,
    /// Bytes of a cell of shadow memory, as a power of two.
    granule: [u32; 2],
    launch: Launch,
    /// Lanes of a wave.
    width: usize,
}

impl Memory {
    /// `granule` are the smallest accesses of the program to GLOBAL and LOCAL memory, as powers of two.
    pub fn new(
        mut regions: Vec<Region>,
        written: u64,
        local_bytes: usize,
        granule: [u32; 2],
        launch: Launch,
        width: usize,
    ) -> Result<Memory, SimulatorError> {
        let whole = local_bytes.next_multiple_of(VECTOR as usize);
        let bytes = HostMemory::new(whole).map_err(|error| SimulatorError::Memory(error.to_string()))?;
        let mut shadows = Vec::new();
        watch(&mut regions, written, granule[0], &mut shadows);
        // SAFETY: the memory is ours and lives as long.
        let mut local = unsafe { Region::new("LOCAL memory".into(), LOCAL_BASE, bytes.address(), local_bytes) };
        local.shadow = Some(shadows.len());
        shadows.push(Shadow::new((whole >> granule[1]) + 1));
        Ok(Memory { regions, local, _local_bytes: bytes, shadows, granule, launch, width })
    }

    /// Tracks a memory space byte by byte from now on.
    pub fn watch_bytes(&mut self, space: Space) {
        let granule = std::mem::take(&mut self.granule[usize::from(space == Space::Local)]);
        if granule > 0 {
            let local = self.local.shadow;
            let is_of_space = |number: &usize| (Some(*number) == local) == (space == Space::Local);
            for number in (0..self.shadows.len()).filter(is_of_space) {
                self.shadows[number].split(1 << granule);
            }
        }
    }

    /// A thread, for messages.
    pub fn who(&self, stamp: Stamp) -> String {
        self.thread(stamp.group_of() - 1, stamp.wave_of(), stamp.lane_of())
    }

    pub fn thread(&self, group: u64, wave: usize, lane: usize) -> String {
        let place = |number: u64, sizes: [u32; 3]| {
            let [x, y, _] = sizes.map(u64::from);
            let at = [number % x, number / x % y, number / x / y];
            let used = (0..3).rev().find(|&dimension| sizes[dimension] > 1).unwrap_or(0);
            at[..=used].iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
        };
        let thread = place((wave * self.width + lane) as u64, self.launch.threads);
        format!("thread ({thread}) of workgroup ({})", place(group, self.launch.groups))
    }

    fn space(&self, space: Space) -> &[Region] {
        match space {
            Space::Global => &self.regions,
            Space::Local => std::slice::from_ref(&self.local),
        }
    }

    /// The region of all lanes, or of each lane.
    #[inline(always)]
    fn locate(&self, access: &Access, bytes: usize, beyond: Beyond, verb: &str) -> Result<Found, Box<Trouble>> {
        let first_lane = access.mask.trailing_zeros() as usize;
        let (mut low, mut high) = (access.addresses[first_lane], access.addresses[first_lane]);
        let mut together = low;
        if access.mask.count_ones() as usize == self.width {
            for &address in &access.addresses[..self.width] {
                (low, high, together) = (low.min(address), high.max(address), together | address);
            }
        } else {
            for lane in lanes_of(access.mask) {
                let address = access.addresses[lane];
                (low, high, together) = (low.min(address), high.max(address), together | address);
            }
        }
        if together & (bytes as u64 - 1) != 0 {
            return Err(self.misaligned(access, bytes, verb));
        }
        let regions = self.space(access.space);
        for (number, region) in regions.iter().enumerate() {
            if access.may_be_in(number) && region.holds(low, high, bytes) {
                return Ok(Found::Same(number));
            }
        }
        let holds = |region: &Region, address: u64| {
            region.holds(address, address, bytes) || region.holds_part(address, bytes, beyond)
        };
        let mut each = [0; MOST_LANES];
        for lane in lanes_of(access.mask) {
            let address = access.addresses[lane];
            let found = regions
                .iter()
                .enumerate()
                .position(|(number, region)| access.may_be_in(number) && holds(region, address));
            match found {
                Some(number) => each[lane] = number as u16,
                None => return Err(self.outside(access, lane, bytes, verb)),
            }
        }
        Ok(Found::Each(Box::new(each)))
    }

    #[cold]
    fn misaligned(&self, access: &Access, bytes: usize, verb: &str) -> Box<Trouble> {
        let is_off = |lane: &usize| !access.addresses[*lane].is_multiple_of(bytes as u64);
        let lanes: Mask = lanes_of(access.mask).filter(is_off).fold(0, |mask, lane| mask | 1 << lane);
        let address = access.addresses[(lanes.trailing_zeros() as usize).min(MOST_LANES - 1)];
        let reason = format!("{verb} {bytes} bytes at address {address:#x}, which is not a multiple of {bytes}");
        Trouble::new(FaultKind::Misaligned, lanes, reason)
    }

    #[cold]
    fn outside(&self, access: &Access, lane: usize, bytes: usize, verb: &str) -> Box<Trouble> {
        let (address, wave) = (access.addresses[lane], access.now.stamp.wave_of());
        let regions = self.space(access.space);
        let who = self.thread(access.now.stamp.group_of() - 1, wave, lane);
        let distance = |region: &Region| {
            let offset = address.wrapping_sub(region.base) as i64;
            if offset < 0 { offset.unsigned_abs() } else { (offset as u64).saturating_sub(region.bytes as u64) }
        };
        let meant =
            regions.iter().enumerate().filter(|(number, _)| access.may_be_in(*number)).map(|(_, region)| region);
        let reason = match meant.min_by_key(|region| distance(region)) {
            Some(region) => {
                let offset = address.wrapping_sub(region.base) as i64;
                let (name, length) = (&region.name, region.bytes);
                format!("{who} {verb} {bytes} bytes at byte {offset} of {name}, which has {length}")
            }
            None => format!("{who} {verb} {bytes} bytes at address {address:#x}; there is no such memory"),
        };
        Trouble::new(FaultKind::OutOfBounds, 1 << lane, reason)
    }

    #[cold]
    fn race(&self, access: &Access, (number, lane): (usize, usize), verb: &str, met: Met) -> Box<Trouble> {
        let stamp = access.now.stamp.lane(lane);
        let (me, other, did) = (self.who(stamp), self.who(met.0), met.1);
        let region = &self.space(access.space)[number];
        let (memory, offset) = (&region.name, region.place(access.addresses[lane]));
        let reason =
            format!("{me} {verb} byte {offset} of {memory}, which {other} {did}, with nothing that orders them");
        let is_here = (met.0.group_of(), met.0.wave_of()) == (stamp.group_of(), stamp.wave_of());
        let lanes = 1 << lane | if is_here { 1 << met.0.lane_of() } else { 0 };
        Trouble::new(FaultKind::Race, lanes, reason)
    }

    /// Reads; `put` is given each element's bits by lane.
    #[inline(always)]
    pub fn load<const SIZE: usize>(
        &mut self,
        access: &Access,
        mut put: impl FnMut(usize, &[u64; MOST_LANES]),
    ) -> Result<Known, Box<Trouble>> {
        let beyond = if access.is_strong { Beyond::Words } else { Beyond::EndOfVectors };
        let found = self.locate(access, SIZE * access.count, beyond, "reads")?;
        let mut known = None;
        self.watch_reads::<SIZE>(access, &found, &mut known)?;
        if !access.is_strong {
            self.forget_what_is_beyond(access, &found, &mut known);
        }
        let mut values = [0; MOST_LANES];
        let is_full = access.mask.count_ones() as usize == self.width;
        for element in 0..access.count {
            // SAFETY: `locate` found all bytes of the access inside of the region.
            let get = |lane: usize| unsafe {
                let region = self.region(access.space, found.of(lane));
                region.get::<SIZE>(region.place(access.addresses[lane]) + (element * SIZE) as isize)
            };
            match (&found, is_full) {
                (Found::Same(number), true) => {
                    let region = self.region(access.space, *number);
                    for (value, address) in values.iter_mut().zip(access.addresses).take(self.width) {
                        // SAFETY: as above.
                        *value = unsafe { region.get::<SIZE>(region.place(*address) + (element * SIZE) as isize) };
                    }
                }
                _ => lanes_of(access.mask).for_each(|lane| values[lane] = get(lane)),
            }
            put(element, &values);
        }
        Ok(known)
    }

    /// Marks bytes beyond the end of a lane's region as unwritten.
    fn forget_what_is_beyond(&self, access: &Access, found: &Found, known: &mut Known) {
        // Lanes that share a region are wholly inside it.
        if let Found::Same(_) = found {
            return;
        }
        for lane in lanes_of(access.mask) {
            let inside = self.region(access.space, found.of(lane)).end().saturating_sub(access.addresses[lane]);
            let beyond = bytes_of(known).iter_mut().skip(inside as usize);
            beyond.for_each(|known| *known &= !(1 << lane));
        }
    }

    #[inline(always)]
    fn region(&self, space: Space, number: usize) -> &Region {
        match space {
            Space::Global => &self.regions[number],
            Space::Local => &self.local,
        }
    }

    /// Notes reads, and which of the bytes are unwritten.
    #[inline(always)]
    fn watch_reads<const SIZE: usize>(
        &mut self,
        access: &Access,
        found: &Found,
        known: &mut Known,
    ) -> Result<(), Box<Trouble>> {
        if let Found::Same(number) = found
            && self.region(access.space, *number).shadow.is_none()
        {
            return Ok(());
        }
        let is_local = access.space == Space::Local;
        let (granule, bytes) = (self.granule[usize::from(is_local)], SIZE * access.count);
        let count = bytes >> granule;
        let has_equals = !access.is_strong && has_same_address(&access.addresses[..self.width]);
        let mut left = access.mask;
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            left &= left - 1;
            let region = if is_local { &self.local } else { &self.regions[found.of(lane)] };
            let Some(shadow) = region.shadow else { continue };
            if access.is_constant {
                let reason = format!("reads {} as memory that nobody writes, and the kernel writes it", region.name);
                return Err(Trouble::new(FaultKind::Undefined, 1 << lane, reason));
            }
            let address = access.addresses[lane];
            let first = (address - region.shadow_base) as usize >> granule;
            let cells = self.shadows[shadow].cells(first, count);
            // Lanes that read the same are looked at as one, where it is clear that they may.
            let together = if has_equals { left & same_address(access.addresses, lane) } else { 0 };
            if together != 0 && cells.iter_mut().all(|cell| cell.read_together(access.now, lane)) {
                left &= !together;
            } else {
                let mut touch = |cell: &mut Cell| match access.is_strong {
                    true => cell.change(access.now, lane),
                    false => cell.read(access.now, lane),
                };
                if let Some(met) = cells.iter_mut().find_map(&mut touch) {
                    return Err(self.race(access, (found.of(lane), lane), "reads", met));
                }
            }
            if is_local && !cells.iter().all(|cell| cell.is_written(access.now)) {
                for (known, cell) in bytes_of(known).chunks_mut(1 << granule).zip(cells) {
                    let lost = if cell.is_written(access.now) { 0 } else { 1 << lane | together };
                    known.iter_mut().for_each(|known| *known &= !lost);
                }
            }
        }
        Ok(())
    }

    /// Touches the cells that a lane writes; gives its region, and where in it the access begins.
    #[inline(always)]
    fn watch_write(
        &mut self,
        access: &Access,
        (number, lane): (usize, usize),
        bytes: usize,
        verb: &str,
        touch: impl FnMut(&mut Cell) -> Option<Met>,
    ) -> Result<(&Region, isize), Box<Trouble>> {
        let granule = self.granule[usize::from(access.space == Space::Local)];
        let region = self.region(access.space, number);
        let Some(shadow) = region.shadow.filter(|_| region.is_writable) else {
            return Err(read_only(region, lane));
        };
        let (address, first) = (access.addresses[lane], (access.addresses[lane] - region.shadow_base) as usize);
        let cells = self.shadows[shadow].cells(first >> granule, bytes >> granule);
        if let Some(met) = cells.iter_mut().find_map(touch) {
            return Err(self.race(access, (number, lane), verb, met));
        }
        let region = self.region(access.space, number);
        Ok((region, region.place(address)))
    }

    /// Writes the values that `take` gives for element and lane.
    #[inline(always)]
    pub fn store<const SIZE: usize>(
        &mut self,
        access: &Access,
        take: impl Fn(usize, usize) -> u64,
    ) -> Result<(), Box<Trouble>> {
        let bytes = SIZE * access.count;
        let found = self.locate(access, bytes, Beyond::Never, "writes")?;
        for lane in lanes_of(access.mask) {
            let (region, offset) = self.watch_write(access, (found.of(lane), lane), bytes, "writes", |cell| {
                if access.is_strong { cell.change(access.now, lane) } else { cell.write(access.now, lane) }
            })?;
            for element in 0..access.count {
                // SAFETY: `locate` found all `bytes` of it inside of the region, which may be written.
                unsafe { region.set::<SIZE>(offset + (element * SIZE) as isize, take(element, lane)) };
            }
        }
        Ok(())
    }

    /// Changes an element of each lane atomically, one lane after the other in the order given; `change` is given element,
    /// lane and the old bits, `put` the old bits too. Which lanes found something that was written.
    pub fn change<const SIZE: usize>(
        &mut self,
        access: &Access,
        order: &[usize],
        mut change: impl FnMut(usize, usize, u64) -> u64,
    ) -> Result<Mask, Box<Trouble>> {
        let bytes = SIZE * access.count;
        let found = self.locate(access, bytes, Beyond::Words, "changes")?;
        let mut known = access.mask;
        let granule = self.granule[usize::from(access.space == Space::Local)];
        for &lane in order {
            let end = self.region(access.space, found.of(lane)).end();
            let mut at = access.addresses[lane];
            let (region, offset) = self.watch_write(access, (found.of(lane), lane), bytes, "changes", |cell| {
                // Bytes beyond the end belong to no buffer.
                if access.space == Space::Local && at < end && !cell.is_written(access.now) {
                    known &= !(1 << lane);
                }
                at += 1 << granule;
                cell.change(access.now, lane)
            })?;
            for element in 0..access.count {
                let place = offset + (element * SIZE) as isize;
                // SAFETY: as above.
                let old = unsafe { region.get::<SIZE>(place) };
                let new = change(element, lane, old);
                if (old ^ new) & region.foreign(access.addresses[lane] + (element * SIZE) as u64, SIZE) != 0 {
                    return Err(self.outside(access, lane, bytes, "changes"));
                }
                // SAFETY: as above.
                unsafe { region.set::<SIZE>(place, new) };
            }
        }
        Ok(known)
    }
}

/// Gives a shadow to each span of memory that is written through any of its regions.
fn watch(regions: &mut [Region], written: u64, granule: u32, shadows: &mut Vec<Shadow>) {
    let mut order: Vec<usize> = (0..regions.len()).filter(|&number| regions[number].bytes > 0).collect();
    order.sort_by_key(|&number| regions[number].base);
    let mut rest = &order[..];
    while let Some(&first) = rest.first() {
        // Regions that have a vector in common have a shadow in common.
        let whole = |number: usize| regions[number].end().next_multiple_of(VECTOR);
        let mut end = whole(first);
        let mut count = 1;
        while let Some(&next) = rest.get(count).filter(|&&next| regions[next].base < end) {
            end = end.max(whole(next));
            count += 1;
        }
        let (span, others) = rest.split_at(count);
        rest = others;
        let is_written = |number: usize| number >= 64 || written >> number & 1 == 1;
        if !span.iter().any(|&number| is_written(number)) {
            continue;
        }
        // Aligned, so that equal addresses have equal cells whatever region names them.
        let base = regions[first].base & !63;
        for &number in span {
            (regions[number].shadow, regions[number].shadow_base) = (Some(shadows.len()), base);
            regions[number].is_writable = is_written(number);
        }
        shadows.push(Shadow::new(((end - base) as usize >> granule) + 1));
    }
}

#[cold]
fn read_only(region: &Region, lane: usize) -> Box<Trouble> {
    let reason = format!("writes {}, whose address no store of this kernel derives from", region.name);
    Trouble::new(FaultKind::OutOfBounds, 1 << lane, reason)
}

/// How far from each other lanes with the same address often are: in a row of a tile, and in the rows below.
const OFTEN: [usize; 3] = [1, 8, 16];

/// Whether [`same_address`] would find any.
#[inline(always)]
fn has_same_address(addresses: &[u64]) -> bool {
    // Of a length that is known, and without a branch for each lane, so that they are compared several at once.
    #[inline(always)]
    fn has<const LANES: usize>(addresses: &[u64; LANES]) -> bool {
        OFTEN.into_iter().fold(false, |any, step| {
            (step..LANES).fold(any, |any, lane| any | (addresses[lane] == addresses[lane - step]))
        })
    }
    match (<&[u64; 32]>::try_from(addresses), <&[u64; MOST_LANES]>::try_from(addresses)) {
        (Ok(addresses), _) => has(addresses),
        (_, Ok(addresses)) => has(addresses),
        _ => true,
    }
}

/// Lanes behind this one with its address, of those that often have it. Others are found later.
#[inline(always)]
fn same_address(addresses: &[u64; MOST_LANES], lane: usize) -> Mask {
    let address = addresses[lane];
    let mut same: Mask = 0;
    for step in OFTEN {
        let mut other = lane + step;
        while other < MOST_LANES && same >> other & 1 == 0 && addresses[other] == address {
            same |= 1 << other;
            other += 1;
        }
    }
    same
}

/// The regions of a wave's addresses.
enum Found {
    /// All accesses lie wholly inside this one.
    Same(usize),
    Each(Box<[u16; MOST_LANES]>),
}

impl Found {
    #[inline]
    fn of(&self, lane: usize) -> usize {
        match self {
            Found::Same(number) => *number,
            Found::Each(each) => each[lane].into(),
        }
    }
}
