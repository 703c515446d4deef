//! Text → tokens with their positions.

use crate::{Position, SimulatorError};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A name: of an instruction, a register (`%r1`), a label (`$L__BB0_2`), a directive without its dot.
    Word(String),
    /// An integer, with its sign still a token of its own.
    Integer(u64),
    /// A float by its bits: `0f3F800000`.
    Single(u32),
    /// A double by its bits: `0d3FF0000000000000`, or decimal.
    Double(u64),
    Text(String),
    /// A punctuation mark.
    Mark(char),
    End,
}

impl Token {
    /// For messages.
    pub fn show(&self) -> String {
        match self {
            Token::Word(word) => format!("`{word}`"),
            Token::Integer(value) => format!("`{value}`"),
            Token::Single(bits) => format!("`0f{bits:08X}`"),
            Token::Double(bits) => format!("`0d{bits:016X}`"),
            Token::Text(text) => format!("\"{text}\""),
            Token::Mark(mark) => format!("`{mark}`"),
            Token::End => "the end of the text".into(),
        }
    }
}

pub(super) struct Lexer<'a> {
    text: &'a [u8],
    place: usize,
    at: Position,
}

pub(super) fn tokens(text: &str) -> Result<Vec<(Token, Position)>, SimulatorError> {
    let mut lexer = Lexer { text: text.as_bytes(), place: 0, at: Position { line: 1, column: 1 } };
    let mut tokens = Vec::with_capacity(text.len() / 4);
    loop {
        lexer.skip()?;
        let at = lexer.at;
        let token = lexer.token()?;
        let is_end = token == Token::End;
        tokens.push((token, at));
        if is_end {
            return Ok(tokens);
        }
    }
}

fn starts_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$' | b'%')
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.place + ahead).copied().unwrap_or(0)
    }

    fn step(&mut self) {
        match self.peek(0) {
            b'\n' => self.at = Position { line: self.at.line + 1, column: 1 },
            _ => self.at.column += 1,
        }
        self.place += 1;
    }

    fn error<T>(&self, reason: impl Into<String>) -> Result<T, SimulatorError> {
        Err(SimulatorError::Syntax { at: self.at, reason: reason.into() })
    }

    /// Space and comments.
    fn skip(&mut self) -> Result<(), SimulatorError> {
        loop {
            match (self.peek(0), self.peek(1)) {
                (byte, _) if byte.is_ascii_whitespace() => self.step(),
                (b'/', b'/') => {
                    while self.place < self.text.len() && self.peek(0) != b'\n' {
                        self.step();
                    }
                }
                (b'/', b'*') => {
                    let start = self.at;
                    while self.place < self.text.len() && (self.peek(0), self.peek(1)) != (b'*', b'/') {
                        self.step();
                    }
                    if self.place >= self.text.len() {
                        let reason = "a comment is never closed".into();
                        return Err(SimulatorError::Syntax { at: start, reason });
                    }
                    self.step();
                    self.step();
                }
                _ => return Ok(()),
            }
        }
    }

    fn take_while(&mut self, takes: impl Fn(u8) -> bool) -> String {
        let start = self.place;
        while self.place < self.text.len() && takes(self.peek(0)) {
            self.step();
        }
        String::from_utf8_lossy(&self.text[start..self.place]).into_owned()
    }

    fn token(&mut self) -> Result<Token, SimulatorError> {
        let byte = self.peek(0);
        // The end of the text: a NUL, as strings for the driver have, or nothing.
        if self.place >= self.text.len() || byte == 0 {
            return Ok(Token::End);
        }
        if starts_word(byte) {
            self.step();
            let mut word = String::from(byte as char);
            word += &self.take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$'));
            while (self.peek(0), self.peek(1)) == (b':', b':') {
                self.step();
                self.step();
                word += "::";
                word += &self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            }
            return Ok(Token::Word(word));
        }
        if byte.is_ascii_digit() {
            return self.number();
        }
        if byte == b'"' {
            self.step();
            let text = self.take_while(|byte| !matches!(byte, b'"' | b'\n'));
            if self.peek(0) != b'"' {
                return self.error("a string is never closed");
            }
            self.step();
            return Ok(Token::Text(text));
        }
        if matches!(byte, b'.' | b',' | b';' | b':' | b'[' | b']' | b'{' | b'}' | b'(' | b')' | b'<' | b'>' | b'+')
            || matches!(byte, b'-' | b'@' | b'!' | b'|' | b'=' | b'~')
        {
            self.step();
            return Ok(Token::Mark(byte as char));
        }
        self.error(format!("`{}` begins no token", byte.escape_ascii()))
    }

    fn number(&mut self) -> Result<Token, SimulatorError> {
        let (zero, kind) = (self.peek(0) == b'0', self.peek(1));
        let at = self.at;
        let bad = |what: &str| SimulatorError::Syntax { at, reason: format!("this is not a {what}") };
        if zero && matches!(kind, b'f' | b'F' | b'd' | b'D' | b'x' | b'X' | b'b' | b'B') {
            self.step();
            self.step();
            let digits = self.take_while(|byte| byte.is_ascii_hexdigit());
            let value = |radix, what| u64::from_str_radix(&digits, radix).map_err(|_| bad(what));
            return Ok(match kind {
                b'f' | b'F' if digits.len() == 8 => Token::Single(value(16, "float")? as u32),
                b'd' | b'D' if digits.len() == 16 => Token::Double(value(16, "float")?),
                b'x' | b'X' => {
                    let value = value(16, "hexadecimal number")?;
                    self.suffix();
                    Token::Integer(value)
                }
                b'b' | b'B' => Token::Integer(value(2, "binary number")?),
                _ => return Err(bad("float: 0f takes 8 digits, 0d 16")),
            });
        }
        let digits = self.take_while(|byte| byte.is_ascii_digit());
        let is_decimal = self.peek(0) == b'.' && self.peek(1).is_ascii_digit();
        if is_decimal {
            self.step();
            let fraction = self.take_while(|byte| byte.is_ascii_digit());
            let mut text = format!("{digits}.{fraction}");
            if matches!(self.peek(0), b'e' | b'E') {
                self.step();
                text.push('e');
                if matches!(self.peek(0), b'+' | b'-') {
                    text.push(self.peek(0) as char);
                    self.step();
                }
                text += &self.take_while(|byte| byte.is_ascii_digit());
            }
            let value: f64 = text.parse().map_err(|_| bad("float"))?;
            return Ok(Token::Double(value.to_bits()));
        }
        let radix = if zero && digits.len() > 1 { 8 } else { 10 };
        let value = u64::from_str_radix(&digits, radix).map_err(|_| bad("64-bit integer"))?;
        self.suffix();
        Ok(Token::Integer(value))
    }

    /// `U` after an unsigned integer.
    fn suffix(&mut self) {
        if self.peek(0) == b'U' {
            self.step();
        }
    }
}
