//! A small GPT that writes text a character at a time: a step takes a token and gives scores for the next one.
//!
//! `cargo run --release --example generate` prints what a model with random weights writes, and how many tokens a second: first
//! by lazy calls, then by a prepared one. Both write only the new rows of the caches of keys and values.

mod model;

use model::{CONTEXT, Gpt, LAYERS, VOCABULARY, WIDTH, step};
use std::time::Instant;
use tinyspec::prelude::*;

/// Tokens to write: as many as the model can look back on.
const LENGTH: usize = CONTEXT;

/// Keys and values of all layers, still empty.
fn caches() -> [Tensor; 2] {
    [(); 2].map(|()| Tensor::zeros([LAYERS, CONTEXT, WIDTH]))
}

/// The most likely token.
fn choose(scores: &Tensor) -> Result<i32> {
    scores.reshape([VOCABULARY as i64]).argmax(-1).item()
}

/// A token, or a position, as a tensor.
fn number(number: i32) -> Tensor {
    Tensor::from_slice(&[number], [1])
}

/// Each step is a lazy graph, computed when its scores are read; the caches are computed with them.
fn lazily(gpt: &Gpt) -> Result<Vec<i32>> {
    let [mut keys, mut values] = caches();
    realize_all(&[&keys, &values])?;
    let mut tokens = vec![0];
    for position in 0..LENGTH as i32 {
        let token = number(tokens[position as usize]);
        let (scores, next_keys, next_values) = step(gpt, &token, &number(position), &keys, &values);
        // Nobody needs the old caches any more: their memory is written on.
        (keys, values) = (next_keys, next_values);
        realize_all(&[&scores, &keys, &values])?;
        tokens.push(choose(&scores)?);
    }
    Ok(tokens)
}

/// The step is planned once; the caches stay in `out` from call to call.
fn prepared(gpt: &Gpt) -> Result<Vec<i32>> {
    let [keys, values] = caches();
    let mut arguments = gpt.parameters();
    let weights = arguments.len();
    let zero = number(0);
    arguments.extend([&zero, &zero, &keys, &values]);
    let run = step::FUNCTION.prepare(&arguments)?.in_place(&[(1, weights + 2), (2, weights + 3)])?;
    let mut out = run.outputs()?;
    (out[1], out[2]) = (keys, values);
    let mut tokens = vec![0];
    for position in 0..LENGTH as i32 {
        let (token, at) = (number(tokens[position as usize]), number(position));
        let mut arguments = gpt.parameters();
        arguments.extend([&token, &at]);
        run.call(&mut out, &arguments)?;
        tokens.push(choose(&out[0])?);
    }
    Ok(tokens)
}

fn main() -> Result<()> {
    let gpt = Gpt::init();
    realize_all(&gpt.parameters())?;
    for (name, write) in [("lazy calls", lazily as fn(&Gpt) -> Result<Vec<i32>>), ("a prepared call", prepared)] {
        // The first time the kernels are compiled.
        write(&gpt)?;
        let start = Instant::now();
        let tokens = write(&gpt)?;
        let seconds = start.elapsed().as_secs_f64();
        let text: String = tokens.iter().take(32).map(|&token| char::from(b'?' + token as u8)).collect();
        println!("{name}: {text}… {:.0} tokens a second", LENGTH as f64 / seconds);
    }
    Ok(())
}
