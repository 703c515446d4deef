//! Any text and any bytes give an error or a sound graph, never a panic.
//!
//! `TINYSPEC_FUZZ=<number>` tries more inputs; `fuzz/` has the same properties as targets of cargo-fuzz.

mod property;
mod seeds;

use property::{any_bytes, any_graph, any_text, sealed, unsealed};
use std::panic::AssertUnwindSafe;
use tinyspec_ir::{Op, encode, text};

/// How many inputs each test tries.
fn budget() -> u64 {
    std::env::var("TINYSPEC_FUZZ").ok().and_then(|number| number.parse().ok()).unwrap_or(4000)
}

/// Tries `budget` inputs; a panic names the seed and the input.
fn each<I: AsRef<[u8]>>(make: impl Fn(&mut fastrand::Rng) -> I, check: impl Fn(&I)) {
    for seed in 0..budget() {
        let input = make(&mut fastrand::Rng::with_seed(seed));
        if let Err(panic) = std::panic::catch_unwind(AssertUnwindSafe(|| check(&input))) {
            eprintln!("seed {seed}:\n{}", String::from_utf8_lossy(input.as_ref()));
            std::panic::resume_unwind(panic);
        }
    }
}

fn pick<'a, T>(dice: &mut fastrand::Rng, items: &'a [T]) -> &'a T {
    &items[dice.usize(..items.len())]
}

/// A few edits: of bytes, numbers, words and lines.
fn edited(dice: &mut fastrand::Rng, seeds: &[String]) -> String {
    let mut lines: Vec<String> = pick(dice, seeds).lines().map(str::to_string).collect();
    for _ in 0..1 + dice.usize(..4) {
        let at = dice.usize(..lines.len());
        match dice.u32(..8) {
            0 => {
                let other = pick(dice, seeds).lines().map(str::to_string).collect::<Vec<_>>();
                lines[at] = pick(dice, &other).clone();
            }
            1 => {
                let other = dice.usize(..lines.len());
                lines.swap(at, other);
            }
            2 => lines.insert(at, lines[at].clone()),
            3 if lines.len() > 1 => drop(lines.remove(at)),
            4 => lines[at] = replaced(dice, &lines[at], |c| c.is_ascii_alphabetic(), Op::name),
            5 => {
                let mut bytes = lines[at].clone().into_bytes();
                if !bytes.is_empty() {
                    let place = dice.usize(..bytes.len());
                    bytes[place] = *pick(dice, b"%[](),;=\"\\@ 09azu{}-.x\xff\0");
                }
                lines[at] = String::from_utf8_lossy(&bytes).into_owned();
            }
            _ => {
                let number = *pick(dice, &seeds::NUMBERS);
                // Sources stay near, so that much of it still parses.
                let number = if dice.bool() { (dice.usize(..=at)) as i128 } else { number };
                lines[at] =
                    replaced(dice, &lines[at], |c| c.is_ascii_digit(), |_| Box::leak(number.to_string().into()));
            }
        }
    }
    lines.join("\n")
}

/// One run of characters of a kind replaced.
fn replaced(
    dice: &mut fastrand::Rng,
    line: &str,
    kind: impl Fn(char) -> bool,
    by: impl Fn(Op) -> &'static str,
) -> String {
    let starts: Vec<usize> = line
        .char_indices()
        .filter(|&(at, c)| kind(c) && !line[..at].chars().next_back().is_some_and(&kind))
        .map(|(at, _)| at)
        .collect();
    if starts.is_empty() {
        return line.to_string();
    }
    let start = *pick(dice, &starts);
    let end = line[start..].find(|c| !kind(c)).map_or(line.len(), |length| start + length);
    format!("{}{}{}", &line[..start], by(*pick(dice, Op::ALL)), &line[end..])
}

#[test]
fn any_text_is_an_error_or_a_sound_graph() {
    let seeds = seeds::texts();
    assert!(seeds.len() > 40, "the file tests are the seeds");
    seeds.iter().for_each(|seed| any_text(seed));
    each(|dice| edited(dice, &seeds), |text| any_text(text));
}

#[test]
fn any_bytes_are_an_error_or_a_sound_graph() {
    let seeds: Vec<Vec<u8>> = seeds::texts()
        .iter()
        .filter_map(|seed| text::parse(seed).ok())
        .map(|(graph, roots)| unsealed(encode::encode(&graph, &roots)))
        .collect();
    let edited = |dice: &mut fastrand::Rng| {
        let mut bytes = pick(dice, &seeds).clone();
        for _ in 0..1 + dice.usize(..4) {
            let at = dice.usize(..bytes.len().max(1));
            match dice.u32(..5) {
                _ if bytes.is_empty() => bytes.push(dice.u8(..)),
                0 => bytes.truncate(at),
                1 => bytes.insert(at, dice.u8(..)),
                2 => drop(bytes.remove(at)),
                3 => bytes[at] ^= 1 << dice.u32(..8),
                _ => bytes[at] = dice.u8(..),
            }
        }
        bytes
    };
    each(edited, |bytes| any_bytes(bytes));
}

#[test]
fn any_graph_that_can_be_built_is_sound() {
    let bytes = |dice: &mut fastrand::Rng| {
        let count = 4 + dice.usize(..60);
        let (graph, roots) = seeds::graph(dice, count);
        any_graph(&graph, &roots);
        unsealed(encode::encode(&graph, &roots))
    };
    each(bytes, |bytes| assert!(encode::decode(&sealed(bytes)).is_ok()));
}

/// Expressions over named dims could grow without bound, in size and in depth.
#[test]
fn dims_do_not_grow_without_bound() {
    type Step = fn(u32, u32) -> String;
    let quotient: Step = |x, own| format!("%{own} = idiv(%{x}, %3)\n");
    let remainder: Step = |x, own| format!("%{own} = mod(%2, %{x})\n");
    let square: Step = |x, own| format!("%{} = mul(%{x}, %{x})\n%{own} = add(%{}, %1)\n", own + 900, own + 900);
    for (step, count) in [(quotient, 100_000), (remainder, 100_000), (square, 60)] {
        let mut text = "%0 = stack()\n%1 = const[index 1]\n%2 = const[index 9]\n".to_string();
        text += "%3 = param[0 index](%0, %1, %2)\n";
        text.extend((4..count).map(|own| step(own - 1, own)));
        text += &format!("%{count} = stack(%{})\nreturn %{count}\n", count - 1);
        assert!(text::parse(&text).is_ok());
        any_text(&text);
    }
}
