//! Parts of tensors in functions: read, written, and states that are assigned on the way.

use tinyspec::prelude::*;

#[function]
fn corners<B>(x: &Tensor<f32, B, 4, 6>) -> Tensor<f32, B, 2, 2> {
    x.at((.., stepped(.., 3), stepped(.., -5)))
}

#[function]
fn shifted(x: &Tensor<f32, 5, 6>) -> Tensor<f32, 4, 3> {
    const HALF: i64 = 3;
    x.at((1.., ..HALF)) - x.at((..-1, -3..))
}

#[function]
fn picked(x: &Tensor<f32, 5, 6>, rows: &Tensor<i32, 3>) -> (Tensor<f32, 3, 1>, Tensor<f32, 3>, Tensor<f32, 5>) {
    (x.at((rows, 0..=0)), x.at((rows, rows)), x.at((Rest, 2)))
}

#[function]
fn framed(x: &Tensor<f32, 5, 6>) -> Tensor<f32, 5, 6> {
    let mut y = x.clone();
    for edge in [0, -1] {
        y.set(edge, 0.0);
        y.set((Rest, edge), -1);
    }
    let middle = y.at((2, 1..5)) * 2.0;
    y.set((2, 1..5), middle);
    y
}

#[function]
fn clipped<B>(x: &Tensor<f32, B, 6>, rows: &Tensor<i32, 2>, new: &Tensor<f32, 2, 1>) -> Tensor<f32, B, 6> {
    let mut y = x * 1.0;
    y.set(y.gt(9.0), 9.0);
    let above = y.lt(2.0);
    y.set(&above, 2.0);
    let turned = y.flip([1]);
    y.assign(&turned);
    let mut top = y.shrink([0, 0], [4, 6]);
    top.set((rows, 1..3), new);
    y.assign(&(&y + top.sum(0, true)));
    y
}

#[function(grad)]
fn loss(x: &Tensor<f64, 3, 4>, v: &Tensor<f64, 2>) -> Tensor<f64> {
    let mut y = x * x;
    y.set((1, stepped(.., 2)), v * v);
    let first = y.at(0);
    y.assign(&(&y * first));
    y.sum(.., false)
}

/// As many values as the mask has places; beside a new axis.
#[function(grad)]
fn filled(x: &Tensor<f64, 3, 4>, v: &Tensor<f64, 5>, rows: &Tensor<i32, 2>) -> Tensor<f64, 2, 1, 4> {
    let mut y = x * x;
    y.set(x.gt(1.8), v * v);
    y.at((rows, NewAxis))
}

fn counted(shape: &[i64]) -> Tensor {
    let count: i64 = shape.iter().product();
    Tensor::arange(count).cast(DType::F32).reshape(shape)
}

fn same(found: &Tensor, want: &Tensor) -> tinyspec::Result<()> {
    assert_eq!(found.sizes()?, want.sizes()?);
    assert_eq!(found.to_vec::<f32>()?, want.to_vec::<f32>()?);
    Ok(())
}

#[test]
fn traces_are_the_same() {
    [
        corners::FUNCTION,
        shifted::FUNCTION,
        picked::FUNCTION,
        framed::FUNCTION,
        clipped::FUNCTION,
        loss::FUNCTION,
        filled::FUNCTION,
    ]
    .into_iter()
    .for_each(crate::same_graph);
}

#[test]
fn parts_are_those_of_the_run_time() -> tinyspec::Result<()> {
    let x = counted(&[2, 4, 6]);
    assert_eq!(corners(&x).to_vec::<f32>()?, [5.0, 0.0, 23.0, 18.0, 29.0, 24.0, 47.0, 42.0]);
    let x = counted(&[5, 6]);
    same(&shifted(&x), &(x.at((1.., ..3)) - x.at((..-1, -3..))))?;
    let rows = Tensor::from_slice(&[4i32, 0, -2], [3]);
    let (column, pairs, third) = picked(&x, &rows);
    assert_eq!(column.to_vec::<f32>()?, [24.0, 0.0, 18.0]);
    assert_eq!(pairs.to_vec::<f32>()?, [28.0, 0.0, 22.0]);
    assert_eq!(third.to_vec::<f32>()?, [2.0, 8.0, 14.0, 20.0, 26.0]);
    let mut want: Vec<Vec<f32>> = (0..5).map(|i| (0..6).map(|j| (i * 6 + j) as f32).collect()).collect();
    for (row, column) in [(0, 0), (4, 5)] {
        want[row] = vec![0.0; 6];
        want.iter_mut().for_each(|row| row[column] = -1.0);
    }
    want[2][1..5].iter_mut().for_each(|value| *value *= 2.0);
    assert_eq!(framed(&x).to_vec::<f32>()?, want.concat());
    Ok(())
}

#[test]
fn states_of_a_function_follow_each_other() -> tinyspec::Result<()> {
    let x = counted(&[4, 6]);
    let rows = Tensor::from_slice(&[2i32, 0], [2]);
    let new = Tensor::from_slice(&[100f32, 200.0], [2, 1]);
    let mut want: Vec<Vec<f32>> =
        (0..4).map(|i| (0..6).rev().map(|j| ((i * 6 + j) as f32).clamp(2.0, 9.0)).collect()).collect();
    let mut top = want.clone();
    top[2][1..3].fill(100.0);
    top[0][1..3].fill(200.0);
    for column in 0..6 {
        let sum: f32 = top.iter().map(|row| row[column]).sum();
        want.iter_mut().for_each(|row| row[column] += sum);
    }
    assert_eq!(clipped(&x, &rows, &new).to_vec::<f32>()?, want.concat());
    Ok(())
}

#[test]
fn gradients_go_to_what_stays() -> tinyspec::Result<()> {
    let x = Tensor::from_slice(&(1..13).map(|i| f64::from(i) * 0.25).collect::<Vec<_>>(), [3, 4]);
    let v = Tensor::from_slice(&[0.5f64, -1.5], [2]);
    tinyspec::gradcheck(|inputs| loss(&inputs[0], &inputs[1]), &[&x, &v], Default::default())
}

#[test]
fn values_follow_each_other_under_a_mask() -> tinyspec::Result<()> {
    let x = Tensor::from_slice(&(1..13).map(|i| f64::from(i) * 0.25).collect::<Vec<_>>(), [3, 4]);
    let v = Tensor::from_slice(&[1f64, 2.0, 3.0, 4.0, 5.0], [5]);
    let rows = Tensor::from_slice(&[2i32, 1], [2]);
    let found = filled(&x, &v, &rows);
    assert_eq!(found.sizes()?, [2, 1, 4]);
    assert_eq!(found.to_vec::<f64>()?, [4.0, 9.0, 16.0, 25.0, 1.5625, 2.25, 3.0625, 1.0]);
    tinyspec::gradcheck(|inputs| filled(&inputs[0], &inputs[1], &rows), &[&x, &v], Default::default())
}
