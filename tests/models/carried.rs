//! States that are carried from step to step and never read themselves, while something else of each step is.

use tinyspec::prelude::*;
use tinyspec::profile::counters;
use tinyspec::{grad, realize_all, set_seed};

/// A step: new states of old ones, and what is read.
type Step = fn(&Batch, &mut [Tensor]) -> Result<Tensor>;

struct Batch {
    x: Tensor,
    y: Tensor,
}

fn gradient(loss: &Tensor, weight: &Tensor) -> Result<Tensor> {
    Ok(grad(loss, &[weight])?.remove(0))
}

fn assert_near(a: &[f32], b: &[f32], tolerance: f32) {
    assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < tolerance), "{a:?} {b:?}");
}

const STEPS: [(&str, Step); 8] = [
    ("a running mean", |_, states| {
        let x = Tensor::randn([32, 8]);
        states[0] = &states[0] * 0.9 + x.mean(0, false) * 0.1;
        Ok((&x - &states[0]).square().mean(.., false))
    }),
    ("a weight", |Batch { x, y }, states| {
        let loss = (x.matmul(&states[1]).tanh() - y).square().mean(.., false);
        states[1] = &states[1] - gradient(&loss, &states[1])? * 0.05;
        Ok(loss)
    }),
    ("a weight and its average", |Batch { x, y }, states| {
        let loss = (x.matmul(&states[1]) - x.matmul(&states[2]).detach() * 0.5 - y).square().mean(.., false);
        states[1] = &states[1] - gradient(&loss, &states[1])? * 0.05;
        states[2] = &states[2] * 0.99 + &states[1] * 0.01;
        Ok(loss)
    }),
    ("a recurrent state", |Batch { x, .. }, states| {
        states[3] = (x + &states[3]).tanh() * 0.5;
        Ok(states[3].mean(.., false))
    }),
    ("a fixed point, of which only the distance to the last one is read", |Batch { x, .. }, states| {
        let next = (x + &states[3] * 0.5).tanh();
        let distance = (&next - &states[3]).abs().max(.., false);
        states[3] = next;
        Ok(distance)
    }),
    ("a state of constants, read in part", |_, states| {
        states[2] = &states[2] * 0.9 + 0.1;
        Ok(states[2].at(3).sum(.., false))
    }),
    ("a state and one that is equal", |Batch { x, .. }, states| {
        let next = |state: &Tensor| (x + state * 0.5).tanh();
        let shown = next(&states[3]).mean(0, false);
        (states[0], states[3]) = (shown, next(&states[3]));
        states[2] = (&states[1] * 0.9 + 0.1).sin();
        states[1] = (&states[1] * 0.9 + 0.1).sin();
        Ok(x.mean(.., false))
    }),
    ("a recurrent state that gradients do not follow", |Batch { x, y }, states| {
        let hidden = (x + &states[3] * states[1].reshape([1, 8])).tanh();
        let loss = (hidden.sum(1, true) - y).square().mean(.., false);
        states[1] = &states[1] - gradient(&loss, &states[1])? * 0.05;
        states[3] = hidden.detach();
        Ok(loss)
    }),
];

/// Which threads a step runs in.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Threads {
    /// That of the loop.
    One,
    /// A new one makes what that of the loop reads.
    Making,
    /// A new one makes and reads.
    Reading,
}

/// What is read in each step, and how many plans the last half of the steps makes.
fn run(step: Step, are_read: bool, threads: Threads) -> Result<(Vec<f32>, u64)> {
    const COUNT: usize = 24;
    set_seed(7);
    let batch = Batch { x: Tensor::randn([32, 8]), y: Tensor::randn([32, 1]) };
    let mut states = [[8, 1], [8, 1], [8, 1], [32, 8]].map(|shape| Tensor::zeros(shape));
    states[0] = Tensor::zeros([8]);
    realize_all(&[&batch.x, &batch.y])?;
    let (mut read, mut before) = (vec![], 0);
    for number in 0..COUNT {
        if number == COUNT / 2 {
            before = counters().plans;
        }
        let make = |states: &mut [Tensor]| -> Result<Tensor> {
            let value = step(&batch, states)?;
            if threads == Threads::Reading {
                value.realize()?;
            }
            Ok(value)
        };
        let value = match threads {
            Threads::One => make(&mut states),
            Threads::Making | Threads::Reading => {
                // The loop holds the old states until the thread has ended.
                let mut new = states.clone();
                let value = std::thread::scope(|scope| scope.spawn(|| make(&mut new)).join().expect("a step"));
                states = new;
                value
            }
        };
        read.push(value?.item::<f32>()?);
        if are_read {
            realize_all(&states.each_ref())?;
        }
    }
    Ok((read, counters().plans - before))
}

#[test]
fn a_state_that_is_never_read_costs_the_same_each_step() -> Result<()> {
    let _alone = crate::alone();
    for (name, step) in STEPS {
        let (want, _) = run(step, true, Threads::One)?;
        for threads in [Threads::One, Threads::Making, Threads::Reading] {
            let (got, plans) = run(step, false, threads)?;
            assert_eq!(plans, 0, "{name}, {threads:?}");
            for (number, (got, want)) in got.iter().zip(&want).enumerate() {
                let is_near = (got - want).abs() <= 1e-5 * (1.0 + want.abs());
                assert!(is_near, "{name}, {threads:?}, step {number}: {got} instead of {want}");
            }
        }
    }
    Ok(())
}

/// Steps between two reads that make their searches long: through what else each step is made of, or through thousands of nodes.
#[test]
fn states_that_are_read_seldom_cost_the_same_each_time() -> Result<()> {
    const READS: usize = 10;
    let _alone = crate::alone();
    let momentum = |steps: usize, layers: usize| -> Result<Vec<u64>> {
        set_seed(5);
        let start = |scale: f32| -> Result<Tensor> { (Tensor::randn([8, 8]) * scale).realize().cloned() };
        let (x, y) = (start(1.0)?, start(1.0)?);
        let mut weights = (0..layers).map(|_| start(0.3)).collect::<Result<Vec<_>>>()?;
        let mut moments: Vec<Tensor> = weights.iter().map(Tensor::zeros_like).collect();
        let mut plans = vec![];
        for step in 1..=steps * READS {
            let value = weights.iter().fold(x.clone(), |value, weight| value.matmul(weight).tanh());
            let loss = (value - &y).square().mean(.., false);
            let gradients = grad(&loss, &weights.iter().collect::<Vec<_>>())?;
            for ((weight, moment), gradient) in weights.iter_mut().zip(&mut moments).zip(&gradients) {
                *moment = &*moment * 0.9 + gradient;
                *weight = &*weight - &*moment * 0.1;
            }
            // The gradients are still held.
            if step % steps == 0 {
                loss.item::<f32>()?;
                plans.push(counters().plans);
            }
        }
        Ok(plans)
    };
    let recurrent = |steps: usize| -> Result<Vec<u64>> {
        set_seed(5);
        let x = Tensor::randn([4, 4]).realize()?.clone();
        let (mut hidden, mut average) = (Tensor::zeros([4, 4]), Tensor::zeros([4, 4]));
        let mut plans = vec![];
        for step in 1..=steps * READS {
            let inner = (0..20).fold(hidden.clone(), |inner, _| (inner.matmul(&x) + &x * 0.1).tanh());
            hidden = &hidden * 0.5 + &inner * 0.3;
            average = &average * 0.9 + &hidden * 0.1;
            if step % steps == 0 {
                inner.sum(.., false).item::<f32>()?;
                plans.push(counters().plans);
            }
        }
        Ok(plans)
    };
    for plans in
        [momentum(16, 2)?, momentum(20, 2)?, momentum(30, 2)?, momentum(12, 4)?, recurrent(10)?, recurrent(40)?]
    {
        assert_eq!(plans[READS / 2], plans[READS - 1], "{plans:?}");
    }
    Ok(())
}

/// A thread for each step makes a state and its average; only the average is read, and not in each step.
#[test]
fn a_state_below_another_is_computed_with_it() -> Result<()> {
    let _alone = crate::alone();
    for every in [1, 2, 7] {
        let (mut state, mut average) = (Tensor::zeros([8]), Tensor::zeros([8]));
        let mut plans = vec![];
        for step in 0..84 {
            let make = || {
                let next = (&state * 0.9 + 0.1).tanh();
                (next.clone(), &average * 0.9 + &next * 0.1)
            };
            (state, average) = std::thread::scope(|scope| scope.spawn(make).join().expect("a step"));
            if step % every == 0 {
                average.mean(.., false).item::<f32>()?;
                plans.push(counters().plans);
            }
        }
        assert_eq!(plans[plans.len() / 2], plans[plans.len() - 1], "read every {every}: {plans:?}");
    }
    Ok(())
}

/// A value that a program makes before a loop, and never reads itself, is computed once, not in each step.
#[test]
fn what_a_loop_needs_again_is_computed_once() -> Result<()> {
    let _alone = crate::alone();
    set_seed(3);
    let (data, weight) = (Tensor::randn([32, 8]).realize()?.clone(), Tensor::randn([8, 4]).realize()?.clone());
    let (hidden, scaled) = (data.matmul(&weight).tanh(), &data * 2.0);
    for step in 0..4 {
        let value = (&hidden + step as f32).sum(.., false) + scaled.mean(.., false);
        value.item::<f32>()?;
        assert_eq!(hidden.is_realized(), step > 0, "{step}");
        // Cheaper to recompute than to store and load.
        assert!(!scaled.is_realized(), "{step}");
    }
    Ok(())
}

/// A batch is a local variable of its step, and the program has not asked for the states: their gradients still find it.
#[test]
fn gradients_find_what_states_were_made_of() -> Result<()> {
    let _alone = crate::alone();
    set_seed(5);
    let weight = Tensor::randn([4, 4]).realize()?.clone();
    let batches: Vec<Tensor> = (0..10).map(|_| Tensor::randn([8, 4])).collect();
    realize_all(&batches.iter().collect::<Vec<_>>())?;
    let gradient = |is_read: bool| -> Result<Vec<f32>> {
        let mut state = Tensor::zeros([8, 4]);
        for batch in &batches {
            let batch = Tensor::from_slice(&batch.to_vec::<f32>()?, [8, 4]);
            state = (batch.matmul(&weight) + &state).tanh();
            if is_read {
                batch.sum(.., false).item::<f32>()?;
                state.at(0).to_vec::<f32>()?;
            }
        }
        grad(&state.sum(.., false), &[&weight])?[0].to_vec()
    };
    assert_near(&gradient(false)?, &gradient(true)?, 1e-4);
    // A value that several losses are made of.
    let hidden = batches[0].matmul(Tensor::from_slice(&weight.to_vec::<f32>()?, [4, 4])).tanh();
    for step in 0..4 {
        let loss = (&hidden * step as f32).sum(.., false);
        loss.item::<f32>()?;
        grad(&loss, &[&batches[0]])?[0].realize()?;
    }
    Ok(())
}

/// Each step makes as many states as a deep recurrent network.
#[test]
fn gradients_find_what_many_states_were_made_of() -> Result<()> {
    let _alone = crate::alone();
    set_seed(6);
    let weight = Tensor::randn([4, 4]).realize()?.clone();
    let gradient = |is_logged: bool| -> Result<Vec<f32>> {
        let mut states = vec![Tensor::zeros([8, 4]); 8];
        for step in 0..14 {
            let mut below =
                (Tensor::arange(32).reshape([8, 4]).cast(DType::F32) * 0.01 + step as f32).realize()?.clone();
            if is_logged {
                below.mean(.., false).item::<f32>()?;
            }
            for state in &mut states {
                *state = (below.matmul(&weight) + &*state).tanh();
                below = state.clone();
            }
        }
        grad(&states[7].sum(.., false), &[&weight])?[0].to_vec()
    };
    assert_near(&gradient(false)?, &gradient(true)?, 1e-4);
    Ok(())
}

/// Equal states are computed once, and the gradient of each finds what it was made of.
#[test]
fn gradients_find_what_equal_states_were_made_of() -> Result<()> {
    let _alone = crate::alone();
    set_seed(8);
    let weight = Tensor::randn([4, 4]).realize()?.clone();
    let gradients = |is_logged: bool| -> Result<Vec<f32>> {
        set_seed(9);
        let mut states = [Tensor::zeros([8, 4]), Tensor::zeros([8, 4])];
        for _ in 0..4 {
            let batch = Tensor::randn([8, 4]).realize()?.clone();
            if is_logged {
                batch.mean(.., false).item::<f32>()?;
            }
            states = [0, 1].map(|_| (states[0].matmul(&weight) + &batch).tanh());
        }
        let mut all = vec![];
        for state in &states {
            all.extend(grad(&state.sum(.., false), &[&weight])?[0].to_vec::<f32>()?);
        }
        Ok(all)
    };
    assert_near(&gradients(false)?, &gradients(true)?, 1e-4);
    Ok(())
}

/// A two-device pipeline: activations move to the other device, and an optimiser steps the weight.
#[test]
fn a_pipeline_of_devices_is_trained() -> Result<()> {
    let _alone = crate::alone();
    set_seed(10);
    let x = Tensor::randn([8, 4]).realize()?.clone();
    let start = Tensor::randn([4, 4]).realize()?.clone();
    let train = |place: &str| -> Result<Vec<f32>> {
        let mut weight = Tensor::from_slice(&start.to_vec::<f32>()?, [4, 4]);
        let mut sgd = tinyspec::nn::Sgd::new(0.1);
        let mut losses = vec![];
        for _ in 0..4 {
            let hidden = x.matmul(&weight).tanh().to(place) * 2.0;
            let loss = (hidden.square() + x.matmul((&weight * 2.0).to("cpu")).to(place)).mean(.., false);
            let gradients = grad(&loss, &[&weight])?;
            sgd.step(&mut [&mut weight], &gradients)?;
            losses.push(loss.item::<f32>()?);
        }
        Ok(losses)
    };
    assert_near(&train("cpu")?, &train("cpu:1")?, 1e-5);
    Ok(())
}

/// Two threads take turns at a state that is made of an old one, and each reads something else.
#[test]
fn threads_that_take_turns_leave_no_chain_behind() -> Result<()> {
    let _alone = crate::alone();
    let (mut state, mut old) = (Tensor::zeros([8, 8]).realize()?.clone(), std::collections::VecDeque::new());
    let constant = Tensor::ones([8, 8]).realize()?.clone();
    let mut want = vec![0.0f32];
    let mut plans = vec![];
    let state = std::thread::scope(|scope| {
        type Job<'a> = Box<dyn FnOnce() + Send + 'a>;
        let workers = [(); 2].map(|()| {
            let (sender, jobs) = std::sync::mpsc::channel::<Job>();
            scope.spawn(move || jobs.into_iter().for_each(|job| job()));
            sender
        });
        for step in 0..60 {
            let (sender, done) = std::sync::mpsc::channel();
            let (last, mut ring, constant) = (state, std::mem::take(&mut old), constant.clone());
            let job = move || {
                ring.push_back(last.clone());
                if ring.len() > 3 {
                    ring.pop_front();
                }
                let next = (last * 0.8 + &ring[0] * 0.1 + constant * 0.1).tanh();
                let read = Tensor::randn([4]).sum(.., false).item::<f32>().map(drop);
                sender.send((next, ring, read)).expect("a step");
            };
            workers[step / 3 % 2].send(Box::new(job)).expect("a worker");
            let (next, ring, read) = done.recv().expect("a step");
            (state, old) = (next, ring);
            read?;
            let count = want.len();
            want.push((want[count - 1] * 0.8 + want[count.saturating_sub(3)] * 0.1 + 0.1).tanh());
            plans.push(counters().plans);
        }
        Ok::<_, tinyspec::Error>(state)
    })?;
    assert_eq!(plans[59], plans[30], "{plans:?}");
    let got = state.at((0, 0)).item::<f32>()?;
    assert!((got - want[60]).abs() < 1e-5, "{got} instead of {}", want[60]);
    Ok(())
}

/// A run may compute more than it was asked for: what fails there, or is larger than memory, is left undone.
#[test]
fn what_nobody_asked_for_fails_nobody() -> Result<()> {
    let _alone = crate::alone();
    let x = Tensor::ones([4]).realize()?.clone();
    let mut state = &x * 2.0;
    x.sum(.., false).item::<f32>()?;
    state = state.to("sm_90") + 1.0;
    for _ in 0..3 {
        assert_eq!(x.sum(.., false).item::<f32>()?, 4.0);
    }
    assert!(state.realize().is_err());
    let long = Tensor::ones([200_000]).realize()?.clone();
    let pairs = (long.unsqueeze(1) + long.unsqueeze(0)) * long.sum(.., false);
    for row in 0..3 {
        assert_eq!(pairs.at((row, 5)).item::<f32>()?, 400_000.0);
    }
    Ok(())
}

/// One of them may compute a value while another one plans to.
#[test]
fn threads_share_values_and_their_gradients() -> Result<()> {
    let _alone = crate::alone();
    set_seed(9);
    for _ in 0..20 {
        let (x, weight) = (Tensor::randn([4, 16]).realize()?.clone(), Tensor::randn([16, 16]).realize()?.clone());
        let (mut state, mut held) = (x.clone(), vec![]);
        for _ in 0..6 {
            state = (state.matmul(&weight) * 0.1 + &x).tanh();
            held.push(state.clone());
        }
        let start = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (held, weight, start) = (&held, &weight, &start);
                scope.spawn(move || {
                    start.wait();
                    for number in 0..held.len() {
                        let number = if thread % 2 == 0 { number } else { held.len() - 1 - number };
                        let loss = held[number].square().sum(.., false);
                        let gradient = &grad(&loss, &[weight]).expect("a gradient")[0];
                        gradient.sum(.., false).item::<f32>().expect("its sum");
                    }
                });
            }
        });
    }
    Ok(())
}
