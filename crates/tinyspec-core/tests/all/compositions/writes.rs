//! Values written to places that data name.

use super::is_linear;
use crate::support::on_each_shape;
use tinyspec_core::{Error, Tensor};

/// What meets at a place that data name, whatever makes one of it.
#[test]
fn every_write_at_places_takes_a_step_a_value() -> Result<(), Error> {
    on_each_shape(|| {
        let (n, d) = (4096, 3000);
        let places: Vec<i32> = (0..d).map(|i| i * 7919 % 3001 % 911 - 2).collect();
        let data: Vec<f32> =
            (0..d).map(|i| if i == 77 { f32::NAN } else { ((i * 31 % 97) as f32 - 48.0) / 32.0 }).collect();
        let picks = Tensor::from_slice(&places, [d]);
        let values = Tensor::from_slice(&data, [d]);
        let x = Tensor::full([n], 0.5f32).contiguous();
        x.realize()?;
        let reduced = |how: &str| x.scatter_reduce(&picks, &values, 0, how, true);
        let mut set = x.clone();
        set.set(picks.maximum(0), &values);
        let written = [
            (x.scatter(&picks, &values, 0), (|_, new| new) as fn(f32, f32) -> f32),
            (reduced("amax"), |old, new| if old.is_nan() || new.is_nan() { f32::NAN } else { old.max(new) }),
            (reduced("amin"), |old, new| if old.is_nan() || new.is_nan() { f32::NAN } else { old.min(new) }),
            (reduced("prod"), |old, new| old * new),
            (x.scatter(picks.maximum(0), 3.0f32, 0), |_, _| 3.0),
            (set, |_, new| new),
            (x.index_copy(0, picks.maximum(0), &values), |_, new| new),
        ];
        for (number, (result, step)) in written.iter().enumerate() {
            is_linear(&[result], 4 * n, &format!("write {number}"))?;
            let mut want = vec![0.5f32; n as usize];
            for (&place, &value) in places.iter().zip(&data) {
                // Some count from 0, the others leave out what is before it.
                let place = if number < 4 { usize::try_from(place) } else { Ok(place.max(0) as usize) };
                if let Ok(place) = place {
                    want[place] = step(want[place], value);
                }
            }
            let found = result.to_vec::<f32>()?;
            let close = |(found, want): (&f32, &f32)| {
                (found - want).abs() <= 1e-5 * want.abs() || found.is_nan() && want.is_nan()
            };
            assert!(found.iter().zip(&want).all(close), "write {number}");
        }
        Ok(())
    })
}
