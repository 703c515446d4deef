//! Random code of a user's own gives on a GPU what it gives on the CPU. `TINYSPEC_FUZZ=<number>` tries more programs; it says
//! which seed an error is of.

use crate::own_code::compare;
use crate::simulators::register;
use fastrand::Rng;
use std::fmt::Write;
use tinyspec::prelude::*;

/// A type of LLVM, scalar or short vector.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Type {
    is_float: bool,
    bits: u32,
    lanes: u32,
}

impl Type {
    fn int(bits: u32) -> Type {
        Type { is_float: false, bits, lanes: 1 }
    }

    fn float(bits: u32) -> Type {
        Type { is_float: true, bits, lanes: 1 }
    }

    fn bool(self) -> Type {
        Type { is_float: false, bits: 1, ..self }
    }

    fn lane(self) -> Type {
        Type { lanes: 1, ..self }
    }

    fn element(self) -> String {
        match (self.is_float, self.bits) {
            (true, 16) => "half".into(),
            (true, 32) => "float".into(),
            (true, _) => "double".into(),
            (false, bits) => format!("i{bits}"),
        }
    }

    fn name(self) -> String {
        if self.lanes == 1 { self.element() } else { format!("<{} x {}>", self.lanes, self.element()) }
    }

    /// How the names of intrinsics for it end.
    fn suffix(self) -> String {
        let vector = if self.lanes == 1 { String::new() } else { format!("v{}", self.lanes) };
        format!("{vector}{}{}", if self.is_float { 'f' } else { 'i' }, self.bits)
    }
}

#[derive(Clone, Copy)]
struct Value {
    number: u32,
    of: Type,
}

/// A body of a function of two operands.
struct Code {
    text: String,
    values: Vec<Value>,
    next: u32,
    random: Rng,
}

const INTS: [&str; 4] = ["llvm.smax", "llvm.umin", "llvm.sadd.sat", "llvm.usub.sat"];
const FLOATS: [&str; 6] =
    ["llvm.minnum", "llvm.maxnum", "llvm.minimum", "llvm.maximum", "llvm.copysign", "llvm.minnum"];
const INTS_OF_ONE: [&str; 2] = ["llvm.ctpop", "llvm.bitreverse"];
const FLOATS_OF_ONE: [&str; 8] =
    ["llvm.fabs", "llvm.ceil", "llvm.floor", "llvm.trunc", "llvm.rint", "llvm.round", "llvm.roundeven", "llvm.sqrt"];

impl Code {
    fn new(seed: u64, of: Type) -> Code {
        let values = [0, 1].map(|number| Value { number, of }).to_vec();
        let mut code = Code { text: String::new(), values, next: 0, random: Rng::with_seed(seed) };
        for _ in 0..code.random.u32(3..16) {
            let value = code.step();
            code.values.push(value);
        }
        let last = code.values[code.values.len() - 1];
        let result = code.converted(last, of);
        let _ = writeln!(code.text, "ret {} {}", of.name(), code.show(result));
        code
    }

    fn show(&self, value: Value) -> String {
        if value.number < 2 { format!("%{}", value.number) } else { format!("%v{}", value.number) }
    }

    /// Adds an instruction; its value.
    fn add(&mut self, of: Type, instruction: &str) -> Value {
        self.next += 1;
        let value = Value { number: self.next + 1, of };
        let _ = writeln!(self.text, "{} = {instruction}", self.show(value));
        value
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.random.usize(..from.len())]
    }

    /// A constant, the same in all lanes.
    fn constant(&mut self, of: Type) -> String {
        let number = match of.is_float {
            true => self.pick(&["0.0", "-0.0", "1.0", "-2.5", "0.5", "3.0", "-1024.0"]).to_string(),
            false if of.bits == 1 => self.pick(&["true", "false"]).into(),
            false => self.pick(&[0, 1, -1, 2, 3, 7, -5, 100, -128]).to_string(),
        };
        match of.lanes {
            1 => number,
            lanes => format!("<{}>", vec![format!("{} {number}", of.element()); lanes as usize].join(", ")),
        }
    }

    /// An operand of the type: mostly a value that there is, converted where it is of another.
    fn operand(&mut self, of: Type) -> String {
        if self.random.u32(..6) == 0 {
            return self.constant(of);
        }
        // The newest are taken more often.
        let count = self.values.len();
        let place = count - 1 - self.random.usize(..count).min(self.random.usize(..count));
        let value = self.values[place];
        let value = self.converted(value, of);
        self.show(value)
    }

    /// The value as another type, without what LLVM leaves open: floats are brought in range of a whole number first.
    fn converted(&mut self, value: Value, to: Type) -> Value {
        let from = value.of;
        if from == to {
            return value;
        }
        if from.lanes != to.lanes {
            return match to.lanes {
                1 => {
                    let lane = self.random.u32(..from.lanes);
                    let text = format!("extractelement {} {}, i32 {lane}", from.name(), self.show(value));
                    let lane = self.add(from.lane(), &text);
                    self.converted(lane, to)
                }
                lanes => {
                    let value = self.converted(value, from.lane());
                    let value = self.converted(value, to.lane());
                    let mut vector = self.constant(to);
                    let mut last = value;
                    for lane in 0..lanes {
                        if lane == 0 || self.random.bool() {
                            let (element, name) = (to.element(), to.name());
                            let text =
                                format!("insertelement {name} {vector}, {element} {}, i32 {lane}", self.show(value));
                            last = self.add(to, &text);
                            vector = self.show(last);
                        }
                    }
                    last
                }
            };
        }
        let convert = |code: &mut Code, opcode: &str, value: Value| {
            let text = format!("{opcode} {} {} to {}", value.of.name(), code.show(value), to.name());
            code.add(to, &text)
        };
        match (from.is_float, to.is_float) {
            (false, false) if to.bits == 1 => {
                let zero = if from.lanes == 1 { "0".into() } else { "zeroinitializer".to_string() };
                let text = format!("icmp ne {} {}, {zero}", from.name(), self.show(value));
                self.add(to, &text)
            }
            (false, false) if from.bits > to.bits => convert(self, "trunc", value),
            (false, false) => {
                let opcode = self.pick(&["zext", "sext"]);
                convert(self, opcode, value)
            }
            (true, true) => convert(self, if from.bits > to.bits { "fptrunc" } else { "fpext" }, value),
            (false, true) => {
                let opcode = self.pick(&["sitofp", "uitofp"]);
                convert(self, opcode, value)
            }
            (true, false) if to.bits == 1 => {
                let zero = if from.lanes == 1 { "0.0".into() } else { "zeroinitializer".to_string() };
                let text = format!("fcmp one {} {}, {zero}", from.name(), self.show(value));
                self.add(to, &text)
            }
            (true, false) => {
                let opcode = self.pick(&["fptosi", "fptoui"]);
                let splat = |number: &str| match from.lanes {
                    1 => number.to_string(),
                    lanes => format!("<{}>", vec![format!("{} {number}", from.element()); lanes as usize].join(", ")),
                };
                let least = splat(if opcode == "fptosi" { "-100.0" } else { "0.0" });
                let (name, suffix) = (from.name(), from.suffix());
                let text = format!("call {name} @llvm.maxnum.{suffix}({name} {}, {name} {least})", self.show(value));
                let value = self.add(from, &text);
                let most = splat("100.0");
                let text = format!("call {name} @llvm.minnum.{suffix}({name} {}, {name} {most})", self.show(value));
                let value = self.add(from, &text);
                convert(self, opcode, value)
            }
        }
    }

    /// A type, mostly that of a value that there is.
    fn some_type(&mut self) -> Type {
        if self.random.u32(..3) > 0 {
            let known = self.values[self.random.usize(..self.values.len())].of;
            if known.bits > 1 {
                return known;
            }
        }
        let scalar = match self.random.bool() {
            true => Type::float(self.pick(&[16, 32, 64])),
            false => Type::int(self.pick(&[8, 16, 32, 64])),
        };
        let lanes = if self.random.u32(..4) == 0 { self.random.u32(2..5) } else { 1 };
        Type { lanes, ..scalar }
    }

    /// One more value.
    fn step(&mut self) -> Value {
        let of = self.some_type();
        match self.random.u32(..12) {
            0 => self.comparison(of),
            1 | 2 => self.selection(of),
            3 if of.lanes == 1 => self.branches(of),
            4 if of.lanes > 1 => self.shuffle(of),
            5 | 6 => self.intrinsic(of),
            _ => self.arithmetic(of),
        }
    }

    fn comparison(&mut self, of: Type) -> Value {
        let (a, b) = (self.operand(of), self.operand(of));
        let predicate = match of.is_float {
            true => self.pick(&["fcmp oeq", "fcmp olt", "fcmp ult", "fcmp une", "fcmp uno", "fcmp ole", "fcmp uge"]),
            false => self.pick(&["icmp eq", "icmp slt", "icmp ult", "icmp sge", "icmp ugt", "icmp ne"]),
        };
        self.add(of.bool(), &format!("{predicate} {} {a}, {b}", of.name()))
    }

    fn selection(&mut self, of: Type) -> Value {
        let condition = self.comparison(of);
        let (a, b) = (self.operand(of), self.operand(of));
        let (choice, name) = (self.show(condition), of.name());
        self.add(of, &format!("select {} {choice}, {name} {a}, {name} {b}", condition.of.name()))
    }

    /// One of two ways, each with an instruction of its own.
    fn branches(&mut self, of: Type) -> Value {
        let condition = self.comparison(of);
        let label = self.next;
        let choice = self.show(condition);
        let _ = writeln!(self.text, "br i1 {choice}, label %then{label}, label %else{label}");
        let mut way = |name: &str| {
            let _ = writeln!(self.text, "{name}{label}:");
            let known = self.values.len();
            let value = self.arithmetic(of);
            self.values.truncate(known);
            let _ = writeln!(self.text, "br label %end{label}");
            value
        };
        let (first, second) = (way("then"), way("else"));
        let _ = writeln!(self.text, "end{label}:");
        let (first, second) = (self.show(first), self.show(second));
        self.add(of, &format!("phi {} [{first}, %then{label}], [{second}, %else{label}]", of.name()))
    }

    fn shuffle(&mut self, of: Type) -> Value {
        let (a, b, name) = (self.operand(of), self.operand(of), of.name());
        let lanes: Vec<String> = (0..of.lanes).map(|_| format!("i32 {}", self.random.u32(..2 * of.lanes))).collect();
        self.add(of, &format!("shufflevector {name} {a}, {name} {b}, <{} x i32> <{}>", of.lanes, lanes.join(", ")))
    }

    fn intrinsic(&mut self, of: Type) -> Value {
        let (name, suffix) = (of.name(), of.suffix());
        if self.random.u32(..3) == 0 {
            let one = if of.is_float { self.pick(&FLOATS_OF_ONE) } else { self.pick(&INTS_OF_ONE) };
            let a = self.operand(of);
            return self.add(of, &format!("call {name} @{one}.{suffix}({name} {a})"));
        }
        let two = if of.is_float { self.pick(&FLOATS) } else { self.pick(&INTS) };
        let (a, mut b) = (self.operand(of), self.operand(of));
        if two == "llvm.copysign" {
            // The sign of a nan is left open.
            let own = self.add(of.bool(), &format!("fcmp ord {name} {b}, {b}"));
            let (own, constant) = (self.show(own), self.constant(of));
            let sign = self.add(of, &format!("select {} {own}, {name} {b}, {name} {constant}", of.bool().name()));
            b = self.show(sign);
        }
        let value = self.add(of, &format!("call {name} @{two}.{suffix}({name} {a}, {name} {b})"));
        if two.ends_with("num") {
            // So is which of two zeros is the less.
            let zero = if of.lanes == 1 { "0.0" } else { "zeroinitializer" };
            let text = format!("fadd {name} {}, {zero}", self.show(value));
            return self.add(of, &text);
        }
        value
    }

    fn arithmetic(&mut self, of: Type) -> Value {
        let name = of.name();
        let a = self.operand(of);
        if of.is_float {
            let opcode = self.pick(&["fadd", "fsub", "fmul", "fdiv", "fneg"]);
            let b = if opcode == "fneg" { String::new() } else { format!(", {}", self.operand(of)) };
            return self.add(of, &format!("{opcode} {name} {a}{b}"));
        }
        let opcode = self
            .pick(&["add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr", "udiv", "urem", "sdiv", "srem"]);
        let mut b = self.operand(of);
        let splat = |number: i64| match of.lanes {
            1 => number.to_string(),
            lanes => format!("<{}>", vec![format!("{} {number}", of.element()); lanes as usize].join(", ")),
        };
        if ["shl", "lshr", "ashr"].contains(&opcode) {
            let bits = splat(i64::from(of.bits) - 1);
            let places = self.add(of, &format!("and {name} {b}, {bits}"));
            b = self.show(places);
        } else if opcode.ends_with("div") || opcode.ends_with("rem") {
            // Positive, as the least number has no quotient by -1.
            let most = splat((1 << (of.bits - 1).min(62)) - 1);
            let positive = self.add(of, &format!("and {name} {b}, {most}"));
            let (positive, one) = (self.show(positive), splat(1));
            let divisor = self.add(of, &format!("or {name} {positive}, {one}"));
            b = self.show(divisor);
        }
        self.add(of, &format!("{opcode} {name} {a}, {b}"))
    }
}

#[test]
fn random_code_gives_what_it_gives_on_the_cpu() -> Result<()> {
    if let Err(error) = register() {
        println!("skipped: simulated GPUs: {error}");
        return Ok(());
    }
    let count = std::env::var("TINYSPEC_FUZZ").ok().and_then(|number| number.parse().ok()).unwrap_or(16);
    let types = [
        (DType::I8, Type::int(8)),
        (DType::I16, Type::int(16)),
        (DType::I32, Type::int(32)),
        (DType::I64, Type::int(64)),
        (DType::F16, Type::float(16)),
        (DType::F32, Type::float(32)),
        (DType::F64, Type::float(64)),
    ];
    let mut wrong = Vec::new();
    for seed in 0..count {
        let (dtype, of) = types[seed as usize % types.len()];
        let code = Code::new(seed, of);
        let known = wrong.len();
        compare(&code.text, dtype, 2, &mut wrong)?;
        if wrong.len() > known {
            wrong.push(format!("seed {seed}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}
