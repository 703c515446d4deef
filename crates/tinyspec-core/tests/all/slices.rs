//! Parts of tensors, read and written as NumPy does.

use crate::support::on_each_device;
use tinyspec_core::{Error, NewAxis, Rest, Tensor, grad, stepped};
use tinyspec_ir::{DType, Dim};

fn matrix() -> Tensor {
    Tensor::arange(12).reshape([3, 4]).contiguous()
}

/// What NumPy's `range(n)[start:stop:step]` is, by its definition: walk, and keep what exists.
fn walked(n: i64, start: i64, stop: i64, step: i64) -> Vec<i32> {
    let placed = |end: i64| if end < 0 { end + n } else { end };
    let (mut at, stop) = match step > 0 {
        true => (placed(start).clamp(0, n), placed(stop).clamp(0, n)),
        false => (placed(start).clamp(-1, n - 1), placed(stop).clamp(-1, n - 1)),
    };
    let mut found = vec![];
    while if step > 0 { at < stop } else { at > stop } {
        found.push(at as i32);
        at += step;
    }
    found
}

#[test]
fn every_slice_of_a_vector_keeps_what_a_walk_finds() {
    on_each_device(|| {
        let x = Tensor::arange(5).contiguous();
        let ends = [-7, -3, -1, 0, 2, 5, 9];
        let mut all = vec![];
        for (start, stop) in ends.iter().flat_map(|&start| ends.map(|stop| (start, stop))) {
            for step in [-6, -2, -1, 1, 2, 3] {
                all.push((x.slice(0, start, stop, step), walked(5, start, stop, step), (start, stop, step)));
            }
        }
        let tensors: Vec<&Tensor> = all.iter().map(|(tensor, ..)| tensor).collect();
        tinyspec_core::realize_all(&tensors)?;
        for (tensor, want, slice) in &all {
            assert_eq!(tensor.to_vec::<i32>()?, *want, "{slice:?}");
        }
        Ok(())
    });
}

#[test]
fn picks_index_as_numpy_does() {
    on_each_device(|| {
        let x = matrix();
        let is = |part: Tensor, sizes: &[usize], want: &[i32]| -> Result<(), Error> {
            assert_eq!((part.sizes()?.as_slice(), part.to_vec::<i32>()?.as_slice()), (sizes, want));
            Ok(())
        };
        is(x.at(1), &[4], &[4, 5, 6, 7])?;
        is(x.at((-1, -2)), &[], &[10])?;
        is(x.at((.., 1..3)), &[3, 2], &[1, 2, 5, 6, 9, 10])?;
        is(x.at((..=1, ..-2)), &[2, 2], &[0, 1, 4, 5])?;
        is(x.at((stepped(.., -2), stepped(1.., 2))), &[2, 2], &[9, 11, 1, 3])?;
        is(x.at((Rest, 3)), &[3], &[3, 7, 11])?;
        is(x.at((NewAxis, 2, .., NewAxis)), &[1, 4, 1], &[8, 9, 10, 11])?;
        is(x.at(2..2), &[0, 4], &[])?;
        let (rows, columns) = (Tensor::from_slice(&[2i32, 0, -1], [3]), Tensor::from_slice(&[1i32, -1, 9], [3]));
        is(x.at((&rows, 0..2)), &[3, 2], &[8, 9, 0, 1, 8, 9])?;
        is(x.at((&rows, &columns)), &[3], &[9, 3, 0])?;
        is(x.at((rows.unsqueeze(1), &columns)), &[3, 3], &[9, 11, 0, 1, 3, 0, 9, 11, 0])?;
        is(x.at((.., Tensor::from_slice(&[3u8, 3], [2]))), &[3, 2], &[3, 3, 7, 7, 11, 11])?;
        is(x.at(x.modulo(5).eq(0)), &[3], &[0, 5, 10])?;
        is(x.at((Tensor::from_slice(&[true, false, true], [3]), 0)), &[2], &[0, 8])?;
        is(x.at((1.., Tensor::from_slice(&[true, false, false, true], [4]))), &[2, 2], &[4, 7, 8, 11])?;
        Ok(())
    });
}

#[test]
fn written_parts_change_nothing_else() {
    on_each_device(|| {
        let mut x = matrix();
        let (before, row) = (x.clone(), x.at(1));
        x.set((1.., stepped(.., -2)), Tensor::from_slice(&[-1i32, -2, -3, -4], [2, 2]));
        assert_eq!(x.to_vec::<i32>()?, [0, 1, 2, 3, 4, -2, 6, -1, 8, -4, 10, -3]);
        assert_eq!(before.to_vec::<i32>()?, (0..12).collect::<Vec<_>>());
        assert_eq!(row.to_vec::<i32>()?, [4, 5, 6, 7]);
        x.set(0, 7);
        x.set((Rest, -1), 9);
        assert_eq!(x.to_vec::<i32>()?, [7, 7, 7, 9, 4, -2, 6, 9, 8, -4, 10, 9]);
        x.set(x.lt(0), 0);
        assert_eq!(x.to_vec::<i32>()?, [7, 7, 7, 9, 4, 0, 6, 9, 8, 0, 10, 9]);
        Ok(())
    });
}

#[test]
fn views_of_the_tensor_that_is_written_are_read_first() {
    on_each_device(|| {
        // Every element from its neighbour, both ways, and the whole reversed.
        let mut x = Tensor::arange(5).contiguous();
        x.realize()?;
        x.set(1.., x.at(..-1));
        assert_eq!(x.to_vec::<i32>()?, [0, 0, 1, 2, 3]);
        x.set(..-1, x.at(1..));
        assert_eq!(x.to_vec::<i32>()?, [0, 1, 2, 3, 3]);
        x.set(.., x.at(stepped(.., -1)));
        assert_eq!(x.to_vec::<i32>()?, [3, 3, 2, 1, 0]);
        // Two reads of the old state around a write, computed together.
        let old = &x + 10;
        x.set(0, 100);
        let new = &x + 10;
        tinyspec_core::realize_all(&[&new, &old])?;
        assert_eq!((old.to_vec::<i32>()?[0], new.to_vec::<i32>()?[0]), (13, 110));
        // A state that is written twice before it is read.
        x.set(1, x.at(0));
        x.set(2, x.at(1) + 1);
        assert_eq!(x.to_vec::<i32>()?, [100, 100, 101, 1, 0]);
        Ok(())
    });
}

#[test]
fn the_last_of_several_values_for_a_place_stays() {
    on_each_device(|| {
        let mut x = Tensor::zeros([4, 2]);
        let rows = Tensor::from_slice(&[2i32, 0, 2, 7], [4]);
        x.set(&rows, Tensor::arange(8).reshape([4, 2]).cast(DType::F32));
        assert_eq!(x.to_vec::<f32>()?, [2.0, 3.0, 0.0, 0.0, 4.0, 5.0, 0.0, 0.0]);
        x.set((.., Tensor::from_slice(&[1i32], [1])), 9.0);
        assert_eq!(x.to_vec::<f32>()?, [2.0, 9.0, 0.0, 9.0, 4.0, 9.0, 0.0, 9.0]);
        let column = Tensor::from_slice(&[0i32, 1, 0, 1], [4]);
        x.set((&rows, &column), Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0], [4]));
        assert_eq!(x.to_vec::<f32>()?, [2.0, 2.0, 0.0, 9.0, 3.0, 9.0, 0.0, 9.0]);
        Ok(())
    });
}

#[test]
fn gradients_go_through_what_is_read_and_written() {
    on_each_device(|| {
        let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0], [4]);
        let v = Tensor::from_slice(&[5f32, 6.0], [2]);
        let mut y = &x * 1.0;
        y.set(stepped(.., 2), &v);
        let loss = (&y * &y * y.at(stepped(.., -1))).sum(.., false);
        // Σ y_k² y_(3-k) of y = [v0, x1, v1, x3].
        let [gx, gv] = grad(&loss, &[&x, &v])?.try_into().expect("two gradients");
        let (y0, y1, y2, y3) = (5f32, 2.0, 6.0, 4.0);
        assert_eq!(gx.to_vec::<f32>()?, [0.0, 2.0 * y1 * y2 + y2 * y2, 0.0, 2.0 * y3 * y0 + y0 * y0]);
        assert_eq!(gv.to_vec::<f32>()?, [2.0 * y0 * y3 + y3 * y3, 2.0 * y2 * y1 + y1 * y1]);
        // Rows that are written twice: only what stays has a gradient.
        let mut z = &x * 1.0;
        z.set(Tensor::from_slice(&[1i32, 1], [2]), &v);
        let [gx, gv] = grad(&(&z * &z).sum(.., false), &[&x, &v])?.try_into().expect("two gradients");
        assert_eq!(gx.to_vec::<f32>()?, [2.0, 0.0, 6.0, 8.0]);
        assert_eq!(gv.to_vec::<f32>()?, [0.0, 12.0]);
        Ok(())
    });
}

#[test]
fn what_cannot_be_picked_is_refused() {
    let x = matrix();
    let refused = |tensor: Tensor, words: &[&str]| {
        let text = tensor.to_vec::<i32>().expect_err("refused").to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    refused(x.at(3), &["at", "position 3 of axis 0, which has 3"]);
    refused(x.at(Dim::from(3)), &["at", "position 3 of axis 0, which has 3"]);
    refused(x.at((0, 0, 0)), &["the picks are of 3 axes, [3, 4] has 2"]);
    refused(x.at(stepped(.., 0)), &["a step of 0"]);
    refused(x.at((Tensor::ones([2]), 0)), &["must be an integer"]);
    refused(x.at(Tensor::from_slice(&[true; 4], [4])), &["a mask of [4] over [3]"]);
    refused(x.slice(2, 0, 1, 1), &["slice", "axis 2"]);
    let after = |change: &dyn Fn(&mut Tensor)| {
        let mut x = matrix();
        change(&mut x);
        x
    };
    refused(after(&|x| x.set(0, Tensor::arange(3))), &["set", "[3] does not broadcast to [4]"]);
    refused(after(&|x| x.set(0, 0.5)), &["set", "f32 values for a tensor of i32"]);
    refused(after(&|x| x.set((.., 4), 1)), &["set", "position 4 of axis 1"]);
}

fn mask(places: &[bool]) -> Tensor {
    Tensor::from_slice(places, [places.len()])
}

#[test]
fn masks_and_new_axes_pick_beside_others() {
    on_each_device(|| {
        let x = matrix();
        let is = |part: Tensor, sizes: &[usize], want: &[i32]| -> Result<(), Error> {
            assert_eq!((part.sizes()?.as_slice(), part.to_vec::<i32>()?.as_slice()), (sizes, want));
            Ok(())
        };
        let (rows, columns) = (mask(&[true, false, true]), mask(&[true, false, false, true]));
        let (i, j) = (Tensor::from_slice(&[2i32, 0], [2]), Tensor::from_slice(&[1i64, 1, -1], [3, 1]));
        is(x.at((&rows, 1..3)), &[2, 2], &[1, 2, 9, 10])?;
        is(x.at((0, &columns)), &[2], &[0, 3])?;
        // Pairs: (0, 0), (2, 3); and (0, 2), (2, 0).
        is(x.at((&rows, &columns)), &[2], &[0, 11])?;
        is(x.at((&rows, &i)), &[2], &[2, 8])?;
        is(x.at((&rows, &j)), &[3, 2], &[1, 9, 1, 9, 3, 11])?;
        is(x.at((NewAxis, &i, 0)), &[1, 2], &[8, 0])?;
        is(x.at((&i, NewAxis)), &[2, 1, 4], &[8, 9, 10, 11, 0, 1, 2, 3])?;
        is(x.at((NewAxis, &rows)), &[1, 2, 4], &[0, 1, 2, 3, 8, 9, 10, 11])?;
        // Tensors apart: what they pick is in front.
        is(x.at((&i, NewAxis, &i)), &[2, 1], &[10, 0])?;
        let y = Tensor::arange(24).reshape([2, 3, 4]);
        is(y.at((&i.eq(0), .., &columns)), &[2, 3], &[12, 16, 20, 15, 19, 23])?;
        is(y.at((1, x.modulo(5).eq(0))), &[3], &[12, 17, 22])?;
        is(y.at((.., x.gt(10), NewAxis)), &[2, 1, 1], &[11, 23])?;
        is(y.at((.., x.gt(11), 0..0)), &[2, 0, 0], &[]).expect_err("three axes and one more");
        is(y.at((.., x.gt(11))), &[2, 0], &[])?;
        is(y.at(mask(&[true]).at(0)), &[1, 2, 3, 4], &(0..24).collect::<Vec<_>>())?;
        is(y.at(mask(&[false]).at(0)), &[0, 2, 3, 4], &[])?;
        Ok(())
    });
}

#[test]
fn masks_are_written_one_value_after_the_other() {
    on_each_device(|| {
        let after = |change: &dyn Fn(&mut Tensor)| -> Result<Vec<i32>, Error> {
            let mut x = matrix();
            change(&mut x);
            x.to_vec()
        };
        let of = |values: &[i32]| Tensor::from_slice(values, [values.len()]);
        let fifths = matrix().modulo(5).eq(0);
        let (rows, columns) = (mask(&[true, false, true]), mask(&[true, false, false, true]));
        assert_eq!(after(&|x| x.set(&fifths, of(&[7, 8, 9])))?, [7, 1, 2, 3, 4, 8, 6, 7, 8, 9, 9, 11]);
        assert_eq!(after(&|x| x.set(&fifths, of(&[7])))?, [7, 1, 2, 3, 4, 7, 6, 7, 8, 9, 7, 11]);
        // Four places of a matrix take four values in order, not by column.
        assert_eq!(after(&|x| x.set(x.gt(7), of(&[-1, -2, -3, -4])))?, [0, 1, 2, 3, 4, 5, 6, 7, -1, -2, -3, -4]);
        assert_eq!(after(&|x| x.set(x.gt(1).and(x.lt(6)), of(&[-1, -2, -3, -4])))?[2..6], [-1, -2, -3, -4]);
        // Each true row has a row, all of them one, or each a number.
        let two = of(&[-1, -2, -3, -4, -5, -6, -7, -8]).reshape([2, 4]);
        assert_eq!(after(&|x| x.set(&rows, &two))?, [-1, -2, -3, -4, 4, 5, 6, 7, -5, -6, -7, -8]);
        assert_eq!(after(&|x| x.set(&rows, two.at(1)))?, [-5, -6, -7, -8, 4, 5, 6, 7, -5, -6, -7, -8]);
        assert_eq!(after(&|x| x.set(&rows, two.at((.., 0..1))))?, [-1, -1, -1, -1, 4, 5, 6, 7, -5, -5, -5, -5]);
        assert_eq!(after(&|x| x.set((.., &columns), two.at((0, 0..2))))?, [-1, 1, 2, -2, -1, 5, 6, -2, -1, 9, 10, -2]);
        assert_eq!(after(&|x| x.set((&rows, 1..3), two.at((.., 2..))))?, [0, -3, -4, 3, 4, 5, 6, 7, 8, -7, -8, 11]);
        assert_eq!(after(&|x| x.set((1, &columns), of(&[-1, -2])))?, [0, 1, 2, 3, -1, 5, 6, -2, 8, 9, 10, 11]);
        assert_eq!(after(&|x| x.set((&rows, &columns), of(&[-1, -2])))?, [-1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, -2]);
        assert_eq!(after(&|x| x.set((&rows, of(&[1])), of(&[-1, -2])))?, [0, -1, 2, 3, 4, 5, 6, 7, 8, -2, 10, 11]);
        assert_eq!(after(&|x| x.set((NewAxis, 0, 1..3), of(&[-1, -2])))?, [0, -1, -2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
        assert_eq!(after(&|x| x.set((of(&[2]), NewAxis), two.at((NewAxis, 1))))?[8..], [-5, -6, -7, -8]);
        assert_eq!(after(&|x| x.set(x.gt(11), of(&[])))?, (0..12).collect::<Vec<_>>());
        // One value for each place, true or not.
        assert_eq!(after(&|x| x.set(&fifths, x.clone() + 100))?, [100, 1, 2, 3, 4, 105, 6, 7, 8, 9, 110, 11]);
        Ok(())
    });
    let refused = |change: &dyn Fn(&mut Tensor), words: &[&str]| {
        let mut x = matrix();
        change(&mut x);
        let text = x.to_vec::<i32>().expect_err("refused").to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    refused(
        &|x| x.set(x.lt(3), Tensor::arange(4)),
        &["set: 4 values for the 3 places where the mask is true", "slices.rs"],
    );
    refused(
        &|x| x.set(mask(&[true; 3]), Tensor::arange(5)),
        &["set: values of [5] where a mask of [3] picks from [3, 4]"],
    );
    refused(&|x| x.set(mask(&[true; 4]), 1), &["set: a mask of [4] from axis 0 of [3, 4] on"]);
}

#[test]
fn gradients_of_masked_values_go_to_their_places() -> Result<(), Error> {
    let x = Tensor::from_slice(&[0.3f64, -1.0, 0.7, 2.0, -0.4, 0.1], [2, 3]);
    let v = Tensor::from_slice(&[1.5f64, -0.5, 0.25], [3]);
    let at = |tensors: &[Tensor]| {
        let mut y = &tensors[0] * 2.0;
        let chosen = Tensor::from_slice(&[true, false, true, false, false, true], [2, 3]);
        y.set(&chosen, tensors[1].square());
        y.at((&chosen, NewAxis)).sum(0, false) * y.sum(.., false) * &y
    };
    tinyspec_core::gradcheck(at, &[&x, &v], Default::default())
}
