//! Recurrent layers against steps that were computed with NumPy, gates in PyTorch's order.

use tinyspec_core::execute::with_default_device;
use tinyspec_core::{Error, GradcheckOptions, Tensor, grad, gradcheck};
use tinyspec_ir::DType;

/// `sin(1.7 i + start)` for the i-th element.
fn waves(shape: &[i64], start: f64) -> Tensor {
    let count: i64 = shape.iter().product();
    (Tensor::arange(count).cast(DType::F64) * 1.7 + start).sin().reshape(shape)
}

struct Layer {
    x: Tensor,
    h: Tensor,
    c: Tensor,
    weight: Tensor,
    recurrent: Tensor,
    biases: [Tensor; 2],
}

/// 3 steps of 2 samples with 2 inputs, in layers of 2.
fn layer(gates: i64) -> Layer {
    Layer {
        x: waves(&[3, 2, 2], 0.3),
        h: waves(&[2, 2], 1.0),
        c: waves(&[2, 2], 2.0),
        weight: waves(&[2, 2 * gates], 0.5),
        recurrent: waves(&[2, 2 * gates], 0.7),
        biases: [waves(&[2 * gates], 0.9), waves(&[2 * gates], 1.1)],
    }
}

#[track_caller]
fn is(tensor: &Tensor, want: &[f64]) -> Result<(), Error> {
    let got = tensor.to_vec::<f64>()?;
    assert!(got.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-12), "{got:?} instead of {want:?}");
    assert_eq!(got.len(), want.len());
    Ok(())
}

const RNN: [f64; 12] = [
    0.8816670406443174,
    0.7090289690448884,
    0.9029595909797392,
    0.3379711577258316,
    0.9230916859377475,
    0.8708862534184894,
    0.9472507495022929,
    0.6741384505653514,
    0.9602006584283274,
    0.945467630902668,
    0.8179990838724595,
    0.2675191453128973,
];
const LSTM: [f64; 12] = [
    0.013702230720020888,
    -0.5031972000433611,
    -0.2537257731973382,
    0.17387018442036684,
    0.042866086647402435,
    -0.031537759774840406,
    0.10721701103115869,
    -0.0066222697546203845,
    0.035922722007766576,
    0.1065150309776017,
    0.14896903731021927,
    -0.20548237870259475,
];
const LSTM_C: [f64; 4] = [0.9609351863865178, 0.16978518348782523, 0.7691941297622322, -0.2948687911227419];
const GRU: [f64; 12] = [
    0.8755664199715966,
    0.5384511578459718,
    0.6224139587079557,
    -0.33498906123884953,
    0.9602212707858541,
    0.6358063434441503,
    0.9530031462184061,
    -0.4333839527526009,
    0.9913703478173634,
    0.6595116344721887,
    0.9648414142067138,
    -0.43149643154965167,
];

#[test]
fn sequences_and_their_cells() -> Result<(), Error> {
    for device in ["cpu", "interpreter"] {
        with_default_device::<_, Error>(device, || {
            let Layer { x, h, c, weight, recurrent, biases: [bias, other] } = &layer(4);
            let found = x.lstm(h, c, weight, recurrent, Some(bias), Some(other));
            is(&found[0], &LSTM)?;
            is(&found[1], &LSTM[8..])?;
            is(&found[2], &LSTM_C)?;
            let step = x.at(0).lstm_cell(h, c, weight, recurrent, Some(bias), Some(other));
            is(&step[0], &LSTM[..4])?;
            let Layer { x, h, weight, recurrent, biases: [bias, other], .. } = &layer(3);
            let found = x.gru(h, weight, recurrent, Some(bias), Some(other));
            is(&found[0], &GRU)?;
            is(&found[1], &GRU[8..])?;
            is(&x.at(0).gru_cell(h, weight, recurrent, Some(bias), Some(other)), &GRU[..4])?;
            let Layer { x, h, weight, recurrent, biases: [bias, other], .. } = &layer(1);
            let found = x.rnn(h, weight, recurrent, Some(bias), Some(other));
            is(&found[0], &RNN)?;
            // The biases of this one add up.
            let both = bias + other;
            is(&x.at(0).rnn_cell(h, weight, recurrent, Some(&both), None), &RNN[..4])
        })
        .unwrap_or_else(|error| panic!("{device}: {error}"));
    }
    Ok(())
}

#[test]
fn gradients_go_through_time() -> Result<(), Error> {
    let Layer { x, h, c, weight, recurrent, .. } = layer(4);
    let lstm = |t: &[Tensor]| t[0].lstm(&t[1], &t[2], &t[3], &t[4], None, None)[0].clone();
    gradcheck(lstm, &[&x, &h, &c, &weight, &recurrent], GradcheckOptions::default())?;
    let Layer { x, h, weight, recurrent, .. } = layer(3);
    gradcheck(
        |t| t[0].gru(&t[1], &t[2], &t[3], None, None)[1].clone(),
        &[&x, &h, &weight, &recurrent],
        GradcheckOptions::default(),
    )
}

#[test]
fn long_sequences_are_their_steps() -> Result<(), Error> {
    const STEPS: i64 = 20;
    for device in ["cpu", "interpreter", "simt"] {
        with_default_device::<_, Error>(device, || {
            let x = waves(&[STEPS, 8, 4], 0.3).contiguous();
            let (h, c) = (waves(&[8, 8], 1.0).contiguous(), waves(&[8, 8], 2.0).contiguous());
            let (weight, recurrent) = (waves(&[4, 32], 0.5).contiguous(), waves(&[8, 32], 0.7).contiguous());
            tinyspec_core::realize_all(&[&x, &h, &c, &weight, &recurrent])?;
            let weights = waves(&[STEPS, 8, 8], 0.1);
            let found = x.lstm(&h, &c, &weight, &recurrent, None, None);
            let (mut state, mut shown) = ([h.clone(), c.clone()], vec![]);
            let mut losses = vec![];
            for step in 0..STEPS {
                state = x.at(step).lstm_cell(&state[0], &state[1], &weight, &recurrent, None, None);
                shown.extend(state[0].to_vec::<f64>()?);
                losses.push((&state[0] * weights.at(step)).sum(.., false));
            }
            is(&found[0], &shown)?;
            is(&found[1], &state[0].to_vec::<f64>()?)?;
            is(&found[2], &state[1].to_vec::<f64>()?)?;
            let wanted = [&x, &h, &c, &weight, &recurrent];
            let loss = losses[1..].iter().fold(losses[0].clone(), |sum, loss| sum + loss);
            let want = grad(&loss, &wanted)?;
            let found = x.lstm(&h, &c, &weight, &recurrent, None, None)[0].clone();
            let got = grad(&(found * &weights).sum(.., false), &wanted)?;
            for (got, want) in got.iter().zip(&want) {
                is(got, &want.to_vec::<f64>()?)?;
            }
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{device}: {error}"));
    }
    Ok(())
}

#[test]
fn stacks_of_many_tensors_lie_in_one_buffer() -> Result<(), Error> {
    for device in ["cpu", "interpreter", "simt"] {
        with_default_device::<_, Error>(device, || {
            let x = Tensor::arange(20 * 64).reshape([20, 64]).contiguous();
            x.realize()?;
            let rows: Vec<Tensor> = (0..20).map(|row| x.at(row).mul(2).contiguous()).collect();
            let stacked = Tensor::stack(&rows.iter().collect::<Vec<_>>(), 1);
            // Whoever reads the rows, or all of them, before and after, waits for the right kernels.
            let (sum, last) = (stacked.sum([1], false), &rows[19] + &rows[0]);
            tinyspec_core::realize_all(&[&stacked, &sum, &last, &rows[3]])?;
            let value = |row: i32, column: i32| 2 * (row * 64 + column);
            let all: Vec<i32> = (0..64).flat_map(|column| (0..20).map(move |row| value(row, column))).collect();
            assert_eq!(stacked.to_vec::<i32>()?, all);
            assert_eq!(sum.to_vec::<i32>()?, all.chunks(20).map(|row| row.iter().sum()).collect::<Vec<i32>>());
            assert_eq!(last.to_vec::<i32>()?, (0..64).map(|i| value(19, i) + value(0, i)).collect::<Vec<_>>());
            assert_eq!(rows[3].to_vec::<i32>()?, (0..64).map(|i| value(3, i)).collect::<Vec<_>>());
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{device}: {error}"));
    }
    Ok(())
}

/// Two layers both ways, of one-layer sequences: the second reads both ways of the first, beside each other.
#[test]
fn layers_and_ways_follow_each_other_as_pytorch_orders_them() -> Result<(), Error> {
    for device in ["cpu", "interpreter"] {
        with_default_device::<_, Error>(device, || {
            let (x, h, c) = (waves(&[3, 2, 2], 0.3), waves(&[4, 2, 3], 1.0), waves(&[4, 2, 3], 2.0));
            let inputs = [2, 2, 6, 6];
            let weights: Vec<Tensor> = (0..4)
                .flat_map(|row| {
                    let start = row as f64;
                    let shapes = [vec![inputs[row], 12], vec![3, 12], vec![12], vec![12]];
                    (0..).zip(shapes).map(move |(number, shape)| waves(&shape, start + f64::from(number) * 0.2))
                })
                .collect();
            let all: Vec<&Tensor> = weights.iter().collect();
            let found = x.lstm_layers(&h, &c, &all, true);
            let (mut below, mut last) = (x.clone(), [vec![], vec![]]);
            for layer in 0..2 {
                let mut sides = vec![];
                for way in 0..2 {
                    let row = layer * 2 + way;
                    let [weight, recurrent, bias, other] = all[row * 4..][..4] else { unreachable!("four of each") };
                    let input = if way == 1 { below.flip([0]) } else { below.clone() };
                    let one = input.lstm(h.at(row), c.at(row), weight, recurrent, Some(bias), Some(other));
                    sides.push(if way == 1 { one[0].flip([0]) } else { one[0].clone() });
                    last[0].extend(one[1].to_vec::<f64>()?);
                    last[1].extend(one[2].to_vec::<f64>()?);
                }
                below = Tensor::cat(&[&sides[0], &sides[1]], -1);
            }
            assert_eq!(found[0].sizes()?, [3, 2, 6]);
            is(&found[0], &below.to_vec::<f64>()?)?;
            is(&found[1], &last[0])?;
            is(&found[2], &last[1])?;
            // One layer one way is the sequence itself.
            let Layer { x, h, weight, recurrent, biases: [bias, other], .. } = &layer(3);
            let found = x.gru_layers(h.unsqueeze(0), &[weight, recurrent, bias, other], false);
            is(&found[0], &GRU)?;
            is(&found[1], &GRU[8..])?;
            let Layer { x, h, weight, recurrent, biases: [bias, other], .. } = &layer(1);
            is(&x.rnn_layers(h.unsqueeze(0), &[weight, recurrent, bias, other], false)[0], &RNN)
        })
        .unwrap_or_else(|error| panic!("{device}: {error}"));
    }
    let (x, h) = (waves(&[3, 2, 2], 0.3), waves(&[2, 2, 3], 1.0));
    let (weight, recurrent) = (waves(&[2, 3], 0.1), waves(&[3, 3], 0.2));
    gradcheck(
        |t| t[0].rnn_layers(&t[1], &[&t[2], &t[3], &t[2], &t[3]], true)[0].clone(),
        &[&x, &h, &weight, &recurrent],
        GradcheckOptions::default(),
    )?;
    let error =
        x.rnn_layers(&h, &[&weight, &recurrent, &weight], true)[0].clone().to_vec::<f64>().expect_err("refused");
    assert!(error.to_string().contains("rnn_layers: 3 weights for 2 layers and ways"), "{error}");
    Ok(())
}

/// Three layers both ways: each reads what its own draw leaves of the states of the one before, the first reads all.
#[test]
fn dropout_is_between_the_layers() -> Result<(), Error> {
    const P: f64 = 0.4;
    for device in ["cpu", "interpreter"] {
        with_default_device::<_, Error>(device, || {
            let key = Tensor::from_slice(&[0x1234_5678_9abc_def0u64], ());
            let (x, h, c) = (waves(&[3, 4, 6], 0.3), waves(&[6, 4, 3], 1.0), waves(&[6, 4, 3], 2.0));
            let lstm: Vec<Tensor> =
                (0..12).map(|number| waves(&[if number % 2 == 0 { 6 } else { 3 }, 12], number.into())).collect();
            let lstm: Vec<&Tensor> = lstm.iter().collect();
            let found = x.lstm_layers_with(&h, &c, &lstm, true, &key, P);
            let (mut below, mut last) = (x.clone(), vec![]);
            for layer in 0..3 {
                if layer > 0 {
                    let number = Tensor::from_slice(&[layer as u64], ());
                    let kept = Tensor::ones([3, 4, 6]).cast(DType::F64).dropout_with(number.threefry(&key), P);
                    let dropped = kept.eq(0.0).cast(DType::F64).sum(.., false).item::<f64>()?;
                    assert!((10.0..50.0).contains(&dropped), "{dropped} of 72");
                    below *= kept;
                }
                let rows = layer * 2..layer * 2 + 2;
                let one = below.lstm_layers(h.at(rows.clone()), c.at(rows), &lstm[layer as usize * 4..][..4], true);
                last.extend(one[1].to_vec::<f64>()?);
                below = one[0].clone();
            }
            is(&found[0], &below.to_vec::<f64>()?)?;
            is(&found[1], &last)?;
            // Nothing taken away is nothing done; all taken away leaves the states and the biases.
            let all = x.lstm_layers(&h, &c, &lstm, true);
            is(&x.lstm_layers_with(&h, &c, &lstm, true, &key, 0.0)[0], &all[0].to_vec::<f64>()?)?;
            let (w, u) = (waves(&[6, 6], 0.5), waves(&[6, 6], 0.7));
            let h = waves(&[2, 4, 6], 1.0);
            let none = x.rnn_layers_with(&h, &[&w, &u, &w, &u], false, &key, 1.0);
            let alone = Tensor::zeros([3, 4, 6]).cast(DType::F64).rnn(h.at(1), &w, &u, None, None);
            is(&none[0], &alone[0].to_vec::<f64>()?)?;
            let (w, u) = (waves(&[6, 18], 0.5), waves(&[6, 18], 0.7));
            let none = x.gru_layers_with(&h, &[&w, &u, &w, &u], false, &key, 1.0);
            let alone = Tensor::zeros([3, 4, 6]).cast(DType::F64).gru(h.at(1), &w, &u, None, None);
            is(&none[0], &alone[0].to_vec::<f64>()?)
        })
        .unwrap_or_else(|error| panic!("{device}: {error}"));
    }
    let key = Tensor::from_slice(&[7u64], ());
    let (x, h) = (waves(&[3, 2, 3], 0.3), waves(&[4, 2, 3], 1.0));
    let (weight, recurrent, wide) = (waves(&[3, 3], 0.1), waves(&[3, 3], 0.2), waves(&[6, 3], 0.3));
    gradcheck(
        |t| {
            t[0].rnn_layers_with(&t[1], &[&t[2], &t[3], &t[2], &t[3], &t[4], &t[3], &t[4], &t[3]], true, &key, 0.5)[0]
                .clone()
        },
        &[&x, &h, &weight, &recurrent, &wide],
        GradcheckOptions::default(),
    )?;
    let weights = [&weight, &recurrent, &weight, &recurrent];
    let refused = |key: &Tensor, dropout: f64| {
        let found = x.rnn_layers_with(h.at(0..2), &weights, false, key, dropout)[0].clone();
        found.to_vec::<f64>().expect_err("refused").to_string()
    };
    let error = refused(&key, 1.5);
    assert!(error.contains("rnn_layers_with: 1.5 is not a probability between 0 and 1"), "{error}");
    let error = refused(&Tensor::ones(()), 0.5);
    assert!(error.contains("rnn_layers_with: counter and key are u64, found f32"), "{error}");
    Ok(())
}

#[test]
fn weights_of_other_widths_are_refused() {
    let Layer { x, h, c, weight, recurrent, .. } = layer(3);
    let error = x.lstm(&h, &c, &weight, &recurrent, None, None)[0].clone().to_vec::<f64>().expect_err("refused");
    assert!(error.to_string().contains("lstm: weights of [2, 6] and [2, 6] for a state of [2, 2]"), "{error}");
}

/// Prints how long sequences take, the first time and later.
#[test]
#[ignore = "a measurement"]
fn times() -> Result<(), Error> {
    for (steps, width) in [(16, 128), (64, 128), (256, 128)] {
        let of = |shape: &[i64]| waves(shape, 0.3).cast(DType::F32).contiguous();
        let (x, h, c) = (of(&[steps, 16, 64]), of(&[16, width]), of(&[16, width]));
        let (weight, recurrent) = (of(&[64, 4 * width]) * 0.1, of(&[width, 4 * width]) * 0.1);
        let (weight, recurrent) = (weight.contiguous(), recurrent.contiguous());
        tinyspec_core::realize_all(&[&x, &h, &c, &weight, &recurrent])?;
        let mut times = [vec![], vec![]];
        for _ in 0..3 {
            let start = std::time::Instant::now();
            let shown = x.lstm(&h, &c, &weight, &recurrent, None, None)[0].clone();
            shown.realize()?;
            times[0].push(start.elapsed());
            let start = std::time::Instant::now();
            let shown = x.lstm(&h, &c, &weight, &recurrent, None, None)[0].clone();
            let gradients = tinyspec_core::grad(&shown.square().sum(.., false), &[&weight, &recurrent])?;
            tinyspec_core::realize_all(&gradients.iter().collect::<Vec<_>>())?;
            times[1].push(start.elapsed());
        }
        println!("{steps} steps of {width}: {:?}, with gradients {:?}", times[0], times[1]);
    }
    Ok(())
}

/// The states of one direction of a bidirectional layer: nothing uses the kernels of the other direction.
#[test]
fn one_way_of_two_is_part_of_the_whole() -> Result<(), Error> {
    let (x, h) = (waves(&[6, 3, 5], 0.3), waves(&[2, 3, 4], 1.0));
    let weights = [waves(&[5, 4], 0.5), waves(&[4, 4], 0.7), waves(&[5, 4], 0.9), waves(&[4, 4], 1.1)];
    for tensor in [&x, &h].into_iter().chain(&weights) {
        tensor.realize()?;
    }
    let states = || x.rnn_layers(&h, &weights.each_ref(), true)[0].clone();
    let all = states().to_vec::<f64>()?;
    for (half, start) in [(0..4, 0), (4..8, 4)] {
        let want: Vec<f64> = all.chunks(8).flat_map(|row| row[start..start + 4].to_vec()).collect();
        is(&states().at((.., .., half)), &want)?;
    }
    Ok(())
}
