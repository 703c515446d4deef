//! One instruction after another, for all lanes of a strand at once.

use super::super::arithmetic::{Shape, Test, WARP};
use super::super::decode::{
    Action, Address, Follows, Logic, MatchKind, Predicate, Reduction, Register, ShuffleMode, VoteMode,
};
use super::warp::{State, Warp};
use super::{Shared, Stop};
use crate::FaultKind;
use crate::lanes::{Mask, Trouble, lanes_of};

pub(super) type Outcome<T> = Result<T, Box<Trouble>>;

/// Where a strand goes on.
enum Next {
    /// At the next instruction.
    Step,
    /// The strand has changed: the next one to run is chosen anew.
    Chosen,
    /// A barrier is complete.
    Complete(usize),
}

impl Warp {
    /// Runs a strand for some instructions; the barrier that it completes.
    pub(super) fn run(
        &mut self,
        number: usize,
        strand: usize,
        turn: u64,
        shared: &mut Shared,
    ) -> Result<Option<usize>, Stop> {
        let code = shared.code;
        let mut place = self.strands[strand].place as usize;
        let mask = self.strands[strand].mask;
        let mut left = turn;
        let outcome = loop {
            if left == 0 {
                self.strands[strand].place = place as u32;
                break Ok(None);
            }
            left -= 1;
            let step = &code.steps[place];
            let mut active = mask;
            if let Some(guard) = step.guard {
                match self.guard(guard, mask) {
                    Ok(taken) => active = taken,
                    Err(trouble) => break Err(trouble),
                }
                if active == 0 {
                    place += 1;
                    continue;
                }
            }
            let next = match &step.action {
                Action::Compute { shape, follows, to, from } => {
                    self.compute(shape, *follows, *to, from, active);
                    place += 1;
                    continue;
                }
                Action::Branch(target) if active == mask => {
                    place = *target as usize;
                    continue;
                }
                action => {
                    self.strands[strand].place = place as u32;
                    self.act(action, (number, strand, active), shared)
                }
            };
            match next {
                Ok(Next::Step) => place += 1,
                Ok(Next::Chosen) => break Ok(None),
                Ok(Next::Complete(barrier)) => break Ok(Some(barrier)),
                Err(trouble) => break Err(trouble),
            }
        };
        shared.executed += turn - left;
        outcome.map_err(|trouble| Stop { trouble, place, warp: number })
    }

    /// The lanes of a mask for which a predicate holds.
    fn guard(&self, predicate: Predicate, mask: u32) -> Outcome<u32> {
        let register = predicate.register as usize;
        let unknown = mask & !self.predicates_known[register];
        if unknown != 0 {
            return Err(unwritten(unknown, "a predicate that decides what runs"));
        }
        Ok(self.holds(predicate) & mask)
    }

    fn holds(&self, predicate: Predicate) -> u32 {
        let value = self.predicates[predicate.register as usize];
        if predicate.is_negated { !value } else { value }
    }

    fn known(&self, predicate: Predicate) -> u32 {
        self.predicates_known[predicate.register as usize]
    }

    fn set(&mut self, register: u32, value: u32, known: u32, active: u32) {
        let register = register as usize;
        self.predicates[register] = (self.predicates[register] & !active) | (value & active);
        self.predicates_known[register] = (self.predicates_known[register] & !active) | (known & active);
    }

    #[inline]
    pub(super) fn compute(&mut self, shape: &Shape, follows: Follows, to: u32, from: &[u32; 4], active: u32) {
        let (mut word, mut long) = ([0u32; WARP], [0u64; WARP]);
        let [a, b, c, d] = from.map(|register| register as usize);
        let (w, l) = (&self.words, &self.longs);
        macro_rules! words {
            ($f:expr, $($file:ident $register:ident),*) => {{
                $f($(&$file.values[$register],)* &mut word);
                let known = u32::MAX $(& $file.known[$register])*;
                if active & !known != 0 && follows != Follows::All {
                    return self.compute_in_part(shape, follows, to, from, active);
                }
                self.words.merge(to, &word, active, known);
            }};
        }
        macro_rules! longs {
            ($f:expr, $($file:ident $register:ident),*) => {{
                $f($(&$file.values[$register],)* &mut long);
                let known = u32::MAX $(& $file.known[$register])*;
                if active & !known != 0 && follows != Follows::All {
                    return self.compute_in_part(shape, follows, to, from, active);
                }
                self.longs.merge(to, &long, active, known);
            }};
        }
        match shape {
            Shape::WW(f) => words!(f, w a),
            Shape::WWW(f) => words!(f, w a, w b),
            Shape::WWWW(f) => words!(f, w a, w b, w c),
            Shape::WWWWW(f) => words!(f, w a, w b, w c, w d),
            Shape::LL(f) => longs!(f, l a),
            Shape::LLL(f) => longs!(f, l a, l b),
            Shape::LLLL(f) => longs!(f, l a, l b, l c),
            Shape::WL(f) => words!(f, l a),
            Shape::LW(f) => longs!(f, w a),
            Shape::LWW(f) => longs!(f, w a, w b),
            Shape::LWWL(f) => longs!(f, w a, w b, l c),
            Shape::LLW(f) => longs!(f, l a, w b),
            Shape::LLWW(f) => longs!(f, l a, w b, w c),
            Shape::LLLWW(f) => longs!(f, l a, l b, w c, w d),
            Shape::Each(f, to_long, from_long) => {
                let known = if *from_long { l.known[a] & l.known[b] } else { w.known[a] & w.known[b] };
                if active & !known != 0 && follows != Follows::All {
                    return self.compute_in_part(shape, follows, to, from, active);
                }
                for lane in lanes_of(active.into()) {
                    let (first, second) = match from_long {
                        true => (l.values[a][lane], l.values[b][lane]),
                        false => (w.values[a][lane].into(), w.values[b][lane].into()),
                    };
                    long[lane] = f(first, second);
                    word[lane] = long[lane] as u32;
                }
                match to_long {
                    true => self.longs.merge(to, &long, active, known),
                    false => self.words.merge(to, &word, active, known),
                }
            }
            Shape::DivideW(f) => {
                let mut known = w.known[a] & w.known[b];
                for lane in lanes_of(active.into()) {
                    match f(w.values[a][lane], w.values[b][lane]) {
                        Some(value) => word[lane] = value,
                        None => known &= !(1 << lane),
                    }
                }
                self.words.merge(to, &word, active, known);
            }
            Shape::DivideL(f) => {
                let mut known = l.known[a] & l.known[b];
                for lane in lanes_of(active.into()) {
                    match f(l.values[a][lane], l.values[b][lane]) {
                        Some(value) => long[lane] = value,
                        None => known &= !(1 << lane),
                    }
                }
                self.longs.merge(to, &long, active, known);
            }
        }
    }

    /// Everything but arithmetic.
    fn act(&mut self, action: &Action, at: (usize, usize, u32), shared: &mut Shared) -> Outcome<Next> {
        let (number, strand, active) = at;
        match action {
            Action::Compute { .. } | Action::Nothing => {}
            Action::Exact { of, follows, to, from } => {
                let mut values = [0; WARP];
                for lane in lanes_of(active.into()) {
                    values[lane] = (of.of)(from.map(|register| self.words.values[register as usize][lane]));
                }
                let known = from.iter().fold(u32::MAX, |known, &register| known & self.words.known[register as usize]);
                let unknown = (active & !known != 0).then(|| self.unknown_of(*follows, from));
                self.words.merge(*to, &values, active, known);
                if let Some(unknown) = unknown {
                    self.mark_bits(false, *to, active, &unknown);
                }
            }
            Action::Compare { test, from, to, combine } => {
                let [a, b] = from.map(|register| register as usize);
                let (w, l) = (&self.words, &self.longs);
                let (value, mut known) = match test {
                    Test::W(f) => (f(&w.values[a]), w.known[a]),
                    Test::L(f) => (f(&l.values[a]), l.known[a]),
                    Test::WW(f) => (f(&w.values[a], &w.values[b]), w.known[a] & w.known[b]),
                    Test::LL(f) => (f(&l.values[a], &l.values[b]), l.known[a] & l.known[b]),
                };
                let mut both = [value, !value];
                if let Some((logic, other)) = combine {
                    let (holds, holds_known) = (self.holds(*other), self.known(*other));
                    both = both.map(|value| evaluate(*logic, value, holds));
                    known &= holds_known;
                }
                for (register, value) in to.iter().zip(both) {
                    if let Some(register) = register {
                        self.set(*register, value, known, active);
                    }
                }
            }
            Action::Logic { logic, to, from } => {
                let [a, b] = from.map(|predicate| self.holds(predicate));
                let [a_known, b_known] = from.map(|predicate| self.known(predicate));
                // One operand can decide alone.
                let decided = match logic {
                    Logic::And => (a_known & !a) | (b_known & !b),
                    Logic::Or => (a_known & a) | (b_known & b),
                    _ => 0,
                };
                let value = match logic {
                    Logic::And => evaluate(*logic, a, b) & !decided,
                    Logic::Or => evaluate(*logic, a, b) | decided,
                    _ => evaluate(*logic, a, b),
                };
                self.set(*to, value, (a_known & b_known) | decided, active);
            }
            Action::SelectWord { to, from, by } => {
                let [a, b] = from.map(|register| register as usize);
                let (chosen, known) = (self.holds(*by), self.known(*by));
                let (x, y) = (&self.words.values[a], &self.words.values[b]);
                let mut values = [0; WARP];
                for lane in 0..WARP {
                    let first = (chosen >> lane & 1).wrapping_neg();
                    values[lane] = (x[lane] & first) | (y[lane] & !first);
                }
                let all = known & ((chosen & self.words.known[a]) | (!chosen & self.words.known[b]));
                let unknown = (active & !all != 0).then(|| self.unknown_of_chosen(false, *from, chosen, known));
                self.words.merge(*to, &values, active, all);
                if let Some(unknown) = unknown {
                    self.mark_bits(false, *to, active, &unknown);
                }
            }
            Action::SelectLong { to, from, by } => {
                let [a, b] = from.map(|register| register as usize);
                let (chosen, known) = (self.holds(*by), self.known(*by));
                let (x, y) = (&self.longs.values[a], &self.longs.values[b]);
                let mut values = [0; WARP];
                for lane in 0..WARP {
                    let first = u64::from(chosen >> lane & 1).wrapping_neg();
                    values[lane] = (x[lane] & first) | (y[lane] & !first);
                }
                let all = known & ((chosen & self.longs.known[a]) | (!chosen & self.longs.known[b]));
                let unknown = (active & !all != 0).then(|| self.unknown_of_chosen(true, *from, chosen, known));
                self.longs.merge(*to, &values, active, all);
                if let Some(unknown) = unknown {
                    self.mark_bits(true, *to, active, &unknown);
                }
            }
            Action::Spread { to, one, by } => {
                let (chosen, known) = (self.predicates[*by as usize], self.predicates_known[*by as usize]);
                let values = std::array::from_fn(|lane| if chosen >> lane & 1 == 1 { *one } else { 0 });
                self.words.merge(*to, &values, active, known);
            }
            Action::Parameter { to, offset, size, is_signed } => {
                let mut bytes = [0; 8];
                bytes[..*size].copy_from_slice(&shared.params[*offset..offset + size]);
                let bits = extended(u64::from_le_bytes(bytes), *size, *is_signed);
                match *to {
                    Register::Long(to) => self.longs.merge(to, &[bits; WARP], active, u32::MAX),
                    Register::Word(to, width) => {
                        self.words.merge(to, &[truncated(bits, width); WARP], active, u32::MAX);
                    }
                    Register::Predicate(_) => {}
                }
            }
            Action::ParameterAt { to, base, offset, size, is_signed } => {
                let addresses = self.addresses(Address::Long(*base), *offset, active)?;
                let mut values = [0; WARP];
                for lane in lanes_of(active.into()) {
                    let (first, mut bytes) = (addresses[lane] as usize, [0; 8]);
                    let Some(found) = shared.params.get(first..first.saturating_add(*size)) else {
                        let reason = format!("reads a parameter at byte {first}; they have {}", shared.params.len());
                        return Err(Trouble::new(FaultKind::OutOfBounds, 1 << lane, reason));
                    };
                    bytes[..*size].copy_from_slice(found);
                    values[lane] = extended(u64::from_le_bytes(bytes), *size, *is_signed);
                }
                match *to {
                    Register::Long(to) => self.longs.merge(to, &values, active, u32::MAX),
                    Register::Word(to, width) => {
                        let values = values.map(|bits| truncated(bits, width));
                        self.words.merge(to, &values, active, u32::MAX);
                    }
                    Register::Predicate(_) => {}
                }
            }
            Action::Load(transfer) => self.load(transfer, active, number, shared)?,
            Action::Store(transfer) => self.store(transfer, active, number, shared)?,
            Action::Atomic(atomic) => self.atomic(atomic, active, number, shared)?,
            Action::ActiveMask { to } => self.words.merge(*to, &[active; WARP], active, u32::MAX),
            Action::Branch(target) => {
                self.split(strand, active, *target);
                self.strands[strand].place += 1;
                return Ok(Next::Chosen);
            }
            Action::Switch { index, targets } => return self.switch(*index, targets, strand, active),
            Action::Exit => {
                if active != self.strands[strand].mask {
                    self.strands[strand].place += 1;
                }
                self.exit(active);
                return Ok(Next::Chosen);
            }
            Action::Trap => return Err(Trouble::new(FaultKind::Undefined, active.into(), "the kernel traps")),
            Action::Barrier { .. } => return self.barrier(action, at, shared),
            Action::Meet { members } => {
                let Some(_) = self.gather(*members, strand, active)? else { return Ok(Next::Chosen) };
                // Only where all lanes meet are all of them ordered.
                if active == self.live {
                    shared.clocks.meet(number);
                }
            }
            Action::Shuffle { members, .. } => {
                let Some(_) = self.gather(*members, strand, active)? else { return Ok(Next::Chosen) };
                self.shuffle(action, active)?;
            }
            Action::Vote { mode, to, of, members } => {
                let Some(_) = self.gather(*members, strand, active)? else { return Ok(Next::Chosen) };
                self.vote(*mode, (*to, *of), active);
            }
            Action::Match { kind, to, valid, value, members } => {
                let Some(members) = self.gather(*members, strand, active)? else { return Ok(Next::Chosen) };
                self.matching(*kind, (*to, *valid), *value, members & active);
            }
            Action::Reduce { reduction, to, value, members } => {
                let Some(members) = self.gather(*members, strand, active)? else { return Ok(Next::Chosen) };
                let mut total = None;
                for lane in lanes_of((members & active).into()) {
                    let value = self.words.values[*value as usize][lane];
                    total = Some(
                        total.map_or(value, |total: u32| reduced(*reduction, total.into(), value.into(), 4) as u32),
                    );
                }
                let known = self.words.known[*value as usize] & active == active;
                let known = if known { u32::MAX } else { 0 };
                self.words.merge(*to, &[total.unwrap_or(0); WARP], active, known);
            }
        }
        Ok(Next::Step)
    }

    fn switch(&mut self, index: u32, targets: &[u32], strand: usize, active: u32) -> Outcome<Next> {
        let unknown = active & !self.words.known[index as usize];
        if unknown != 0 {
            return Err(unwritten(unknown, "the index of a branch"));
        }
        let values = self.words.values[index as usize];
        let mask = self.strands[strand].mask;
        for (number, &target) in targets.iter().enumerate() {
            let lanes = lanes_of(active.into()).filter(|&lane| values[lane] as usize == number);
            let lanes = lanes.fold(0u32, |mask, lane| mask | 1 << lane);
            if lanes != 0 {
                self.split(strand, lanes, target);
            }
        }
        if self.strands[strand].mask & active != 0 {
            let lanes = self.strands[strand].mask & active;
            return Err(Trouble::new(FaultKind::Undefined, lanes.into(), format!("it has {} targets", targets.len())));
        }
        self.strands[strand].place += 1;
        if mask == active {
            self.strands.remove(strand);
        }
        Ok(Next::Chosen)
    }

    /// At a `.sync` instruction: the members, once all of them are here; those that have ended are not waited for.
    fn gather(&mut self, members: u32, strand: usize, active: u32) -> Outcome<Option<u32>> {
        let register = members as usize;
        let unknown = active & !self.words.known[register];
        if unknown != 0 {
            return Err(unwritten(unknown, "the mask of members"));
        }
        let members = self.words.values[register][active.trailing_zeros() as usize];
        let differs = lanes_of(active.into()).filter(|&lane| self.words.values[register][lane] != members);
        let differing = differs.fold(0u32, |mask, lane| mask | 1 << lane);
        if differing != 0 {
            let reason = "lanes name different members";
            return Err(Trouble::new(FaultKind::Divergence, differing.into(), reason));
        }
        if active & !members != 0 {
            let lanes = Mask::from(active & !members);
            let reason = format!("the members {members:#010x} do not hold those who execute it");
            return Err(Trouble::new(FaultKind::Divergence, lanes, reason));
        }
        self.wait_for(members, members & self.live, strand, active).map(|all| all.then_some(members))
    }

    /// Whether all that are required are here; else the strand waits, and those that the guard leaves out go on.
    fn wait_for(&mut self, members: u32, required: u32, strand: usize, active: u32) -> Outcome<bool> {
        let place = self.strands[strand].place;
        if active == required && active == self.strands[strand].mask {
            return Ok(true);
        }
        let others = self.strands[strand].mask & !active;
        if others != 0 {
            self.split(strand, others, place + 1);
        }
        if active == required {
            return Ok(true);
        }
        self.strands[strand].state = State::Meeting(members);
        self.join(place, members, required);
        Ok(false)
    }

    fn barrier(
        &mut self,
        action: &Action,
        (number, strand, active): (usize, usize, u32),
        shared: &mut Shared,
    ) -> Outcome<Next> {
        use super::super::decode::BarrierKind;
        let Action::Barrier { kind, number: barrier, threads, is_aligned, of, .. } = *action else {
            return Ok(Next::Step);
        };
        let barrier = self.uniform(barrier, active, "the number of a barrier")?;
        if barrier as usize >= crate::lanes::barrier::BARRIERS {
            let reason = format!("there is no barrier {barrier}");
            return Err(Trouble::new(FaultKind::Undefined, active.into(), reason));
        }
        let expected = match threads {
            None => shared.threads,
            Some(register) => self.uniform(register, active, "the threads of a barrier")?,
        };
        if threads.is_some() && (expected == 0 || !(expected as usize).is_multiple_of(WARP)) {
            let reason = format!("{expected} threads at a barrier are no whole warps");
            return Err(Trouble::new(FaultKind::Undefined, active.into(), reason));
        }
        if is_aligned {
            if self.live != self.all {
                let ended = crate::lanes::show_lanes(Mask::from(self.all & !self.live));
                let reason = format!("wait at a barrier of the whole warp, of which {ended} ended");
                return Err(Trouble::new(FaultKind::Divergence, active.into(), reason));
            }
            if active != self.strands[strand].mask {
                let others = crate::lanes::show_lanes(Mask::from(self.strands[strand].mask & !active));
                let reason = format!("wait at a barrier of the whole warp, which {others} pass by");
                return Err(Trouble::new(FaultKind::Divergence, active.into(), reason));
            }
            if !self.wait_for(u32::MAX, self.all, strand, active)? {
                return Ok(Next::Chosen);
            }
        } else if active != self.strands[strand].mask {
            let (others, place) = (self.strands[strand].mask & !active, self.strands[strand].place);
            self.split(strand, others, place + 1);
        }
        if let Some(of) = of {
            let unknown = active & !self.known(of);
            if unknown != 0 {
                return Err(unwritten(unknown, "a predicate that a barrier counts"));
            }
            shared.barriers.vote(barrier as usize, (self.holds(of) & active).count_ones());
        }
        let waits = kind != BarrierKind::Arrive;
        let arrival = (number, active.count_ones());
        let is_complete = shared.barriers.arrive(barrier as usize, arrival, expected, waits, &shared.clocks);
        let is_complete = is_complete.map_err(|reason| Trouble::new(FaultKind::Divergence, active.into(), reason))?;
        match waits {
            true => self.strands[strand].state = State::Waiting(barrier as usize),
            false => {
                self.strands[strand].place += 1;
                shared.clocks.meet(number);
            }
        }
        Ok(if is_complete { Next::Complete(barrier as usize) } else { Next::Chosen })
    }

    /// A value that all lanes share.
    fn uniform(&self, register: u32, active: u32, what: &str) -> Outcome<u32> {
        let register = register as usize;
        let unknown = active & !self.words.known[register];
        if unknown != 0 {
            return Err(unwritten(unknown, what));
        }
        let values = &self.words.values[register];
        let first = values[active.trailing_zeros() as usize];
        match lanes_of(active.into()).find(|&lane| values[lane] != first) {
            Some(lane) => Err(Trouble::new(FaultKind::Divergence, 1 << lane, format!("{what} differs between lanes"))),
            None => Ok(first),
        }
    }

    fn shuffle(&mut self, action: &Action, active: u32) -> Outcome<()> {
        let Action::Shuffle { mode, to, valid, value, by, clamp, .. } = *action else { return Ok(()) };
        let [value, by, clamp] = [value, by, clamp].map(|register| register as usize);
        let unknown = active & !(self.words.known[by] & self.words.known[clamp]);
        if unknown != 0 {
            return Err(unwritten(unknown, "which lane a shuffle reads"));
        }
        let (mut values, mut known, mut holds) = ([0; WARP], 0, 0);
        for lane in lanes_of(active.into()) {
            let (by, clamp) = (self.words.values[by][lane] as i32 & 31, self.words.values[clamp][lane]);
            let (limit, segment) = (clamp as i32 & 31, (clamp >> 8) as i32 & 31);
            let own = lane as i32;
            let (highest, lowest) = ((own & segment) | (limit & !segment), own & segment);
            let (from, is_valid) = match mode {
                ShuffleMode::Up => (own - by, own - by >= highest),
                ShuffleMode::Down => (own + by, own + by <= highest),
                ShuffleMode::Butterfly => (own ^ by, own ^ by <= highest),
                ShuffleMode::Index => (lowest | (by & !segment), lowest | (by & !segment) <= highest),
            };
            let from = if is_valid { from as usize & 31 } else { lane };
            // The value of a lane that does not take part is unknown.
            if active >> from & 1 == 1 {
                values[lane] = self.words.values[value][from];
                known |= (self.words.known[value] >> from & 1) << lane;
            }
            holds |= u32::from(is_valid) << lane;
        }
        if let Some(to) = to {
            self.words.merge(to, &values, active, known);
        }
        if let Some(valid) = valid {
            self.set(valid, holds, u32::MAX, active);
        }
        Ok(())
    }

    fn vote(&mut self, mode: VoteMode, (to, of): (u32, Predicate), active: u32) {
        let holds = self.holds(of) & active;
        let is_known = self.known(of) & active == active;
        let known = if is_known { u32::MAX } else { 0 };
        let verdict = match mode {
            VoteMode::Ballot => return self.words.merge(to, &[holds; WARP], active, known),
            VoteMode::All => holds == active,
            VoteMode::Any => holds != 0,
            VoteMode::Uniform => holds == 0 || holds == active,
        };
        self.set(to, if verdict { u32::MAX } else { 0 }, known, active);
    }

    fn matching(&mut self, kind: MatchKind, (to, valid): (u32, Option<u32>), value: Register, active: u32) {
        let of = |lane: usize| match value {
            Register::Long(register) => self.longs.values[register as usize][lane],
            register => self.words.values[register.number() as usize][lane].into(),
        };
        let register = value.number() as usize;
        let known =
            if matches!(value, Register::Long(_)) { self.longs.known[register] } else { self.words.known[register] };
        let is_known = known & active == active;
        let mut values = [0u32; WARP];
        for lane in lanes_of(active.into()) {
            let equal = lanes_of(active.into()).filter(|&other| of(other) == of(lane));
            values[lane] = equal.fold(0, |mask, other| mask | 1 << other);
        }
        let is_all = lanes_of(active.into()).all(|lane| values[lane] == active);
        let known = if is_known { u32::MAX } else { 0 };
        if kind == MatchKind::All && !is_all {
            values = [0; WARP];
        }
        self.words.merge(to, &values, active, known);
        if let Some(valid) = valid {
            self.set(valid, if is_all { u32::MAX } else { 0 }, known, active);
        }
    }
}

#[cold]
pub(super) fn unwritten(lanes: u32, what: &str) -> Box<Trouble> {
    Trouble::new(FaultKind::Uninitialised, lanes.into(), format!("{what} comes from what nobody has written"))
}

fn evaluate(logic: Logic, a: u32, b: u32) -> u32 {
    match logic {
        Logic::Move => a,
        Logic::Not => !a,
        Logic::And => a & b,
        Logic::Or => a | b,
        Logic::Xor => a ^ b,
    }
}

/// Two values as one, of so many bytes.
pub(super) fn reduced(reduction: Reduction, a: u64, b: u64, size: usize) -> u64 {
    let signed = |bits: u64| if size == 4 { i64::from(bits as u32 as i32) } else { bits as i64 };
    match reduction {
        Reduction::AddInteger => a.wrapping_add(b),
        Reduction::MinSigned => {
            if signed(a) <= signed(b) {
                a
            } else {
                b
            }
        }
        Reduction::MaxSigned => {
            if signed(a) >= signed(b) {
                a
            } else {
                b
            }
        }
        Reduction::MinUnsigned => a.min(b),
        Reduction::MaxUnsigned => a.max(b),
        Reduction::And => a & b,
        Reduction::Or => a | b,
        Reduction::Xor => a ^ b,
    }
}

/// Bits of a value of so many bytes with its sign, or zeros, above it.
pub(super) fn extended(bits: u64, size: usize, is_signed: bool) -> u64 {
    let unused = 64 - 8 * size as u32;
    if is_signed { ((bits << unused) as i64 >> unused) as u64 } else { bits }
}

/// As a register of so many bits holds it.
pub(super) fn truncated(bits: u64, width: u32) -> u32 {
    if width == 16 { bits as u32 & 0xffff } else { bits as u32 }
}
