//! Tokens → modules.

use super::lexer::{Token, tokens};
use super::syntax::{Entry, Instruction, Operand, Parameter, Source, Statement, Variable, VariableSpace};
use super::types::Type;
use crate::{Position, SimulatorError};

type Result<T> = std::result::Result<T, SimulatorError>;

pub(super) fn parse(text: &str) -> Result<Source> {
    let mut parser = Parser { tokens: tokens(text)?, place: 0, source_line: 0 };
    parser.module()
}

struct Parser {
    tokens: Vec<(Token, Position)>,
    place: usize,
    /// Line of the source code that instructions are for.
    source_line: u32,
}

impl Parser {
    fn peek(&self) -> &Token {
        self.ahead(0)
    }

    fn ahead(&self, count: usize) -> &Token {
        self.tokens.get(self.place + count).map_or(&Token::End, |(token, _)| token)
    }

    fn at(&self) -> Position {
        let last = self.tokens.len().saturating_sub(1);
        self.tokens.get(self.place.min(last)).map_or(Position::default(), |&(_, at)| at)
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.place += 1;
        token
    }

    fn expected<T>(&self, what: &str) -> Result<T> {
        let reason = format!("expected {what}, found {}", self.peek().show());
        Err(SimulatorError::Syntax { at: self.at(), reason })
    }

    fn unknown<T>(&self, at: Position, what: impl Into<String>, reason: &str) -> Result<T> {
        Err(SimulatorError::Unknown { at, what: what.into(), reason: reason.into() })
    }

    fn takes(&mut self, mark: char) -> bool {
        let is_there = *self.peek() == Token::Mark(mark);
        self.place += is_there as usize;
        is_there
    }

    fn mark(&mut self, mark: char) -> Result<()> {
        if self.takes(mark) { Ok(()) } else { self.expected(&format!("`{mark}`")) }
    }

    fn word(&mut self, what: &str) -> Result<String> {
        match self.peek() {
            Token::Word(word) => {
                let word = word.clone();
                self.place += 1;
                Ok(word)
            }
            _ => self.expected(what),
        }
    }

    /// The word behind a dot, which stays where it is.
    fn directive(&self) -> Option<&str> {
        match (self.peek(), self.ahead(1)) {
            (Token::Mark('.'), Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    fn takes_directive(&mut self, name: &str) -> bool {
        let is_there = self.directive() == Some(name);
        self.place += 2 * is_there as usize;
        is_there
    }

    fn integer(&mut self, what: &str) -> Result<i128> {
        let is_negative = self.takes('-');
        match *self.peek() {
            Token::Integer(value) => {
                self.place += 1;
                Ok(if is_negative { -i128::from(value) } else { value.into() })
            }
            _ => self.expected(what),
        }
    }

    fn size(&mut self, what: &str) -> Result<usize> {
        let at = self.at();
        let value = self.integer(what)?;
        let reason = || format!("{value} is too large, or negative");
        usize::try_from(value).map_err(|_| SimulatorError::Syntax { at, reason: reason() })
    }

    fn module(&mut self) -> Result<Source> {
        let mut source = Source::default();
        while *self.peek() != Token::End {
            let at = self.at();
            let Some(directive) = self.directive().map(str::to_string) else {
                return self.expected("a directive");
            };
            match directive.as_str() {
                "version" => {
                    self.place += 2;
                    source.version = self.version()?;
                }
                "target" => {
                    self.place += 2;
                    source.target = self.word("a target, such as sm_80")?;
                    while self.takes(',') {
                        self.word("an option of the target")?;
                    }
                }
                "address_size" => {
                    self.place += 2;
                    if self.integer("64")? != 64 {
                        return self.unknown(at, ".address_size", "addresses have 64 bits");
                    }
                }
                "file" => self.skip_line(at.line),
                "pragma" => self.skip_to_semicolon()?,
                "section" => self.skip_block()?,
                "visible" | "weak" | "extern" | "common" => self.place += 2,
                "entry" => source.entries.push(self.entry()?),
                "global" | "const" | "shared" => source.variables.extend(self.variable()?),
                _ => return self.unknown(at, format!(".{directive}"), "no such directive of modules"),
            }
        }
        match source.version {
            (0, 0) => self.expected("`.version`"),
            _ => Ok(source),
        }
    }

    fn version(&mut self) -> Result<(u32, u32)> {
        let Token::Double(bits) = *self.peek() else { return self.expected("a version, such as 7.0") };
        self.place += 1;
        let tenths = (f64::from_bits(bits) * 10.0).round() as u32;
        Ok((tenths / 10, tenths % 10))
    }

    /// The rest of a line for debuggers, such as `.file 1 "name"`.
    fn skip_line(&mut self, line: u32) {
        while self.at().line == line && *self.peek() != Token::End {
            self.place += 1;
        }
    }

    /// `.loc 1 23 4`: file, line and column of the source code.
    fn location(&mut self, line: u32) -> Result<()> {
        self.place += 2;
        self.size("the number of a file")?;
        self.source_line = self.size("a line")? as u32;
        self.skip_line(line);
        Ok(())
    }

    fn skip_to_semicolon(&mut self) -> Result<()> {
        while !self.takes(';') {
            if self.next() == Token::End {
                return self.expected("`;`");
            }
        }
        Ok(())
    }

    fn skip_block(&mut self) -> Result<()> {
        while !self.takes('}') {
            if self.next() == Token::End {
                return self.expected("`}`");
            }
        }
        Ok(())
    }

    /// A type behind a dot.
    fn kind(&mut self) -> Result<Type> {
        let at = self.at();
        let Some(name) = self.directive().map(str::to_string) else { return self.expected("a type") };
        self.place += 2;
        match Type::named(&name) {
            Some(kind) => Ok(kind),
            None => self.unknown(at, format!(".{name}"), "no such type"),
        }
    }

    fn entry(&mut self) -> Result<Entry> {
        self.place += 2;
        let at = self.at();
        self.source_line = 0;
        let mut entry = Entry { name: self.word("the name of a kernel")?, at, ..Entry::default() };
        if self.takes('(') && !self.takes(')') {
            let mut offset = 0;
            loop {
                let param = self.parameter(&mut offset)?;
                entry.params.push(param);
                if self.takes(')') {
                    break;
                }
                self.mark(',')?;
            }
        }
        while let Some(directive) = self.directive().map(str::to_string) {
            let at = self.at();
            match directive.as_str() {
                "reqntid" => {
                    self.place += 2;
                    let sizes = self.sizes()?;
                    entry.required = Some([0, 1, 2].map(|dimension| sizes.get(dimension).copied().unwrap_or(1)));
                }
                "maxntid" => {
                    self.place += 2;
                    entry.most = Some(self.sizes()?);
                }
                "minnctapersm" | "maxnctapersm" | "maxnreg" => {
                    self.place += 2;
                    self.integer("a number")?;
                }
                "noreturn" => self.place += 2,
                "pragma" => self.skip_to_semicolon()?,
                _ => return self.unknown(at, format!(".{directive}"), "no such directive of kernels"),
            }
        }
        self.mark('{')?;
        let mut depth = 0;
        loop {
            if self.takes('}') {
                if depth == 0 {
                    return Ok(entry);
                }
                depth -= 1;
                entry.body.push(Statement::Close);
            } else if self.takes('{') {
                depth += 1;
                entry.body.push(Statement::Open);
            } else {
                self.statement(&mut entry.body)?;
            }
        }
    }

    fn sizes(&mut self) -> Result<Vec<u32>> {
        let mut sizes = vec![self.size("a size")? as u32];
        while self.takes(',') {
            sizes.push(self.size("a size")? as u32);
        }
        Ok(sizes)
    }

    /// `.param .u64 .ptr .global .align 64 name`, `.param .align 8 .b8 name[16]`
    fn parameter(&mut self, offset: &mut usize) -> Result<Parameter> {
        if !self.takes_directive("param") {
            return self.expected("`.param`");
        }
        let mut alignment = 1;
        if self.takes_directive("align") {
            alignment = self.size("an alignment")?;
        }
        let kind = self.kind()?;
        let is_pointer = self.takes_directive("ptr");
        if is_pointer {
            while let Some(directive) = self.directive().map(str::to_string) {
                self.place += 2;
                match directive.as_str() {
                    "align" => {
                        self.size("an alignment")?;
                    }
                    "global" | "const" | "shared" | "local" => {}
                    _ => return self.unknown(self.at(), format!(".{directive}"), "no such attribute of pointers"),
                }
            }
        }
        let name = self.word("the name of a parameter")?;
        let mut bytes = kind.size();
        if self.takes('[') {
            bytes *= self.size("a length")?;
            self.mark(']')?;
        }
        let alignment = alignment.max(kind.size()).max(1);
        *offset = offset.next_multiple_of(alignment);
        let parameter = Parameter { name, place: crate::Parameter { offset: *offset, bytes, is_pointer } };
        *offset += bytes;
        Ok(parameter)
    }

    /// `.shared .align 4 .b8 name[64], other[4] = {1, 2};`
    fn variable(&mut self) -> Result<Vec<Variable>> {
        let space = match self.directive() {
            Some("global") => VariableSpace::Global,
            Some("const") => VariableSpace::Const,
            Some("shared") => VariableSpace::Shared,
            _ => VariableSpace::Local,
        };
        self.place += 2;
        let mut alignment = 1;
        if self.takes_directive("align") {
            alignment = self.size("an alignment")?;
        }
        let kind = self.kind()?;
        let mut variables = Vec::new();
        loop {
            let at = self.at();
            let name = self.word("the name of a variable")?;
            let mut bytes = Some(kind.size());
            while self.takes('[') {
                if self.takes(']') {
                    bytes = None;
                    continue;
                }
                let length = self.size("a length")?;
                bytes = bytes.and_then(|bytes| bytes.checked_mul(length));
                self.mark(']')?;
            }
            let mut initial = None;
            if self.takes('=') {
                initial = Some(self.values(kind)?);
                bytes = bytes.or(initial.as_ref().map(Vec::len));
            }
            let alignment = alignment.max(kind.size()).max(1);
            variables.push(Variable { at, name, space, alignment, bytes, initial });
            if !self.takes(',') {
                self.mark(';')?;
                return Ok(variables);
            }
        }
    }

    /// The bytes of `{1, 2}` or `1`.
    fn values(&mut self, kind: Type) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if !self.takes('{') {
            self.value(kind, &mut bytes)?;
            return Ok(bytes);
        }
        while !self.takes('}') {
            match self.peek() {
                Token::Mark('{') => bytes.extend(self.values(kind)?),
                _ => self.value(kind, &mut bytes)?,
            }
            if !self.takes(',') && *self.peek() != Token::Mark('}') {
                return self.expected("`,` or `}`");
            }
        }
        Ok(bytes)
    }

    fn value(&mut self, kind: Type, bytes: &mut Vec<u8>) -> Result<()> {
        let bits = match *self.peek() {
            Token::Single(bits) => {
                self.place += 1;
                u64::from(bits)
            }
            Token::Double(bits) => {
                self.place += 1;
                bits
            }
            _ => self.integer("a constant: addresses in memory are not simulated")? as u64,
        };
        bytes.extend(&bits.to_le_bytes()[..kind.size()]);
        Ok(())
    }

    fn statement(&mut self, body: &mut Vec<Statement>) -> Result<()> {
        let at = self.at();
        if let Some(directive) = self.directive().map(str::to_string) {
            match directive.as_str() {
                "reg" => {
                    self.place += 2;
                    self.registers(body)?;
                }
                "shared" | "const" | "global" | "local" => {
                    body.extend(self.variable()?.into_iter().map(Statement::Variable));
                }
                "loc" => self.location(at.line)?,
                "pragma" => self.skip_to_semicolon()?,
                _ => return self.unknown(at, format!(".{directive}"), "no such directive inside of kernels"),
            }
            return Ok(());
        }
        let guard = match self.takes('@') {
            true => {
                let is_negated = self.takes('!');
                Some((self.word("a predicate")?, is_negated))
            }
            false => None,
        };
        let at = if guard.is_some() { self.at() } else { at };
        let first = self.word("an instruction")?;
        if guard.is_none() && self.takes(':') {
            if self.takes_directive("branchtargets") {
                let mut targets = vec![self.word("a label")?];
                while self.takes(',') {
                    targets.push(self.word("a label")?);
                }
                self.mark(';')?;
                body.push(Statement::Targets(first, targets));
            } else {
                body.push(Statement::Label(first, at));
            }
            return Ok(());
        }
        let mut words = vec![first];
        while self.takes('.') {
            words.push(self.word("a suffix of the instruction")?);
        }
        let mut operands = Vec::new();
        if !self.takes(';') {
            loop {
                operands.push(self.operand()?);
                if self.takes(';') {
                    break;
                }
                self.mark(',')?;
            }
        }
        body.push(Statement::Instruction(Instruction { at, source_line: self.source_line, guard, words, operands }));
        Ok(())
    }

    fn registers(&mut self, body: &mut Vec<Statement>) -> Result<()> {
        let kind = self.kind()?;
        loop {
            let at = self.at();
            let name = self.word("the name of a register")?;
            let mut count = None;
            if self.takes('<') {
                count = Some(self.size("a number of registers")? as u32);
                self.mark('>')?;
            }
            body.push(Statement::Registers { kind, name, count, at });
            if !self.takes(',') {
                return self.mark(';');
            }
        }
    }

    fn operand(&mut self) -> Result<Operand> {
        match self.peek().clone() {
            Token::Word(word) if word == "_" => {
                self.place += 1;
                Ok(Operand::Nothing)
            }
            Token::Word(word) => {
                self.place += 1;
                if self.takes('|') {
                    return Ok(Operand::Pair(word, self.word("a predicate")?));
                }
                if let (Token::Mark('.'), Token::Word(dimension)) = (self.peek().clone(), self.ahead(1).clone()) {
                    self.place += 2;
                    return Ok(Operand::Dimension(word, dimension));
                }
                if self.takes('+') {
                    return Ok(Operand::Memory(Some(word), self.offset()?));
                }
                Ok(Operand::Name(word))
            }
            Token::Integer(_) => Ok(Operand::Integer(self.integer("a number")?)),
            Token::Single(bits) => {
                self.place += 1;
                Ok(Operand::Single(bits))
            }
            Token::Double(bits) => {
                self.place += 1;
                Ok(Operand::Double(bits))
            }
            Token::Mark('-') => {
                if let Token::Double(bits) = *self.ahead(1) {
                    self.place += 2;
                    return Ok(Operand::Double(bits ^ 1 << 63));
                }
                Ok(Operand::Integer(self.integer("a number")?))
            }
            Token::Mark('!') => {
                self.place += 1;
                Ok(Operand::Not(self.word("a predicate")?))
            }
            Token::Mark('[') => self.memory(),
            Token::Mark('{') => {
                self.place += 1;
                let mut elements = Vec::new();
                loop {
                    elements.push(self.operand()?);
                    if self.takes('}') {
                        return Ok(Operand::Vector(elements));
                    }
                    self.mark(',')?;
                }
            }
            _ => self.expected("an operand"),
        }
    }

    fn offset(&mut self) -> Result<i64> {
        let at = self.at();
        let value = self.integer("an offset")?;
        i64::try_from(value).map_err(|_| SimulatorError::Syntax { at, reason: "an offset has 32 bits".into() })
    }

    fn memory(&mut self) -> Result<Operand> {
        self.mark('[')?;
        let base = match self.peek() {
            Token::Word(_) => Some(self.word("an address")?),
            _ => None,
        };
        let offset = match (&base, self.peek()) {
            (None, _) => self.offset()?,
            (Some(_), Token::Mark('+')) => {
                self.place += 1;
                self.offset()?
            }
            (Some(_), Token::Mark('-')) => self.offset()?,
            _ => 0,
        };
        self.mark(']')?;
        Ok(Operand::Memory(base, offset))
    }
}
