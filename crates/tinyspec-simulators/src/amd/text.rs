//! The text of an instruction as LLVM's disassembler writes it: mnemonic, operands, modifiers.

/// How registers are numbered here: first the scalar registers, then the vector registers.
pub(super) mod register {
    pub const VCC: u16 = 106;
    pub const TTMP: u16 = 108;
    pub const M0: u16 = 124;
    pub const NULL: u16 = 125;
    pub const EXEC: u16 = 126;
    /// The number of scalar registers.
    pub const SCALARS: u16 = 128;
}

/// Which half of a register is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    Low,
    High,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    Scalar {
        first: u16,
        count: u16,
    },
    Vector {
        first: u16,
        count: u16,
        half: Option<Half>,
    },
    Accumulator {
        first: u16,
        count: u16,
    },
    /// An integer, in decimal: an inline constant or a number of its own.
    Integer(i64),
    /// Bits.
    Bits(u64),
    Float(f64),
    /// `src_scc` and the like.
    Flag(Flag),
    Off,
    /// Anything else, such as `hwreg(HW_REG_MODE)`.
    Word(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flag {
    Scc,
    Vccz,
    Execz,
}

/// An operand with its modifiers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Given {
    pub operand: Operand,
    pub negative: bool,
    pub absolute: bool,
    pub sign_extended: bool,
}

/// One instruction, or one half of a dual one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Line {
    pub mnemonic: String,
    pub operands: Vec<Given>,
    /// Names with optional values: `offset:16`, `glc`.
    pub modifiers: Vec<(String, Option<String>)>,
}

/// Reads an instruction; two for a dual one.
pub(super) fn parse(text: &str) -> Result<Vec<Line>, String> {
    text.split("::").map(|part| line(part.trim())).collect()
}

fn line(text: &str) -> Result<Line, String> {
    let (mnemonic, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let mut line = Line { mnemonic: mnemonic.into(), ..Line::default() };
    // These list counters instead of operands.
    if matches!(mnemonic, "s_waitcnt" | "s_delay_alu" | "s_waitcnt_depctr" | "s_wait_alu" | "s_sendmsg") {
        line.modifiers = pieces(rest, |c| c.is_whitespace()).map(|piece| (piece.into(), None)).collect();
        return Ok(line);
    }
    for piece in pieces(rest, |c| c == ',') {
        let mut words = pieces(piece, char::is_whitespace);
        let first = words.next().ok_or("an operand is missing")?;
        line.operands.push(given(first)?);
        for word in words {
            let (name, value) = match word.split_once(':') {
                Some((name, value)) => (name, Some(value.to_string())),
                None => (word, None),
            };
            line.modifiers.push((name.into(), value));
        }
    }
    Ok(line)
}

/// Splits a text at separators that are outside of brackets.
fn pieces(text: &str, is_separator: impl Fn(char) -> bool) -> impl Iterator<Item = &str> {
    let mut depth = 0usize;
    let parts = text.split(move |c: char| {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && is_separator(c)
    });
    parts.map(str::trim).filter(|piece| !piece.is_empty())
}

fn given(text: &str) -> Result<Given, String> {
    let mut given = Given { operand: Operand::Off, negative: false, absolute: false, sign_extended: false };
    let mut rest = text;
    let inside = |text: &'static str, rest: &str| -> Option<String> {
        Some(rest.strip_prefix(text)?.strip_suffix(')')?.to_string())
    };
    let mut owned;
    if let Some(inner) = inside("neg(", rest) {
        given.negative = true;
        owned = inner;
        rest = &owned;
    } else if let Some(inner) = rest.strip_prefix('-').filter(|inner| !inner.starts_with(|c: char| c.is_ascii_digit()))
    {
        given.negative = true;
        rest = inner;
    }
    if let Some(inner) = rest.strip_prefix('|').and_then(|inner| inner.strip_suffix('|')) {
        given.absolute = true;
        rest = inner;
    } else if let Some(inner) = inside("abs(", rest) {
        given.absolute = true;
        owned = inner;
        rest = &owned;
    } else if let Some(inner) = inside("sext(", rest) {
        given.sign_extended = true;
        owned = inner;
        rest = &owned;
    }
    given.operand = operand(rest)?;
    Ok(given)
}

fn operand(text: &str) -> Result<Operand, String> {
    if let Some(number) = number(text) {
        return Ok(number);
    }
    let scalar = |first: u16, count: u16| Ok(Operand::Scalar { first, count });
    match text {
        "off" => return Ok(Operand::Off),
        "vcc" => return scalar(register::VCC, 2),
        "vcc_lo" => return scalar(register::VCC, 1),
        "vcc_hi" => return scalar(register::VCC + 1, 1),
        "exec" => return scalar(register::EXEC, 2),
        "exec_lo" => return scalar(register::EXEC, 1),
        "exec_hi" => return scalar(register::EXEC + 1, 1),
        "m0" => return scalar(register::M0, 1),
        "null" => return scalar(register::NULL, 1),
        "scc" | "src_scc" => return Ok(Operand::Flag(Flag::Scc)),
        "vccz" | "src_vccz" => return Ok(Operand::Flag(Flag::Vccz)),
        "execz" | "src_execz" => return Ok(Operand::Flag(Flag::Execz)),
        _ => {}
    }
    let (text, half) = match text.strip_suffix(".l") {
        Some(text) => (text, Some(Half::Low)),
        None => match text.strip_suffix(".h") {
            Some(text) => (text, Some(Half::High)),
            None => (text, None),
        },
    };
    let (kind, limit) = match text {
        text if text.starts_with("ttmp") => ("ttmp", 16),
        text if text.starts_with('v') => ("v", 512),
        text if text.starts_with('a') => ("a", 256),
        text if text.starts_with('s') => ("s", 106),
        _ => ("", 0),
    };
    let Some((first, count)) = range(&text[kind.len()..]).filter(|(first, count)| first + count <= limit) else {
        return Ok(Operand::Word(text.into()));
    };
    match (kind, half) {
        ("v", half) => Ok(Operand::Vector { first, count, half }),
        (_, Some(_)) => Err(format!("`{text}` has no halves")),
        ("ttmp", _) => scalar(register::TTMP + first, count),
        ("a", _) => Ok(Operand::Accumulator { first, count }),
        _ => scalar(first, count),
    }
}

/// `5` or `[4:7]` as the first register and the count.
fn range(text: &str) -> Option<(u16, u16)> {
    if let Some(inner) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        let (first, last) = inner.split_once(':').unwrap_or((inner, inner));
        let (first, last) = (first.parse::<u16>().ok()?, last.parse::<u16>().ok()?);
        return Some((first, last.checked_sub(first)?.checked_add(1)?)).filter(|(_, count)| *count <= 32);
    }
    Some((text.parse().ok()?, 1))
}

fn number(text: &str) -> Option<Operand> {
    // A literal that occupies a word of its own although it could be encoded inline.
    if let Some(inner) = text.strip_prefix("lit(").and_then(|text| text.strip_suffix(')')) {
        return number(inner).filter(|operand| matches!(operand, Operand::Bits(_)));
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok().map(Operand::Bits);
    }
    if let Some(digits) = text.strip_prefix("-0x") {
        return i64::from_str_radix(digits, 16).ok().map(|value| Operand::Integer(-value));
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return None;
    }
    text.parse().map(Operand::Integer).or_else(|_| text.parse().map(Operand::Float)).ok()
}
