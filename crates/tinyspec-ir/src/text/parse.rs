//! Parses text into a graph. Every node goes through `derive`, so the result is well-formed.

use crate::op::ArgKind;
use crate::{AddrSpace, Arg, AxisType, Builder, Const, DType, Device, Error, ErrorKind, Graph, NodeId, Op, Result};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The graph that `text` describes, and its roots.
///
/// # Errors
/// Names the line and what was expected there; or the error of [`crate::derive()`].
pub fn parse(text: &str) -> Result<(Graph, Vec<NodeId>)> {
    let mut graph = Graph::new();
    let mut names: FxHashMap<u32, NodeId> = FxHashMap::default();
    for (index, line) in text.lines().enumerate() {
        let mut line = Line { rest: line.trim_start(), number: index + 1 };
        if line.at_end() {
            continue;
        }
        if line.take("return") {
            let roots = line.sources(&names)?;
            line.finish()?;
            return Ok((graph, roots));
        }
        let name = line.node_number()?;
        line.expect("=")?;
        let word = line.word();
        let op = Op::from_name(word).ok_or_else(|| line.error(format!("no op is called `{word}`")))?;
        let arg = if line.take("[") { line.arg(op)? } else { Arg::None };
        let sources = if line.take("(") {
            let sources = line.sources(&names)?;
            line.expect(")")?;
            sources
        } else {
            vec![]
        };
        line.finish()?;
        let node = graph.add(op, &sources, arg).map_err(|error| line.error(error.to_string()))?;
        if names.insert(name, node).is_some() {
            return Err(line.error(format!("%{name} is defined twice")));
        }
    }
    Err(Error::new(ErrorKind::Parse, "text", "the last line must be `return %a, %b`"))
}

struct Line<'a> {
    rest: &'a str,
    number: usize,
}

impl<'a> Line<'a> {
    fn error(&self, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Parse, "text", format!("line {}: {}", self.number, message.into()))
    }

    fn at_end(&self) -> bool {
        self.rest.is_empty() || self.rest.starts_with(';')
    }

    fn finish(&self) -> Result<()> {
        if self.at_end() { Ok(()) } else { Err(self.error(format!("`{}` is not expected here", self.rest))) }
    }

    fn take(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Result<()> {
        if self.take(token) { Ok(()) } else { Err(self.error(format!("expected `{token}` before `{}`", self.rest))) }
    }

    /// The next word, up to a blank or a bracket.
    fn word(&mut self) -> &'a str {
        let end = self.rest.find(|c: char| c.is_whitespace() || "[](),;=".contains(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        word
    }

    fn number<T: std::str::FromStr>(&mut self) -> Result<T> {
        let word = self.word();
        word.parse().map_err(|_| self.error(format!("expected a number, found `{word}`")))
    }

    fn numbers<T: std::str::FromStr, C: FromIterator<T>>(&mut self) -> Result<C> {
        std::iter::from_fn(|| (!self.rest.starts_with(']') && !self.at_end()).then(|| self.number())).collect()
    }

    fn node_number(&mut self) -> Result<u32> {
        self.expect("%")?;
        self.number()
    }

    fn sources(&mut self, names: &FxHashMap<u32, NodeId>) -> Result<Vec<NodeId>> {
        let mut sources = Vec::new();
        while self.rest.starts_with('%') {
            let name = self.node_number()?;
            let node = names.get(&name).ok_or_else(|| self.error(format!("%{name} is not defined above")))?;
            sources.push(*node);
            if !self.take(",") {
                break;
            }
        }
        Ok(sources)
    }

    fn dtype(&mut self) -> Result<DType> {
        let word = self.word();
        DType::from_name(word).ok_or_else(|| self.error(format!("`{word}` is not a dtype")))
    }

    fn addrspace(&mut self) -> Result<AddrSpace> {
        let word = self.word();
        let found = AddrSpace::ALL.into_iter().find(|space| space.name() == word);
        found.ok_or_else(|| self.error(format!("`{word}` is not an address space")))
    }

    fn string(&mut self) -> Result<Arc<str>> {
        // Blanks after the quote belong to the string.
        let Some(rest) = self.rest.strip_prefix('"') else {
            return Err(self.error(format!("expected a string before `{}`", self.rest)));
        };
        self.rest = rest;
        let mut text = String::new();
        let mut chars = self.rest.char_indices();
        while let Some((position, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = self.rest[position + 1..].trim_start();
                    return Ok(text.into());
                }
                '\\' => text.push(unescape(&mut chars).ok_or_else(|| self.error("a broken escape in a string"))?),
                _ => text.push(c),
            }
        }
        Err(self.error("a string without end"))
    }

    fn device(&mut self) -> Result<Option<Device>> {
        if !self.take("@") {
            return Ok(None);
        }
        if !self.take("(") {
            return Ok(Some(Device::Single(self.string()?)));
        }
        let mut names = Vec::new();
        while !self.take(")") {
            names.push(self.string()?);
        }
        Ok(Some(Device::Many(names.into())))
    }

    fn constant(&mut self) -> Result<Const> {
        let dtype = self.dtype()?;
        if self.take("bits") {
            let word = self.word();
            let bits = word.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
            let bits = bits.ok_or_else(|| self.error(format!("`{word}` is not a hexadecimal number")))?;
            return Ok(Const { dtype, bits });
        }
        if dtype.is_float() {
            let value: f64 = self.number()?;
            return Ok(Const::float(dtype, value));
        }
        Ok(Const::int(dtype, self.number()?))
    }

    /// The argument between the brackets, and the closing bracket.
    fn arg(&mut self, op: Op) -> Result<Arg> {
        let arg = match op.info().arg {
            ArgKind::None => return Err(self.error(format!("{op} takes no argument"))),
            ArgKind::Const => Arg::Const(self.constant()?),
            ArgKind::Param => Arg::Param {
                slot: self.number()?,
                dtype: self.dtype()?,
                device: self.device()?,
                addrspace: if self.rest.starts_with(']') { None } else { Some(self.addrspace()?) },
            },
            ArgKind::Buffer => Arg::Buffer {
                slot: self.number()?,
                dtype: self.dtype()?,
                device: self.device()?,
                addrspace: self.addrspace()?,
            },
            ArgKind::Bytes => Arg::Bytes(self.bytes()?),
            ArgKind::Axes => Arg::Axes(self.numbers()?),
            ArgKind::Flags => Arg::Flags(self.numbers::<u8, Vec<_>>()?.into_iter().map(|flag| flag != 0).collect()),
            ArgKind::DType => Arg::DType(self.dtype()?),
            ArgKind::Reduce => {
                let word = self.word();
                let op = Op::from_name(word).ok_or_else(|| self.error(format!("no op is called `{word}`")))?;
                Arg::Reduce { op, axes: self.numbers()? }
            }
            ArgKind::Number => Arg::Number(self.number()?),
            ArgKind::Load => Arg::Load { device: self.device()?, addrspace: self.addrspace()? },
            ArgKind::Store => {
                self.expect("nontemporal")?;
                Arg::Nontemporal
            }
            ArgKind::Contiguous => {
                self.expect("stored")?;
                Arg::Stored
            }
            ArgKind::Range => {
                let id = self.number()?;
                let word = self.word();
                let axis = AxisType::ALL.into_iter().find(|axis| format!("{axis:?}").to_lowercase() == word);
                Arg::Range { id, axis: axis.ok_or_else(|| self.error(format!("`{word}` is not an axis type")))? }
            }
            ArgKind::Text => Arg::Text(self.string()?),
        };
        self.expect("]")?;
        Ok(arg)
    }

    fn bytes(&mut self) -> Result<Arc<[u8]>> {
        let word = self.word();
        let digits = word.as_bytes();
        let value = |digit: u8| (digit as char).to_digit(16);
        let bytes: Option<Vec<u8>> = digits
            .chunks(2)
            .map(|pair| match pair {
                [high, low] => Some((value(*high)? * 16 + value(*low)?) as u8),
                _ => None,
            })
            .collect();
        bytes.map(Arc::from).ok_or_else(|| self.error(format!("`{word}` is not a row of hexadecimal bytes")))
    }
}

/// The inverse of `char::escape_debug`.
fn unescape(chars: &mut std::str::CharIndices) -> Option<char> {
    Some(match chars.next()?.1 {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        '0' => '\0',
        'u' => {
            chars.next().filter(|(_, c)| *c == '{')?;
            let digits: String = chars.by_ref().map(|(_, c)| c).take_while(|c| *c != '}').collect();
            char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?
        }
        other => other,
    })
}
