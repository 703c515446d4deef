//! Recurrent layers: cells, and sequences as steps of a cell. Weights stand as `linear` has them, inputs by outputs, the
//! gates beside each other.

use super::activation::sigmoid;
use super::arithmetic::{add, mul, sub};
use super::draw::dropout;
use super::elementwise::stored;
use super::hyperbolic::tanh;
use super::matmul::affine;
use super::movement::{cat, narrow, squeeze, stack};
use super::random::threefry;
use super::shape_of;
use crate::dim::show;
use crate::{Builder, Const, DType, Dim, Error, ErrorKind, NodeId, Result};

/// The weights of a cell.
#[derive(Clone, Copy)]
struct Weights {
    /// For the input: (inputs, gates · width).
    input: NodeId,
    /// For the state: (width, gates · width).
    state: NodeId,
    /// Of the input's product.
    bias: Option<NodeId>,
    /// Of the state's product.
    state_bias: Option<NodeId>,
}

impl Weights {
    fn of_input(&self, b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
        affine(b, "linear", x, self.input, self.bias)
    }

    fn of_state(&self, b: &mut dyn Builder, h: NodeId) -> Result<NodeId> {
        affine(b, "linear", h, self.state, self.state_bias)
    }

    /// Refuses weights that are not as wide as so many gates of the state.
    fn check(&self, b: &dyn Builder, op: &str, h: NodeId, gates: i64) -> Result<i64> {
        let (state, input, recurrent) = (shape_of(b, h), shape_of(b, self.input), shape_of(b, self.state));
        let width = state.last().and_then(Dim::as_const);
        let Some(width) = width else {
            let message = format!("a state of {}: its last axis is its width, a number", show(&state));
            return Err(Error::new(ErrorKind::Shape, op, message).help("`Tensor::zeros([batch, width])` starts one"));
        };
        let all = Dim::from(gates * width);
        if input.len() == 2 && input[1] == all && recurrent.as_slice() == [Dim::from(width), all.clone()] {
            return Ok(width);
        }
        let message = format!("weights of {} and {} for a state of {}", show(&input), show(&recurrent), show(&state));
        Err(Error::new(ErrorKind::Shape, op, message).help(format!("(inputs, {all}) and ({width}, {all})")))
    }
}

/// One gate of several.
fn gate(b: &mut dyn Builder, gates: NodeId, number: i64, width: i64) -> Result<NodeId> {
    narrow(b, gates, -1, number * width, width)
}

/// A step from the input's share of the gates.
type Step = fn(&mut dyn Builder, NodeId, &[NodeId], &Weights, i64) -> Result<Vec<NodeId>>;

/// A kind of cell.
struct Cell {
    gates: i64,
    step: Step,
}

/// `tanh(x W + h U)`.
const RNN: Cell = Cell {
    gates: 1,
    step: |b, share, state, weights, _| {
        let own = weights.of_state(b, state[0])?;
        let sum = add(b, share, own)?;
        Ok(vec![tanh(b, sum)?])
    },
};

/// Input, forget, cell and output gate (Hochreiter and Schmidhuber, 1997).
const LSTM: Cell = Cell {
    gates: 4,
    step: |b, share, state, weights, width| {
        let own = weights.of_state(b, state[0])?;
        let gates = add(b, share, own)?;
        let mut gate = |number: i64| gate(b, gates, number, width);
        let (input, forget, cell, output) = (gate(0)?, gate(1)?, gate(2)?, gate(3)?);
        let (input, forget, cell) = (sigmoid(b, input)?, sigmoid(b, forget)?, tanh(b, cell)?);
        let (kept, new) = (mul(b, forget, state[1])?, mul(b, input, cell)?);
        let cell = add(b, kept, new)?;
        let (output, shown) = (sigmoid(b, output)?, tanh(b, cell)?);
        Ok(vec![mul(b, output, shown)?, cell])
    },
};

/// Reset, update and new gate (Cho et al., 2014).
const GRU: Cell = Cell {
    gates: 3,
    step: |b, share, state, weights, width| {
        let own = weights.of_state(b, state[0])?;
        let mut both = |number: i64| Ok::<_, Error>((gate(b, share, number, width)?, gate(b, own, number, width)?));
        let (reset, update, new) = (both(0)?, both(1)?, both(2)?);
        let reset = add(b, reset.0, reset.1)?;
        let reset = sigmoid(b, reset)?;
        let update = add(b, update.0, update.1)?;
        let update = sigmoid(b, update)?;
        let seen = mul(b, reset, new.1)?;
        let new = add(b, new.0, seen)?;
        let new = tanh(b, new)?;
        // (1 - z) n + z h
        let difference = sub(b, state[0], new)?;
        let kept = mul(b, update, difference)?;
        Ok(vec![add(b, new, kept)?])
    },
};

fn once(
    b: &mut dyn Builder,
    op: &str,
    cell: &Cell,
    x: NodeId,
    state: &[NodeId],
    weights: Weights,
) -> Result<Vec<NodeId>> {
    let width = weights.check(b, op, state[0], cell.gates)?;
    let share = weights.of_input(b, x).map_err(|error| error.in_op(op))?;
    (cell.step)(b, share, state, &weights, width).map_err(|error| error.in_op(op))
}

/// The way that a layer goes through the steps.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Forward,
    Backward,
}

/// All states h, in the order of the steps, then the last state.
fn sequence(
    b: &mut dyn Builder,
    op: &str,
    cell: &Cell,
    x: NodeId,
    state: &[NodeId],
    weights: Weights,
    way: Way,
) -> Result<Vec<NodeId>> {
    let width = weights.check(b, op, state[0], cell.gates)?;
    let shape = shape_of(b, x);
    let Some(length) = shape.first().and_then(Dim::as_const).filter(|&length| length > 0 && shape.len() >= 2) else {
        let message = format!("needs (steps, …, inputs) with a known number of steps, found {}", show(&shape));
        let help = match shape.first().filter(|length| shape.len() >= 2 && length.as_const().is_none()) {
            Some(length) => {
                format!("the first axis is the steps, each with kernels of its own: write a number for {length}")
            }
            None => "the first axis is the steps: `unsqueeze(0)` makes one of a single input".to_string(),
        };
        return Err(Error::new(ErrorKind::Shape, op, message).help(help));
    };
    // The inputs' products are one, for all steps.
    let shares = weights.of_input(b, x).map_err(|error| error.in_op(op))?;
    let shares = stored(b, shares)?;
    let mut state = state.to_vec();
    let mut shown = Vec::new();
    for number in 0..length {
        let number = if way == Way::Forward { number } else { length - 1 - number };
        let share = narrow(b, shares, 0, number, 1)?;
        let share = squeeze(b, share, Some(&[0]))?;
        let next = (cell.step)(b, share, &state, &weights, width).map_err(|error| error.in_op(op))?;
        state.clear();
        for part in next {
            state.push(stored(b, part)?);
        }
        shown.push(state[0]);
    }
    if way == Way::Backward {
        shown.reverse();
    }
    let mut results = vec![stack(b, &shown, 0)?];
    results.extend(state);
    Ok(results)
}

/// The dropout of states between two layers: its random key, and the share that is dropped.
type Dropout = (NodeId, f64);

/// Layers of a cell, one over the states of the other, each one way or both ways: all states h of the last layer, then the
/// last states. A state has an axis in front for layers and ways, `weights` follow each other as it does.
#[allow(clippy::too_many_arguments, reason = "states and weights are as many")]
fn layers(
    b: &mut dyn Builder,
    op: &str,
    cell: &Cell,
    x: NodeId,
    state: &[NodeId],
    weights: &[NodeId],
    both_ways: bool,
    dropout: Option<Dropout>,
) -> Result<Vec<NodeId>> {
    let ways: &[Way] = if both_ways { &[Way::Forward, Way::Backward] } else { &[Way::Forward] };
    let shapes: Vec<_> = state.iter().map(|&state| shape_of(b, state)).collect();
    let rows = shapes[0].first().and_then(Dim::as_const).and_then(|rows| usize::try_from(rows).ok()).unwrap_or(0);
    if rows == 0 || rows % ways.len() != 0 || shapes.iter().any(|shape| shape[..] != shapes[0][..]) {
        let shown: Vec<String> = shapes.iter().map(|shape| show(shape)).collect();
        let message = format!("states of {} for layers of {} ways", shown.join(" and "), ways.len());
        return Err(Error::new(ErrorKind::Shape, op, message).help("(layers · ways, batch, width)"));
    }
    let each = weights.len() / rows;
    if weights.len() != rows * each || !matches!(each, 2 | 4) {
        let message = format!("{} weights for {rows} layers and ways", weights.len());
        return Err(
            Error::new(ErrorKind::Arity, op, message).help("weight and recurrent for each, and both biases or none")
        );
    }
    let of = |weights: &[NodeId]| Weights {
        input: weights[0],
        state: weights[1],
        bias: weights.get(2).copied(),
        state_bias: weights.get(3).copied(),
    };
    let (mut x, mut last) = (x, vec![vec![]; state.len()]);
    for layer in 0..rows / ways.len() {
        if let Some(dropout) = dropout.filter(|_| layer > 0) {
            x = between(b, x, dropout, layer).map_err(|error| error.in_op(op))?;
        }
        let mut sides = vec![];
        for (number, &way) in (layer * ways.len()..).zip(ways) {
            let mut first = vec![];
            for &state in state {
                let row = narrow(b, state, 0, number as i64, 1)?;
                first.push(squeeze(b, row, Some(&[0]))?);
            }
            let found = sequence(b, op, cell, x, &first, of(&weights[number * each..][..each]), way)?;
            sides.push(found[0]);
            for (last, &state) in last.iter_mut().zip(&found[1..]) {
                last.push(state);
            }
        }
        x = if sides.len() == 1 { sides[0] } else { cat(b, &sides, -1)? };
    }
    let mut results = vec![x];
    for states in last {
        results.push(stack(b, &states, 0)?);
    }
    Ok(results)
}

/// The states of a layer after dropout, as the next layer reads them; each layer has a draw of its own.
fn between(b: &mut dyn Builder, x: NodeId, (key, share): Dropout, layer: usize) -> Result<NodeId> {
    let number = b.constant(Const::int(DType::U64, layer as i128));
    let own = threefry(b, number, key)?;
    dropout(b, x, own, share)
}

/// `tanh(x W + h U)` with the biases of both products.
pub fn rnn_cell(
    b: &mut dyn Builder,
    x: NodeId,
    h: NodeId,
    weight: NodeId,
    recurrent: NodeId,
    bias: Option<NodeId>,
    recurrent_bias: Option<NodeId>,
) -> Result<NodeId> {
    let weights = Weights { input: weight, state: recurrent, bias, state_bias: recurrent_bias };
    once(b, "rnn_cell", &RNN, x, &[h], weights).map(|state| state[0])
}

/// The states h and c of a step: `c' = σ(f) c + σ(i) tanh(g)`, `h' = σ(o) tanh(c')` for the gates i, f, g, o.
#[allow(clippy::too_many_arguments, reason = "states and weights are as many")]
pub fn lstm_cell(
    b: &mut dyn Builder,
    x: NodeId,
    h: NodeId,
    c: NodeId,
    weight: NodeId,
    recurrent: NodeId,
    bias: Option<NodeId>,
    recurrent_bias: Option<NodeId>,
) -> Result<Vec<NodeId>> {
    let weights = Weights { input: weight, state: recurrent, bias, state_bias: recurrent_bias };
    once(b, "lstm_cell", &LSTM, x, &[h, c], weights)
}

/// The state of a step: `h' = (1 - σ(z)) n' + σ(z) h`, `n' = tanh(n(x) + σ(r) n(h))` for the gates r, z, n.
pub fn gru_cell(
    b: &mut dyn Builder,
    x: NodeId,
    h: NodeId,
    weight: NodeId,
    recurrent: NodeId,
    bias: Option<NodeId>,
    recurrent_bias: Option<NodeId>,
) -> Result<NodeId> {
    let weights = Weights { input: weight, state: recurrent, bias, state_bias: recurrent_bias };
    once(b, "gru_cell", &GRU, x, &[h], weights).map(|state| state[0])
}

/// All states of [`rnn_cell`] over the first axis, and the last one.
pub fn rnn(
    b: &mut dyn Builder,
    x: NodeId,
    h: NodeId,
    weight: NodeId,
    recurrent: NodeId,
    bias: Option<NodeId>,
    recurrent_bias: Option<NodeId>,
) -> Result<Vec<NodeId>> {
    let weights = Weights { input: weight, state: recurrent, bias, state_bias: recurrent_bias };
    sequence(b, "rnn", &RNN, x, &[h], weights, Way::Forward)
}

/// All states h of [`lstm_cell`] over the first axis, and the last h and c.
#[allow(clippy::too_many_arguments, reason = "states and weights are as many")]
pub fn lstm(
    b: &mut dyn Builder,
    x: NodeId,
    h: NodeId,
    c: NodeId,
    weight: NodeId,
    recurrent: NodeId,
    bias: Option<NodeId>,
    recurrent_bias: Option<NodeId>,
) -> Result<Vec<NodeId>> {
    let weights = Weights { input: weight, state: recurrent, bias, state_bias: recurrent_bias };
    sequence(b, "lstm", &LSTM, x, &[h, c], weights, Way::Forward)
}

/// All states of [`gru_cell`] over the first axis, and the last one.
pub fn gru(
    b: &mut dyn Builder,
    x: NodeId,
    h: NodeId,
    weight: NodeId,
    recurrent: NodeId,
    bias: Option<NodeId>,
    recurrent_bias: Option<NodeId>,
) -> Result<Vec<NodeId>> {
    let weights = Weights { input: weight, state: recurrent, bias, state_bias: recurrent_bias };
    sequence(b, "gru", &GRU, x, &[h], weights, Way::Forward)
}

/// Layers of [`rnn`]: all states of the last one, and the last ones of all.
pub fn rnn_layers(
    b: &mut dyn Builder,
    x: NodeId,
    h: NodeId,
    weights: &[NodeId],
    both_ways: bool,
) -> Result<Vec<NodeId>> {
    layers(b, "rnn_layers", &RNN, x, &[h], weights, both_ways, None)
}

/// Layers of [`lstm`]: all states h of the last one, and the last h and c of all.
pub fn lstm_layers(
    b: &mut dyn Builder,
    x: NodeId,
    h: NodeId,
    c: NodeId,
    weights: &[NodeId],
    both_ways: bool,
) -> Result<Vec<NodeId>> {
    layers(b, "lstm_layers", &LSTM, x, &[h, c], weights, both_ways, None)
}

/// Layers of [`gru`]: all states of the last one, and the last ones of all.
pub fn gru_layers(
    b: &mut dyn Builder,
    x: NodeId,
    h: NodeId,
    weights: &[NodeId],
    both_ways: bool,
) -> Result<Vec<NodeId>> {
    layers(b, "gru_layers", &GRU, x, &[h], weights, both_ways, None)
}

/// [`rnn_layers`] with dropout between them.
pub fn rnn_layers_with(
    b: &mut dyn Builder,
    x: NodeId,
    h: NodeId,
    weights: &[NodeId],
    both_ways: bool,
    key: NodeId,
    dropout: f64,
) -> Result<Vec<NodeId>> {
    layers(b, "rnn_layers_with", &RNN, x, &[h], weights, both_ways, Some((key, dropout)))
}

/// [`lstm_layers`] with dropout between them.
#[allow(clippy::too_many_arguments, reason = "states and weights are as many")]
pub fn lstm_layers_with(
    b: &mut dyn Builder,
    x: NodeId,
    h: NodeId,
    c: NodeId,
    weights: &[NodeId],
    both_ways: bool,
    key: NodeId,
    dropout: f64,
) -> Result<Vec<NodeId>> {
    layers(b, "lstm_layers_with", &LSTM, x, &[h, c], weights, both_ways, Some((key, dropout)))
}

/// [`gru_layers`] with dropout between them.
pub fn gru_layers_with(
    b: &mut dyn Builder,
    x: NodeId,
    h: NodeId,
    weights: &[NodeId],
    both_ways: bool,
    key: NodeId,
    dropout: f64,
) -> Result<Vec<NodeId>> {
    layers(b, "gru_layers_with", &GRU, x, &[h], weights, both_ways, Some((key, dropout)))
}
