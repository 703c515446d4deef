//! Checks during `const` evaluation, for whatever depends on constants, whose values macros cannot see.

/// The longest message; the rest is truncated.
const CAPACITY: usize = 512;

/// A message composed during `const` evaluation.
struct Message {
    bytes: [u8; CAPACITY],
    length: usize,
}

impl Message {
    const fn text(mut self, text: &str) -> Message {
        let text = text.as_bytes();
        let mut position = 0;
        while position < text.len() && self.length < CAPACITY {
            self.bytes[self.length] = text[position];
            self.length += 1;
            position += 1;
        }
        self
    }

    /// The source text of a number, unless it is a literal.
    const fn written(self, text: &str) -> Message {
        if is_number(text) { self } else { self.text(" (`").text(text).text("`)") }
    }

    #[track_caller]
    const fn panic(&self) -> ! {
        match std::str::from_utf8(self.bytes.split_at(self.length).0) {
            Ok(message) => panic!("{}", message),
            Err(_) => panic!("sizes differ"),
        }
    }

    const fn number(self, number: i128) -> Message {
        let mut message = if number < 0 { self.text("-") } else { self };
        let number = number.unsigned_abs();
        let mut power = 1;
        while number / power >= 10 {
            power *= 10;
        }
        while power > 0 {
            let digit = [b'0' + (number / power % 10) as u8];
            if let Ok(digit) = std::str::from_utf8(&digit) {
                message = message.text(digit);
            }
            power /= 10;
        }
        message
    }
}

const fn is_number(text: &str) -> bool {
    let (text, mut position) = (text.as_bytes(), 0);
    while position < text.len() && text[position].is_ascii_digit() {
        position += 1;
    }
    position == text.len()
}

/// Refuses to evaluate: the mistake that the macro found is one if the code around it compiles.
#[doc(hidden)]
#[track_caller]
pub const fn refuse(message: &str) {
    panic!("{}", message)
}

/// Refuses to evaluate a model that announces functions and has none.
#[doc(hidden)]
#[track_caller]
pub const fn check_functions(has_functions: bool, message: &str) {
    if !has_functions {
        refuse(message);
    }
}

/// Refuses to evaluate unless a size is what a constant says.
#[doc(hidden)]
#[track_caller]
pub const fn check_size(what: &str, expected: i128, written: &str, found: i128) {
    if expected == found {
        return;
    }
    let message = Message { bytes: [0; CAPACITY], length: 0 };
    let message = message.text(what).text(", ").number(expected).text("; here it is ").number(found);
    message.written(written).panic();
}

/// Refuses to evaluate unless two sizes are equal; at least one is a constant.
#[doc(hidden)]
#[track_caller]
pub const fn check_equal(op: &str, constant: &str, value: i128, written: &str, other: i128) {
    if value == other {
        return;
    }
    let message = Message { bytes: [0; CAPACITY], length: 0 };
    let message = message.text(op).text(": the constant `").text(constant).text("`, ").number(value);
    message.text(", and ").number(other).written(written).text(" must be equal here").panic();
}
