//! Memory accesses of a thread. There is no dummy memory for closed gates, so a thread branches around the access.
//! Lanes with separate gates or addresses are accessed one by one.

use super::super::Renderer;
use super::super::address::Address;
use super::super::emit::{Kind, Result, Value};

impl Renderer<'_, '_> {
    /// Loads all lanes of an address.
    pub(in super::super) fn load_lanes(&mut self, address: &Address, kind: Kind, lanes: u32) -> Result<Value> {
        if address.pointer.lanes == 1 {
            return self.emit.load(address.pointer, kind, lanes, alignment(address, kind, lanes));
        }
        let mut value = self.emit.undefined(kind, lanes);
        for lane in 0..lanes {
            let place = self.emit.extract(address.pointer, lane)?;
            let element = self.emit.load(place, kind, 1, kind.bits() / 8)?;
            value = self.emit.insert(value, element, lane)?;
        }
        Ok(value)
    }

    /// Loads if `gate` is open; otherwise the value is `alt`.
    pub(in super::super) fn load_behind(&mut self, gate: Value, address: &Address, alt: Value) -> Result<Value> {
        let (kind, lanes) = (alt.kind, alt.lanes);
        if gate.lanes == 1 {
            return self.value_if(gate, alt, |renderer| renderer.load_lanes(address, kind, lanes));
        }
        let mut value = alt;
        for lane in 0..lanes {
            let (open, place) = (self.emit.extract(gate, lane)?, self.place_of_lane(address, kind, lane)?);
            let element = self.emit.extract(alt, lane)?;
            let size = kind.bits() / 8;
            let element = self.value_if(open, element, |renderer| renderer.emit.load(place, kind, 1, size))?;
            value = self.emit.insert(value, element, lane)?;
        }
        Ok(value)
    }

    /// Stores if `gate` is open, or always without one.
    pub(in super::super) fn store_behind(
        &mut self,
        gate: Option<Value>,
        address: &Address,
        value: Value,
    ) -> Result<()> {
        let is_whole = address.pointer.lanes == 1 && gate.is_none_or(|gate| gate.lanes == 1);
        if is_whole {
            let alignment = alignment(address, value.kind, value.lanes);
            let store = |renderer: &mut Self| renderer.emit.store(address.pointer, value, alignment, false);
            return match gate {
                Some(gate) => self.only_if(gate, store),
                None => store(self),
            };
        }
        for lane in 0..value.lanes {
            let place = self.place_of_lane(address, value.kind, lane)?;
            let element = self.emit.extract(value, lane)?;
            let size = value.kind.bits() / 8;
            let store = |renderer: &mut Self| renderer.emit.store(place, element, size, false);
            match gate {
                Some(gate) if gate.lanes == 1 => self.only_if(gate, store)?,
                Some(gate) => {
                    let open = self.emit.extract(gate, lane)?;
                    self.only_if(open, store)?;
                }
                None => store(self)?,
            }
        }
        Ok(())
    }

    fn place_of_lane(&self, address: &Address, kind: Kind, lane: u32) -> Result<Value> {
        if address.pointer.lanes > 1 {
            return self.emit.extract(address.pointer, lane);
        }
        let lane = self.emit.int(Kind::I32, 1, lane.into());
        self.emit.offset(address.pointer, lane, kind)
    }

    /// The value of `body` if `gate` is open, else `alt`.
    fn value_if(&mut self, gate: Value, alt: Value, body: impl FnOnce(&mut Self) -> Result<Value>) -> Result<Value> {
        let (before, then, after) = (self.emit.block(), self.emit.new_block(), self.emit.new_block());
        self.emit.branch(gate, then, after)?;
        self.emit.enter(then);
        let value = body(self)?;
        let end = self.emit.block();
        self.emit.jump(after);
        self.emit.enter(after);
        let joined = self.emit.phi(value.kind, value.lanes);
        self.emit.arrive(joined, alt, before)?;
        self.emit.arrive(joined, value, end)?;
        Ok(joined)
    }
}

/// The alignment to claim for a vector. LLVM widens a 12-byte load that is aligned to 16 to 16 bytes, which may be out
/// of bounds. So a vector whose size is not a power of two claims only the alignment of its largest piece.
fn alignment(address: &Address, kind: Kind, lanes: u32) -> u32 {
    address.alignment.min(1 << (kind.bits() / 8 * lanes).ilog2())
}
