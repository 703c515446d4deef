//! Constants of the scope around a model: as sizes of its fields, and as numbers of methods and options.

use tinyspec::prelude::*;

const WIDTH: usize = 6;
const KERNEL: usize = 3;
const PAD: usize = KERNEL / 2;
const STRIDE: i64 = 2;
const GREATEST: usize = 2;
const PATCH: usize = 4;
const GROUPS: usize = 3;

mod parts {
    use tinyspec::prelude::*;

    /// Known here alone.
    const ROWS: usize = 5;

    #[model(functions)]
    pub struct Table<D> {
        rows: Tensor<f32, ROWS, D>,
        doubled: Tensor<f32, { 2 * ROWS }>,
    }

    #[function]
    impl<D> Table<D> {
        pub fn pick<B>(&self, ids: &Tensor<i32, B>) -> Tensor<f32, B, D> {
            ids.embedding(&self.rows) + self.doubled.sum(.., false)
        }

        pub fn all(&self) -> Tensor<f32, ROWS, D> {
            self.rows.clone()
        }
    }
}

#[model(functions)]
struct Linear<I, O> {
    weight: Tensor<f32, I, O>,
}

#[function]
impl<I, O> Linear<I, O> {
    fn forward<B>(&self, x: &Tensor<f32, B, I>) -> Tensor<f32, B, O> {
        x.matmul(&self.weight)
    }
}

#[model(functions)]
struct Net {
    tables: [parts::Table<WIDTH>; 2],
    hidden: Linear<WIDTH, { 2 * WIDTH }>,
    last: Tensor<f32, { 2 * WIDTH }, WIDTH>,
    #[model(buffer)]
    mean: Tensor<f32, WIDTH>,
}

#[function]
impl Net {
    fn forward<B>(&mut self, ids: &Tensor<i32, B>) -> Tensor<f32, B, WIDTH> {
        let x = self.tables[0].pick(ids) + self.tables[1].pick(ids) - &self.mean;
        self.mean = x.mean(0, false);
        self.hidden.forward(&x).matmul(&self.last)
    }
}

/// Another expansion reads the constants of all.
#[function(grad)]
fn loss<B>(net: &mut Net, ids: &Tensor<i32, B>, shift: &Tensor<f32, WIDTH>) -> Tensor<f32> {
    (net.forward(ids) + shift).square().mean(.., false) + net.tables[1].all().sum(.., false)
}

#[model(functions)]
struct Conv<I, O> {
    filter: Tensor<f32, O, I, KERNEL, KERNEL>,
}

#[function]
impl<I, O> Conv<I, O> {
    fn same<B, H, W>(&self, x: &Tensor<f32, B, I, H, W>) -> Tensor<f32, B, O, H, W> {
        x.conv2d(&self.filter, None, Conv2d { padding: [PAD as i64, PAD as i64], ..default() })
    }

    fn half<B>(&self, x: &Tensor<f32, B, I, 8, 8>) -> Tensor<f32, B, O, 4, 4> {
        x.conv2d(&self.filter, None, Conv2d { stride: [STRIDE, STRIDE], padding: [PAD, PAD], ..default() })
    }
}

#[function]
fn gate<B>(x: &Tensor<f32, B, 8>) -> Tensor<f32, B, 8> {
    let [values, _] = x.topk(GREATEST, -1, true);
    x.ge(values.narrow(1, GREATEST - 1, 1)).where_(x, 0.0)
}

#[function]
fn patches<B>(x: &Tensor<f32, B, 3, 8, 8>) -> Tensor<f32, B, { (8 / PATCH) * (8 / PATCH) }, { 3 * PATCH * PATCH }> {
    let n = 8 / PATCH;
    x.reshape([B, 3, n, PATCH, n, PATCH]).permute([0, 2, 4, 1, 3, 5]).reshape([B, n * n, 3 * PATCH * PATCH])
}

/// A list of sizes is a value like others.
#[function]
fn group_norm<B, H>(x: &Tensor<f32, B, 12, H>) -> Tensor<f32, B, 12, H> {
    let groups = [B, GROUPS, 12 / GROUPS, H];
    let y = x.reshape(groups) + Tensor::zeros(groups);
    ((&y - y.mean([2, 3], true)) / (y.var([2, 3], 0, true) + 1e-5).sqrt()).reshape([B, 12, H])
}

/// A list that grows round by round.
#[function]
fn running<B>(x: &Tensor<f32, 4, B>) -> Tensor<f32, 4, B> {
    let mut sum = Tensor::zeros([B]);
    let mut sums = vec![];
    for step in 0..4 {
        sum += x.at(step);
        sums.push(sum.clone());
    }
    Tensor::stack(&sums.iter().collect::<Vec<_>>(), 0)
}

#[test]
fn graphs_are_those_of_the_run_time() -> Result<()> {
    let _alone = crate::alone();
    for function in [
        parts::Table::<1>::PICK,
        Net::FORWARD,
        loss::FUNCTION,
        Conv::<1, 1>::SAME,
        Conv::<1, 1>::HALF,
        gate::FUNCTION,
        patches::FUNCTION,
        group_norm::FUNCTION,
        running::FUNCTION,
    ] {
        assert_eq!(function.get()?.body().hash(), function.retrace()?.body().hash(), "{}", function.name());
    }
    Ok(())
}

#[test]
fn sizes_of_fields_are_their_values() -> Result<()> {
    let _alone = crate::alone();
    let mut net = Net::init();
    let named: Vec<String> =
        net.named_state().iter().map(|(name, tensor)| format!("{name} {:?}", tensor.sizes().unwrap())).collect();
    assert_eq!(named[..2], ["tables.0.rows [5, 6]", "tables.0.doubled [10]"]);
    assert_eq!(named[4..], ["hidden.weight [6, 12]", "last [12, 6]", "mean [6]"]);
    let ids = Tensor::from_slice(&[0i32, 4, 2], [3]);
    let loss = loss(&mut net, &ids, &Tensor::ones([WIDTH]));
    net.train_step(&loss, &mut Sgd::new(0.1))?;
    assert!(loss.item::<f32>()?.is_finite());
    Ok(())
}

#[test]
fn numbers_are_their_values() -> Result<()> {
    let _alone = crate::alone();
    let conv = Conv::<2, 3>::init();
    let x = Tensor::randn([2, 2, 8, 8]);
    let strided = x.conv2d(&conv.filter, None, Conv2d { stride: [2, 2], padding: [1, 1], ..default() });
    assert_eq!(conv.half(&x).to_vec::<f32>()?, strided.to_vec::<f32>()?);
    assert_eq!(conv.same(&x).sizes()?, [2, 3, 8, 8]);
    let kept = gate(&Tensor::from_slice(&[1f32, 5.0, 3.0, 2.0, 4.0, 0.0, 0.0, 0.0], [1, 8]));
    assert_eq!(kept.to_vec::<f32>()?, [0.0, 5.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0]);
    assert_eq!(patches(&Tensor::ones([2, 3, 8, 8])).sizes()?, [2, 4, 48]);
    assert!(group_norm(&Tensor::randn([2, 12, 5])).mean(.., false).item::<f32>()?.abs() < 1e-4);
    assert_eq!(running(&Tensor::ones([4, 2])).to_vec::<f32>()?, [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0]);
    Ok(())
}

#[model(functions)]
struct Halves {
    weight: Tensor<f32, 8, 4>,
}

impl Halves {
    const WIDTH: usize = 4;
    const SCALE: f32 = 0.5;
}

#[function]
impl Halves {
    fn forward<B>(&self, x: &Tensor<f32, B, 8>) -> Tensor<f32, B, 2, { Self::WIDTH / 2 }> {
        (x.matmul(&self.weight) * Self::SCALE).reshape([B, 2, Self::WIDTH / 2])
    }
}

#[test]
fn a_method_names_constants_of_its_own_struct() -> Result<()> {
    let _alone = crate::alone();
    let (halves, x) = (Halves { weight: Tensor::ones([8, 4]) }, Tensor::ones([3, 8]));
    let y = halves.forward(&x);
    assert_eq!(y.shape(), [3, 2, 2].map(Dim::from));
    assert_eq!(y.to_vec::<f32>()?, [4.0; 12]);
    Ok(())
}
