//! Gradients of what was read in between: reading a value changes nothing.

use tinyspec_core::nn::{Adam, Optimizer};
use tinyspec_core::{Error, Function, Spec, Tensor, grad, grad_or_zeros, realize_all};
use tinyspec_ir::{DType, ErrorKind};

fn row(values: &[f32]) -> Tensor {
    Tensor::from_slice(values, [values.len() as i64])
}

#[test]
fn reading_an_intermediate_changes_no_gradient() -> Result<(), Error> {
    let x = row(&[0.0, 1.0, 2.0]);
    let y = x.square();
    assert!(format!("{y:?}").contains('4'));
    let loss = (&y + &x).sum(.., false);
    assert_eq!(grad(&loss, &[&x])?[0].to_vec::<f32>()?, [1.0, 3.0, 5.0]);
    // Of the loss itself, and of what was read on the way to it.
    assert_eq!(loss.item::<f32>()?, 8.0);
    let gradients = grad(&loss, &[&x, &y])?;
    assert_eq!(gradients[0].to_vec::<f32>()?, [1.0, 3.0, 5.0]);
    assert_eq!(gradients[1].to_vec::<f32>()?, [1.0; 3]);
    Ok(())
}

/// If each gradient were computed at its own read, each would take a program of its own.
#[test]
fn the_first_read_of_a_gradient_computes_those_beside_it() -> Result<(), Error> {
    let (x, w, b) = (row(&[1.0, 2.0]), row(&[3.0, -1.0]), row(&[0.5, 0.5]));
    let gradients = || grad(&(&x * &w + &b).square().sum(.., false), &[&x, &w, &b]);
    let by_norm = gradients()?;
    assert_eq!(by_norm[0].square().sum(.., false).item::<f32>()?, 450.0);
    assert!(by_norm.iter().all(Tensor::is_realized));
    assert_eq!(by_norm[1].to_vec::<f32>()?, [7.0, -6.0]);
    // A program that uses all of them, as a step does, materialises none. A gradient that was dropped is not computed.
    let together = gradients()?;
    let sum = together.iter().fold(row(&[0.0, 0.0]), |sum, gradient| sum + gradient);
    assert_eq!(sum.to_vec::<f32>()?, [35.0, -6.0]);
    assert!(!together.iter().any(Tensor::is_realized));
    let first = gradients()?.swap_remove(0);
    assert_eq!((&first * 2.0).to_vec::<f32>()?, [42.0, 6.0]);
    assert!(!first.is_realized());
    Ok(())
}

#[test]
fn gradients_flow_through_several_readings() -> Result<(), Error> {
    let x = row(&[1.0, 2.0]);
    let w = row(&[3.0, -1.0]);
    let z = {
        let y = (&x * &w).realize()?.clone();
        (&y * &y).realize()?.clone()
    };
    // y is gone: it is computed again.
    let gradients = grad(&z.sum(.., false), &[&x, &w])?;
    assert_eq!(gradients[0].to_vec::<f32>()?, [18.0, 4.0]);
    assert_eq!(gradients[1].to_vec::<f32>()?, [6.0, -8.0]);
    // One of several that were computed together.
    let (a, b) = (x.exp(), &w * 2.0);
    realize_all(&[&a, &b])?;
    let gradients = grad_or_zeros(&(b * 5.0).sum(.., false), &[&x, &w])?;
    assert_eq!(gradients[0].to_vec::<f32>()?, [0.0; 2]);
    assert_eq!(gradients[1].to_vec::<f32>()?, [10.0; 2]);
    Ok(())
}

#[test]
fn a_value_that_is_gone_is_named() -> Result<(), Error> {
    let (x, factor) = (row(&[1.0, 2.0]), row(&[5.0, 6.0]));
    // Data that were there before the last run may be weights: they are not kept.
    x.exp().realize()?;
    let y = (&x * factor).realize()?.clone();
    let error = grad(&y.sum(.., false), &[&x]).expect_err("the factor was dropped");
    assert_eq!(error.kind(), Some(ErrorKind::Gradient), "{error}");
    assert!(error.to_string().contains("gone"), "{error}");
    // Its value is needed by no derivative here.
    let z = (&x + row(&[5.0, 6.0])).realize()?.clone();
    assert_eq!(grad(&z.sum(.., false), &[&x])?[0].to_vec::<f32>()?, [1.0; 2]);
    Ok(())
}

#[test]
fn what_was_read_after_its_result_stands_for_what_it_was_made_of() -> Result<(), Error> {
    let w = row(&[3.0, -1.0]);
    // A float and an integer: the derivative needs both, and nothing that they were made of.
    let (scale, place) = {
        let batch = row(&[1.0, 2.0]);
        (&batch * 4.0, batch.argmax(0))
    };
    let result = (&w * &scale).square() * &place;
    assert_eq!(result.to_vec::<f32>()?, [144.0, 64.0]);
    assert_eq!(scale.to_vec::<f32>()?, [4.0, 8.0]);
    assert_eq!(place.to_vec::<i32>()?, [1]);
    let gradients = grad(&result.sum(.., false), &[&w, &scale])?;
    assert_eq!(gradients[0].to_vec::<f32>()?, [96.0, -128.0]);
    assert_eq!(gradients[1].to_vec::<f32>()?, [72.0, 16.0]);
    Ok(())
}

#[test]
fn what_a_caller_cannot_keep_is_kept() -> Result<(), Error> {
    let scaled = Function::trace(&[Spec::new(DType::F32, [4]), Spec::new(DType::F32, ())], |inputs| {
        vec![&inputs[0] * &inputs[1]]
    })?;
    let w = row(&[1.0, 2.0, 3.0, 4.0]);
    let taken = w.gt(2.5);
    type Loss<'a> = Box<dyn Fn() -> Tensor + 'a>;
    let losses: Vec<(&str, Loss)> = vec![
        ("a number", Box::new(|| w.square() * Tensor::scalar(0.5f32))),
        ("a number for a function", Box::new(|| scaled.call(&[&w, &Tensor::scalar(0.5f32)]).remove(0).square())),
        ("a mask of random values", Box::new(|| w.dropout(0.5).square())),
        ("random values", Box::new(|| &w * w.rand_like())),
        ("positions of a mask", Box::new(|| w.masked_select(&taken).square())),
        ("places of a mask", Box::new(|| w.at(&taken).square())),
    ];
    for (name, loss) in losses {
        let loss = loss().sum(.., false);
        let unread = grad(&loss, &[&w])?.remove(0).to_vec::<f32>()?;
        loss.item::<f32>()?;
        let read = grad(&loss, &[&w]).unwrap_or_else(|error| panic!("{name}: {error}")).remove(0).to_vec::<f32>()?;
        assert_eq!(read, unread, "{name}");
        // The values on the way are read too.
        let (a, b) = (loss.exp(), loss.square());
        realize_all(&[&a, &b])?;
        assert_eq!(grad(&(a * 0.0 + &loss + b * 0.0), &[&w])?.remove(0).to_vec::<f32>()?, unread, "{name}");
    }
    Ok(())
}

#[test]
fn detached_values_are_data() -> Result<(), Error> {
    let x = row(&[1.0, 2.0]);
    let fixed = x.square().detach().realize()?.clone();
    let loss = (&fixed * &x).sum(.., false);
    assert_eq!(grad(&loss, &[&x])?[0].to_vec::<f32>()?, [1.0, 4.0]);
    // Also what is made of them alone.
    let mut state = row(&[0.0, 0.0]);
    state.assign(&(x.detach().square() * 2.0));
    state.realize()?;
    let loss = (&state * &x).sum(.., false);
    assert_eq!(grad(&loss, &[&x])?[0].to_vec::<f32>()?, [2.0, 8.0]);
    Ok(())
}

#[test]
fn reading_an_assigned_state_changes_no_gradient() -> Result<(), Error> {
    let x = row(&[1.0, 2.0, 3.0]);
    for is_read in [false, true] {
        let mut whole = row(&[0.0; 3]);
        whole.assign(&x.square());
        let mut part = &x * &x;
        part.set(0, 0.5);
        let mut chosen = &x * &x;
        chosen.set(x.ge(2.5), &(&x * 2.0));
        let mut computed = x.square().realize()?.clone();
        computed.set(1, 7.0);
        if is_read {
            realize_all(&[&whole, &part, &chosen, &computed])?;
        }
        for (state, want) in [
            (&whole, [3.0, 12.0, 27.0]),
            (&part, [0.5, 12.0, 27.0]),
            (&chosen, [3.0, 12.0, 12.0]),
            (&computed, [3.0, 7.0, 27.0]),
        ] {
            let loss = (state * &x).sum(.., false);
            assert_eq!(grad(&loss, &[&x])?[0].to_vec::<f32>()?, want, "read: {is_read}");
        }
    }
    Ok(())
}

#[test]
fn no_gradient_flows_through_an_optimiser() -> Result<(), Error> {
    // x is older than all that the steps make.
    let x = row(&[1.0, 2.0]);
    for is_read in [false, true] {
        let mut w = row(&[3.0, -1.0]);
        let mut optimiser = Adam::new(0.1);
        for _ in 0..if is_read { 100 } else { 3 } {
            let loss = (&w * &x).square().sum(.., false);
            let gradients = grad(&loss, &[&w])?;
            optimiser.step(&mut [&mut w], &gradients)?;
            if is_read {
                w.realize()?;
            }
        }
        let found = grad(&(&w * &x).sum(.., false), &[&x])?[0].to_vec::<f32>()?;
        assert_eq!(found, w.to_vec::<f32>()?, "read: {is_read}");
    }
    Ok(())
}

#[test]
fn functions_open_too() -> Result<(), Error> {
    let cube = Function::trace(&[Spec::new(DType::F32, [2])], |inputs| vec![&inputs[0] * &inputs[0] * &inputs[0]])?;
    let x = row(&[1.0, 2.0]);
    let y = cube.call(&[&x]).remove(0);
    y.realize()?;
    assert_eq!(grad(&y.sum(.., false), &[&x])?[0].to_vec::<f32>()?, [3.0, 12.0]);
    Ok(())
}

/// Bytes of this process in memory.
fn resident() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    text.split_whitespace().nth(1)?.parse::<usize>().ok().map(|pages| pages * 4096)
}

#[test]
fn a_long_lived_loop_needs_no_more_memory() -> Result<(), Error> {
    let (rate, start) = (row(&[0.5; 1 << 16]), row(&[1.0; 1 << 16]));
    let mut x = start.clone();
    let step = |x: &Tensor| -> Result<Tensor, Error> { Ok((x * &rate + 1.0).realize()?.clone()) };
    for _ in 0..100 {
        x = step(&x)?;
    }
    let Some(before) = resident() else { return Ok(()) };
    for _ in 0..2000 {
        x = step(&x)?;
    }
    let grown = resident().unwrap_or(before).saturating_sub(before);
    // 500 MB, if each step kept the value before; other tests run beside this one.
    assert!(grown < 128 << 20, "{grown} bytes more after 2000 steps");
    assert_eq!(x.to_vec::<f32>()?[..2], [2.0; 2]);
    // What is too far back is refused, not forgotten.
    let error = grad(&x.sum(.., false), &[&start]).expect_err("2100 steps");
    assert!(error.to_string().contains("steps"), "{error}");
    Ok(())
}

/// Numbers that change give each run a program of its own, which the states that it computes along must not keep for ever.
#[test]
fn states_of_runs_that_met_changing_numbers_need_no_more_memory() -> Result<(), Error> {
    let weight = row(&[0.5; 16]);
    let mut state = row(&[1.0; 16]);
    let mut run = |number: usize| -> Result<(), Error> {
        // Many nodes, and little to compile.
        let inner = (0..6000).fold(&state * &weight, |inner, _| inner.reshape([4, 4]).permute([1, 0]).reshape([16]));
        state = &state * 0.5 + &inner * (1.0 + number as f32);
        inner.sum(.., false).realize()?;
        Ok(())
    };
    (0..120).try_for_each(&mut run)?;
    let Some(before) = resident() else { return Ok(()) };
    (120..220).try_for_each(&mut run)?;
    let grown = resident().unwrap_or(before).saturating_sub(before);
    // Other tests run beside this one.
    assert!(grown < 128 << 20, "{grown} bytes more after 100 runs");
    Ok(())
}

/// A decaying rate and the batches of an epoch: what the losses were made of is one program.
#[test]
fn losses_that_meet_changing_numbers_and_batches_share_a_program() -> Result<(), Error> {
    let values: Vec<f32> = (0..512).map(|value| value as f32 / 512.0).collect();
    let (data, weight) = (row(&values), row(&[0.5; 16]));
    let loss = |step: usize| -> Result<Tensor, Error> {
        let batch = data.at(step..step + 16);
        let start = (&batch * &weight).square() * (1.0 + step as f32);
        // Many nodes, and little to compile.
        let inner = (0..6000).fold(start, |inner, _| inner.reshape([4, 4]).permute([1, 0]).reshape([16]));
        Ok(inner.sum(.., false).realize()?.clone())
    };
    let mut losses = (0..20).map(loss).collect::<Result<Vec<_>, Error>>()?;
    let Some(before) = resident() else { return Ok(()) };
    losses.extend((20..120).map(loss).collect::<Result<Vec<_>, Error>>()?);
    let grown = resident().unwrap_or(before).saturating_sub(before);
    // 300 MB with a program each; other tests run beside this one.
    assert!(grown < 128 << 20, "{grown} bytes more after 100 losses");
    for step in [0, 60, 119] {
        let want = (0..16).map(|place| (1.0 + step as f32) * values[step + place].powi(2));
        let got = grad(&losses[step], &[&weight])?[0].to_vec::<f32>()?;
        assert!(got.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-3), "step {step}: {got:?}");
        let want = (0..512).map(|at| {
            let inside = (step..step + 16).contains(&at);
            if inside { (1.0 + step as f32) * 0.5 * values[at] } else { 0.0 }
        });
        let got = grad(&losses[step], &[&data])?[0].to_vec::<f32>()?;
        assert!(got.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-3), "step {step}: {got:?}");
    }
    Ok(())
}

#[test]
fn a_short_chain_of_readings_is_followed() -> Result<(), Error> {
    let start = row(&[1.0]);
    let mut x = start.clone();
    for _ in 0..20 {
        x = (&x * 2.0).realize()?.clone();
    }
    assert_eq!(grad(&x.sum(.., false), &[&start])?[0].to_vec::<f32>()?, [1048576.0]);
    // Each from the two before it: the paths are too many to follow one by one.
    let (mut a, mut b) = (start.clone(), (&start * 1.0).realize()?.clone());
    for _ in 0..40 {
        (a, b) = (b.clone(), ((&a + &b) * 0.5).realize()?.clone());
    }
    let gradient = grad(&b.sum(.., false), &[&start])?[0].item::<f32>()?;
    assert!((gradient - 1.0).abs() < 1e-6, "{gradient}");
    Ok(())
}

/// The loss of a batch that is a local variable here.
fn local_loss(w: &Tensor, scale: f32) -> Tensor {
    let batch = row(&[1.0, 2.0, 3.0]) * scale;
    let batch = batch.realize().expect("a batch").clone();
    (w * &batch).square().sum(.., false)
}

#[test]
fn a_loss_that_was_read_keeps_its_batch_until_its_gradient() -> Result<(), Error> {
    let w = row(&[1.0, 1.0, 1.0]);
    let loss = local_loss(&w, 1.0);
    assert_eq!(loss.item::<f32>()?, 14.0);
    assert_eq!(grad(&loss, &[&w])?[0].to_vec::<f32>()?, [2.0, 8.0, 18.0]);
    // The gradient had what it needed of the batch, which is computed again.
    assert_eq!(grad(&loss, &[&w])?[0].to_vec::<f32>()?, [2.0, 8.0, 18.0]);
    // A sum of losses each of which was read.
    let losses: Vec<Tensor> = (0..4).map(|_| local_loss(&w, 1.0)).collect();
    losses.iter().try_for_each(|loss| loss.item::<f32>().map(drop))?;
    let total = losses.iter().fold(Tensor::scalar(0.0f32), |total, loss| total + loss);
    assert_eq!(grad(&total, &[&w])?[0].to_vec::<f32>()?, [8.0, 32.0, 72.0]);
    // After the gradient was made, in the order of a training.
    let loss = local_loss(&w, 1.0);
    let gradient = grad(&loss, &[&w])?.remove(0);
    loss.item::<f32>()?;
    assert_eq!(gradient.to_vec::<f32>()?, [2.0, 8.0, 18.0]);
    Ok(())
}

#[test]
fn losses_that_live_on_keep_few_batches() -> Result<(), Error> {
    let w = row(&[1.0; LARGE]);
    let losses: Vec<Tensor> = (0..100).map(|_| large_loss(&w)).collect::<Result<_, Error>>()?;
    let kept = losses.iter().filter(|loss| grad(loss, &[&w]).is_ok()).count();
    assert!((16..=64).contains(&kept), "{kept}");
    assert!(grad(&losses[0], &[&w]).is_err());
    Ok(())
}

/// Numbers of a batch of 1 MiB.
const LARGE: usize = 1 << 18;

/// A loss that was read, and whose batch was dropped.
fn large_loss(w: &Tensor) -> Result<Tensor, Error> {
    let loss = (w * row(&[2.0; LARGE])).square().sum(.., false);
    loss.item::<f32>()?;
    Ok(loss)
}

/// An episode: what was observed is a local variable, and what was made of it is read before there is a loss.
#[test]
fn new_data_are_kept_for_what_was_made_of_them() -> Result<(), Error> {
    let w = row(&[0.1, -0.2, 0.3]);
    let episode = |is_read: bool| -> Result<Vec<f32>, Error> {
        let mut scores = vec![];
        for step in 0..100 {
            let observed = row(&[step as f32 * 0.01, 1.0, -0.5]);
            let chances = (&w * &observed).softmax(0);
            if is_read {
                chances.to_vec::<f32>()?;
            }
            let score = chances.at(step % 3).log();
            if is_read {
                score.item::<f32>()?;
            }
            scores.push(score);
        }
        let loss = scores.iter().fold(Tensor::scalar(0.0f32), |sum, score| sum + score);
        grad(&loss, &[&w])?[0].to_vec::<f32>()
    };
    let (got, want) = (episode(true)?, episode(false)?);
    assert!(got.iter().zip(&want).all(|(got, want)| (got - want).abs() < 1e-4), "{got:?} for {want:?}");
    Ok(())
}

/// The same number in two results of a run, of which the first was made later.
#[test]
fn a_number_may_be_met_first_where_it_was_written_last() -> Result<(), Error> {
    let (w, mut seen) = (row(&[1.0, 2.0]), Tensor::scalar(0.0f32));
    for step in 0..8 {
        let rate = 1.0 / (1.0 + step as f32);
        let loss = (&w * rate).square().sum(.., false);
        seen = &seen + rate;
        realize_all(&[&seen, &loss])?;
        let got = grad(&loss, &[&w])?[0].to_vec::<f32>()?;
        let want = [1.0f32, 2.0].map(|w| 2.0 * w * rate * rate);
        assert!(got.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-5), "step {step}: {got:?}");
    }
    Ok(())
}

#[test]
fn losses_of_threads_that_have_ended_keep_few_batches() -> Result<(), Error> {
    let w = row(&[1.0; LARGE]);
    let one = || std::thread::scope(|scope| scope.spawn(|| large_loss(&w)).join().expect("a step"));
    let losses = (0..100).map(|_| one()).collect::<Result<Vec<Tensor>, Error>>()?;
    let kept = losses.iter().filter(|loss| grad(loss, &[&w]).is_ok()).count();
    assert!(kept <= 64, "{kept}");
    assert!(grad(&losses[0], &[&w]).is_err());
    assert_eq!(grad(&one()?, &[&w])?[0].to_vec::<f32>()?, [8.0; LARGE]);
    Ok(())
}

#[test]
fn what_is_older_than_a_weight_is_data_to_its_gradient() -> Result<(), Error> {
    let (x, three) = (row(&[-1.0, 2.0, 3.0]), Tensor::scalar(3.0f32));
    // Lazy, one of data and one of constants.
    let (scaled, power) = (&x * 2.0, &three - 1.0);
    let mut w = row(&[1.0, -2.0, 0.5]);
    for step in 0..4 {
        let v = &w * 1.0;
        let loss = (&v * &scaled + v.pow(&power)).sum(.., false);
        let gradients = grad(&loss, &[&v, &w])?;
        // The older one of the two decides what is data.
        let mean = grad(&gradients[1].square().mean(.., false), &[&w])?.remove(0);
        w = &v - &gradients[0] * 0.25 + &mean * 0.0;
        assert!(!w.is_realized(), "{step}");
    }
    // v - (2 x + 2 v) / 4, four times.
    let want: Vec<f32> = [(-1.0f32, 1.0f32), (2.0, -2.0), (3.0, 0.5)]
        .map(|(x, w)| (0..4).fold(w, |w, _| w - 0.25 * (2.0 * x + 2.0 * w)))
        .to_vec();
    assert_eq!(w.to_vec::<f32>()?, want);
    Ok(())
}

#[test]
fn histories_behind_a_detach_are_of_no_interest() -> Result<(), Error> {
    let w = row(&[1.0, -2.0]);
    let mut average = Tensor::scalar(1.0f32);
    for step in 0..150 {
        let loss = (&w * (step % 3 + 1) as f32).square().sum(.., false);
        average = &average * 0.5 + &loss * 0.5;
        let gradient = grad(&(&loss / average.detach()), &[&w])?.remove(0);
        realize_all(&[&loss, &average])?;
        let scale = ((step % 3 + 1) as f32).powi(2) / average.item::<f32>()?;
        for (got, w) in gradient.to_vec::<f32>()?.into_iter().zip([1.0, -2.0]) {
            assert!((got - 2.0 * w * scale).abs() < 1e-4, "step {step}: {got}");
        }
    }
    Ok(())
}

/// Backpropagation through time in segments: the program drops the state that a segment began with.
#[test]
fn a_detached_state_is_kept_for_what_was_made_of_it() -> Result<(), Error> {
    let train = |is_read: bool, is_detached_read: bool| -> Result<Vec<f32>, Error> {
        let mut w = row(&[0.3, -0.2, 0.7]);
        let mut state = Tensor::zeros([3]);
        for _ in 0..12 {
            for step in 0..8 {
                state = (&state * &w + step as f32 * 0.1).tanh();
                if is_read {
                    state.realize()?;
                }
            }
            let loss = (&state - 0.5).square().sum(.., false);
            if is_read {
                loss.item::<f32>()?;
            }
            let gradient = grad(&loss, &[&w])?.remove(0);
            w = (&w - gradient * 0.1).detach();
            w.realize()?;
            state = state.detach();
            if is_detached_read {
                state.realize()?;
            }
        }
        Ok([w.to_vec::<f32>()?, state.to_vec::<f32>()?].concat())
    };
    let want = train(false, false)?;
    for (is_read, is_detached_read) in [(true, false), (true, true), (false, true)] {
        let got = train(is_read, is_detached_read)?;
        let is_close = got.iter().zip(&want).all(|(got, want)| (got - want).abs() < 1e-5);
        assert!(is_close, "{is_read} {is_detached_read}: {got:?} for {want:?}");
    }
    Ok(())
}

/// A tensor may be reached behind a detach and through a history at once, in either order.
#[test]
fn a_detach_hides_no_other_path() -> Result<(), Error> {
    let w = row(&[1.0, 3.0]);
    let doubled = (&w * 2.0).realize()?.clone();
    let squares = doubled.square().sum(.., false).realize()?.clone();
    let sum = doubled.detach().sum(.., false);
    // 8 (4 w^2) -> 8 * 8 w.
    for loss in [&sum * &squares, &squares * &sum] {
        assert_eq!(grad(&loss, &[&w])?[0].to_vec::<f32>()?, [64.0, 192.0]);
    }
    // Asked for itself: 8 * 2 d.
    for loss in [&sum * &squares, &squares * &sum] {
        assert_eq!(grad(&loss, &[&doubled])?[0].to_vec::<f32>()?, [32.0, 96.0]);
    }
    // Lazy, and behind the detach only in one of two histories; the tensors in between are gone.
    let history = || -> Result<[Tensor; 2], Error> {
        let tripled = (&w * 3.0).realize()?.clone();
        let cubes = (&tripled * &w * &w).realize()?.clone();
        let product = (&tripled * cubes.detach()).sum(.., false);
        realize_all(&[&product])?;
        let plain = (&cubes * 2.0).sum(.., false);
        plain.item::<f32>()?;
        Ok([product, plain])
    };
    for order in [[0, 1], [1, 0]] {
        let all = history()?;
        let loss = &all[order[0]] + &all[order[1]];
        // 3 * 3 w^3 + 18 w^2.
        assert_eq!(grad(&loss, &[&w])?[0].to_vec::<f32>()?, [27.0, 405.0]);
    }
    Ok(())
}

/// Two equal losses are computed once, and each of them keeps its batch.
#[test]
fn equal_losses_keep_their_batches() -> Result<(), Error> {
    let w = row(&[1.0, 1.0, 1.0]);
    let losses = || -> Result<[Tensor; 2], Error> {
        let batch = row(&[1.0, 2.0, 3.0]).realize()?.clone();
        let losses = [(); 2].map(|()| (&w * &batch).square().sum(.., false));
        realize_all(&[&losses[0], &losses[1]])?;
        Ok(losses)
    };
    for loss in losses()? {
        assert_eq!(grad(&loss, &[&w])?[0].to_vec::<f32>()?, [2.0, 8.0, 18.0]);
    }
    Ok(())
}

/// A number that has become an input is a new one in the program of a gradient, younger than what it stands in.
#[test]
fn a_number_may_be_younger_than_what_was_made_of_it() -> Result<(), Error> {
    for step in 0..12 {
        let c = 0.1 + 0.01 * f64::from(step);
        let (a, b) = (Tensor::from_slice(&[0.2f64, 0.9, -0.4], [3]), Tensor::from_slice(&[0.5f64, -0.3, -0.1], [3]));
        let v = a.maximum(&b + c);
        let loss = v.square().sum(.., false);
        loss.item::<f64>()?;
        let first = grad(&loss, &[&b])?.remove(0);
        realize_all(&[&first, &v])?;
        let second = grad(&(&v * &a).tanh().sum(.., false), &[&b])?.remove(0).to_vec::<f64>()?;
        for (found, (a, b)) in second.iter().zip([(0.2f64, 0.5f64), (0.9, -0.3), (-0.4, -0.1)]) {
            let tanh = ((b + c) * a).tanh();
            let expected = if b + c > a { (1.0 - tanh * tanh) * a } else { 0.0 };
            assert!((found - expected).abs() < 1e-12, "step {step}: {found} rather than {expected}");
        }
    }
    Ok(())
}

/// A part keeps no memory of the whole tensor, and is no run.
#[test]
fn parts_of_a_state_that_was_overwritten_are_computed_again() -> Result<(), Error> {
    let gradient = |steps: usize, is_read: bool| {
        let w = row(&[0.3, -0.2]);
        let (mut x, mut log) = (w.clone(), Tensor::zeros([64, 2]));
        for step in 0..steps {
            log.set(step, 0.7f32);
            x = x.tanh() + &w + log.at(step);
            if is_read {
                log.to_vec::<f32>()?;
            }
        }
        grad(&x.sum(.., false), &[&w])?[0].to_vec::<f32>()
    };
    for steps in [3, 12, 60] {
        let (found, expected) = (gradient(steps, true)?, gradient(steps, false)?);
        let is_close = found.iter().zip(&expected).all(|(found, expected)| (found - expected).abs() < 1e-4);
        assert!(is_close, "{steps} steps: {found:?} rather than {expected:?}");
    }
    Ok(())
}

/// An action is drawn first, and the probability of the action is taken after that.
#[test]
fn data_last_for_what_is_made_after_a_read() -> Result<(), Error> {
    let gradient = |reads: bool| -> Result<Vec<f32>, Error> {
        let w = row(&[0.3, -0.2, 0.1]);
        let mut chosen = vec![];
        for step in 0..40u8 {
            let state = row(&[0.1, 0.2, f32::from(step) * 0.01]);
            let logs = (&w * state).log_softmax(0);
            if reads {
                logs.exp().to_vec::<f32>()?;
            }
            chosen.push(logs.at(usize::from(step % 3)));
        }
        let loss = Tensor::stack(&chosen.iter().collect::<Vec<_>>(), 0).mean(.., false);
        grad(&loss, &[&w])?[0].to_vec()
    };
    let (found, expected) = (gradient(true)?, gradient(false)?);
    let is_close = found.iter().zip(&expected).all(|(found, expected)| (found - expected).abs() < 1e-6);
    assert!(is_close, "{found:?} rather than {expected:?}");
    Ok(())
}
