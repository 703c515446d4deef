//! Which parameters each address derives from, whatever way it comes: an access that lands in the memory of another one has
//! left its buffer. And so which buffers a kernel writes: the others need not be watched for races.

use super::{Action, Address, Code, Register};

/// Parameters and variables that can be told apart.
const MOST: usize = 64;

pub(super) fn trace(code: &mut Code) {
    let sources = code.params.len() + code.variables.len();
    if sources > MOST {
        code.written = u64::MAX;
        return;
    }
    let mut words = vec![0u64; code.words as usize];
    let mut longs = vec![0u64; code.longs as usize];
    for &(register, variable, _) in &code.addresses {
        longs[register as usize] |= 1 << (code.params.len() + variable);
    }
    for &(register, parameter) in &code.parameter_addresses {
        longs[register as usize] |= 1 << parameter;
    }
    loop {
        let before = (words.clone(), longs.clone());
        for step in &code.steps {
            flow(&step.action, code, &mut words, &mut longs);
        }
        if before == (words.clone(), longs.clone()) {
            break;
        }
    }
    let origins = |base: Address| match base {
        Address::Long(register) => longs[register as usize],
        Address::Word(register) => words[register as usize],
    };
    let mut written = 0;
    let everything = |origins: u64| if origins == 0 { u64::MAX } else { origins };
    for step in &mut code.steps {
        match &mut step.action {
            Action::Load(transfer) => transfer.origins = origins(transfer.base),
            Action::Store(transfer) => {
                transfer.origins = origins(transfer.base);
                if transfer.space == crate::lanes::memory::Space::Global {
                    written |= everything(transfer.origins);
                }
            }
            Action::Atomic(atomic) => {
                atomic.origins = origins(atomic.base);
                if atomic.space == crate::lanes::memory::Space::Global {
                    written |= everything(atomic.origins);
                }
            }
            _ => {}
        }
    }
    // LOCAL memory is one region.
    for step in &mut code.steps {
        if let Action::Load(transfer) | Action::Store(transfer) = &mut step.action
            && transfer.space == crate::lanes::memory::Space::Local
        {
            transfer.origins = 0;
        }
        if let Action::Atomic(atomic) = &mut step.action
            && atomic.space == crate::lanes::memory::Space::Local
        {
            atomic.origins = 0;
        }
    }
    code.written = written;
}

/// Propagates the origins of an action's operands to its result.
fn flow(action: &Action, code: &Code, words: &mut [u64], longs: &mut [u64]) {
    match action {
        Action::Parameter { to: Register::Long(to), offset, .. } => {
            let holds = |(_, parameter): &(usize, &crate::Parameter)| {
                (parameter.offset..parameter.offset + parameter.bytes).contains(offset)
            };
            if let Some((number, _)) = code.params.iter().enumerate().find(holds) {
                longs[*to as usize] |= 1 << number;
            }
        }
        Action::ParameterAt { to: Register::Long(to), base, .. } => longs[*to as usize] |= longs[*base as usize],
        Action::Compute { shape, to, from, .. } => {
            let (result, operands) = shape.sizes();
            let mut origins = 0;
            for (size, &register) in operands.bytes().zip(from) {
                origins |= if size == b'L' { longs[register as usize] } else { words[register as usize] };
            }
            let place = if result == b'L' { &mut longs[*to as usize] } else { &mut words[*to as usize] };
            *place |= origins;
        }
        Action::SelectWord { to, from, .. } => words[*to as usize] |= words[from[0] as usize] | words[from[1] as usize],
        Action::SelectLong { to, from, .. } => longs[*to as usize] |= longs[from[0] as usize] | longs[from[1] as usize],
        Action::Shuffle { to: Some(to), value, .. } => words[*to as usize] |= words[*value as usize],
        _ => {}
    }
}
