//! Calls: every way in which Rust reaches a function reaches its shapes.

use crate::{on_both, same_graph};
use blocks::prelude::*;
use layers::dense as affine;
use tinyspec::prelude::*;

#[function]
fn before_its_definition<B>(x: &Tensor<f32, B, 4>) -> Tensor<f32, B> {
    // The shape of `h` is inferred: nothing says it but the callee.
    let h = halved(x);
    h.sum(1, false)
}

#[function]
fn halved<B, C>(x: &Tensor<f32, B, C>) -> Tensor<f32, B, C> {
    x * 0.5
}

mod nested {
    use tinyspec::prelude::*;

    pub(super) mod deeper {
        use tinyspec::prelude::*;

        #[function]
        pub(in super::super) fn squared<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
            x * x
        }

        #[function]
        pub(crate) fn through_super<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
            super::private(x) + crate::calls::halved(&x.unsqueeze(0)).squeeze(0)
        }
    }

    #[function]
    fn private<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
        deeper::squared(x) + self::deeper::squared(x)
    }

    pub(super) use deeper::squared as power_of_two;
    pub use private_module::reexported;

    mod private_module {
        use tinyspec::prelude::*;

        #[function]
        pub fn reexported<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
            x - 1.0
        }
    }

    pub mod relu_of {
        use tinyspec::prelude::*;

        #[function]
        pub fn act<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
            x.relu()
        }
    }

    pub mod exp_of {
        use tinyspec::prelude::*;

        #[function]
        pub fn act<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
            x.exp()
        }
    }
}

use nested::{deeper, power_of_two, reexported};

#[function]
fn paths<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    let y = deeper::squared(x) + power_of_two(x);
    let z = deeper::through_super(&y);
    reexported(&z) + nested::reexported(&crate::calls::nested::reexported(x))
}

#[function]
fn one_name_twice<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    nested::relu_of::act(x) + nested::exp_of::act(x) + nested::relu_of::act(&-x)
}

#[function]
fn imported_in_the_body<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    use nested::exp_of::act;
    let y = act(x);
    {
        use nested::relu_of::act as rectified;
        rectified(&y)
    }
}

#[function]
fn a_local_of_the_same_name<B>(x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    let halved = halved(x);
    halved + 1.0
}

macro_rules! powers {
    ($($name:ident $by:expr;)*) => { $(
        #[function]
        fn $name<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
            x.pow_const($by)
        }
    )* };
}
powers! { cubed 3.0; to_the_fourth 4.0; }

#[function]
fn made_by_a_macro<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    cubed(x) + to_the_fourth(x)
}

#[function]
fn of_other_crates<B>(x: &Tensor<f32, B, 4>, w: &Tensor<f32, 4, 8>, b: &Tensor<f32, 8>) -> Tensor<f32, B, 16> {
    let h = mlp(&normalized(x), w, b);
    let same = layers::widened(&act(&affine(x, w, b)), 0.5);
    let (mean, _) = moments(&same);
    h + same.exp() * 0.0 + mean * blocks::normalized(&::layers::activated(&same)) * 0.0
}

#[test]
fn embedded_and_traced_graphs_are_equal() {
    let functions = [
        before_its_definition::FUNCTION,
        nested::deeper::through_super::FUNCTION,
        paths::FUNCTION,
        one_name_twice::FUNCTION,
        imported_in_the_body::FUNCTION,
        a_local_of_the_same_name::FUNCTION,
        made_by_a_macro::FUNCTION,
        of_other_crates::FUNCTION,
        blocks::mlp::FUNCTION,
        blocks::normalized::FUNCTION,
        layers::dense::FUNCTION,
        layers::widened::FUNCTION,
        layers::moments::FUNCTION,
        layers::act::FUNCTION,
    ];
    functions.into_iter().for_each(same_graph);
}

#[function]
fn layer(x: &Tensor<f32, 8, 8>, w: &Tensor<f32, 8, 8>) -> Tensor<f32, 8, 8> {
    x + x.matmul(w).tanh()
}

#[function]
fn tower(x: &Tensor<f32, 8, 8>, a: &Tensor<f32, 8, 8>, b: &Tensor<f32, 8, 8>) -> Tensor<f32, 8, 8> {
    let x = layer(&layer(x, a), b);
    let x = layer(&layer(&x, a), b);
    layer(&x, a)
}

/// Its text shows the Functions; its values and gradients are those of the operations.
#[test]
fn a_layer_that_is_called_often_stays_a_function() -> Result<()> {
    same_graph(tower::FUNCTION);
    let body = tower::FUNCTION.get()?.body();
    let printed = tinyspec::ir::text::print(body.graph(), body.outputs());
    assert_eq!(printed.matches("= function(").count(), 5, "{printed}");
    let read: Function = printed.parse()?;
    on_both(|| {
        let [x, a, b] = [1, 2, 3].map(|seed| (Tensor::arange(64) * seed).sin().reshape([8, 8]) * 0.3);
        let loop_of = |x: &Tensor| [&a, &b, &a, &b, &a].into_iter().fold(x.clone(), |x, w| &x + x.matmul(w).tanh());
        let wanted = loop_of(&x).to_vec::<f32>()?;
        let gradients = |y: &Tensor| -> Result<Vec<Vec<f32>>> {
            grad(&(y * y).sum(.., false), &[&x, &a, &b])?.iter().map(Tensor::to_vec::<f32>).collect()
        };
        let close = |found: &[f32], wanted: &[f32]| {
            found.len() == wanted.len()
                && found.iter().zip(wanted).all(|(a, b)| (a - b).abs() <= 1e-4 * b.abs().max(1.0))
        };
        let run = tower.prepare(&[&x, &a, &b])?;
        let mut out = run.outputs()?;
        run.call(&mut out, &[&x, &a, &b])?;
        let called = tower(&x, &a, &b);
        let from_text = read.call(&[&x, &a, &b])[0].to_vec::<f32>()?;
        for found in [called.to_vec::<f32>()?, out[0].to_vec::<f32>()?, from_text] {
            assert!(close(&found, &wanted), "{found:?} instead of {wanted:?}");
        }
        let called = tower(&x, &a, &b);
        for (found, wanted) in gradients(&called)?.iter().zip(gradients(&loop_of(&x))?) {
            assert!(close(found, &wanted), "{found:?} instead of {wanted:?}");
        }
        Ok(())
    })
}

#[test]
fn inside_another_function() -> Result<()> {
    #[function]
    fn inner<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
        x + 1.0
    }
    #[function]
    fn outer<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
        inner(&inner(x))
    }
    same_graph(outer::FUNCTION);
    assert_eq!(outer(&Tensor::ones([2])).to_vec::<f32>()?, [3.0, 3.0]);
    Ok(())
}

#[test]
fn calls_compute_what_the_rust_code_says() -> Result<()> {
    on_both(|| {
        let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0], [1, 4]);
        assert_eq!(before_its_definition(&x).to_vec::<f32>()?, [5.0]);
        let x = Tensor::from_slice(&[2f32], [1]);
        // y = 4 + 4, z = 2 * 64 + 4, then (z - 1) + (x - 2).
        assert_eq!(paths(&x).to_vec::<f32>()?, [8.0 * 8.0 * 2.0 + 4.0 - 1.0]);
        let acts = one_name_twice(&x).to_vec::<f32>()?[0];
        assert!((acts - (2.0 + 2f32.exp())).abs() < 1e-5, "{acts}");
        assert_eq!(made_by_a_macro(&x).to_vec::<f32>()?, [24.0]);
        assert_eq!(a_local_of_the_same_name(&Tensor::ones([1, 4])).to_vec::<f32>()?, [1.5; 4]);

        let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0], [1, 4]);
        let y = of_other_crates(&x, &Tensor::ones([4, 8]), &Tensor::ones([8]));
        assert_eq!(y.sizes()?, [1, 16]);
        // Normalised rows sum to 0: relu(0 + 1) * 2, and half of it.
        let found = y.to_vec::<f32>()?;
        let expected = [[2f32; 8], [1f32; 8]].concat();
        assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-3), "{found:?}");
        Ok(())
    })
}

#[function]
fn rows<N>(x: &Tensor<f32, N, 2>) -> Tensor<f32, N> {
    x.sum(1, false)
}

#[function]
fn products<B>(x: &Tensor<f32, B, 8>) -> Tensor<f32, { B * 4 }> {
    rows(&x.reshape([B * 4, 2]))
}

#[test]
fn a_product_of_dims_is_a_dim() -> Result<()> {
    assert_eq!(products(&Tensor::ones([3, 8])).to_vec::<f32>()?, [2.0; 12]);
    Ok(())
}

/// A crate that has no `::tinyspec`.
#[function]
fn through_renamed<B>(x: &Tensor<f32, B, 4>, w: &Tensor<f32, 4, 3>) -> Tensor<f32> {
    renamed::loss(x, w, 0.5)
}

#[test]
fn crates_may_know_tinyspec_by_other_names() -> Result<()> {
    let (x, w) = (Tensor::from_slice(&[1f32, -2.0, 3.0, 0.5], [1, 4]), Tensor::ones([4, 3]));
    let functions = [through_renamed::FUNCTION, renamed::Layer::<4, 4>::FORWARD, renamed::through::forward::FUNCTION];
    functions.into_iter().for_each(same_graph);
    assert_eq!(through_renamed(&x, &w).item::<f32>()?, 0.5 * 3.0 * 2.5 * 2.5);
    let [dx, dw, dscale] = renamed::loss::grad(&x, &w, 0.5);
    assert_eq!(dx.to_vec::<f32>()?, [7.5; 4]);
    assert_eq!(dw.sizes()?, [4, 3]);
    assert_eq!(dscale.item::<f32>()?, 18.75);
    let stack = renamed::through::Stack::init();
    let by_hand = stack.layers().iter().fold(&x + &x, |h, layer| layer.forward(&h));
    assert_eq!(renamed::through::forward(&stack, &x).to_vec::<f32>()?, by_hand.to_vec::<f32>()?);
    Ok(())
}

mod widths {
    use tinyspec::prelude::*;

    pub const W: usize = 3;

    #[function]
    pub fn made() -> Tensor<f32, W> {
        Tensor::zeros([W])
    }

    #[function]
    pub fn wider<B>(x: &Tensor<f32, B>) -> Tensor<f32, { B + W }> {
        Tensor::cat(&[x, &made()], 0)
    }
}

/// Constants that only results have.
#[function]
fn uses_made() -> Tensor<f32, 3> {
    widths::made()
}

#[function]
fn names_made() -> Tensor<f32, { widths::W }> {
    widths::made()
}

#[function]
fn uses_wider<B>(x: &Tensor<f32, B>) -> (Tensor<f32, { B + 3 }>, Tensor<f32, { B + widths::W }>) {
    (widths::wider(x), widths::wider(x) * 2.0)
}

#[test]
fn constants_of_results() -> Result<()> {
    [uses_made::FUNCTION, names_made::FUNCTION, uses_wider::FUNCTION].into_iter().for_each(same_graph);
    assert_eq!(uses_wider(&Tensor::ones([2])).1.to_vec::<f32>()?, [2.0, 2.0, 0.0, 0.0, 0.0]);
    Ok(())
}

/// Dims that are products: with constants of the callee's scope, which callers do not name, and with other dims.
mod product_dims {
    use tinyspec::prelude::*;

    pub const WIDTH: usize = 3;
    pub const HEIGHT: usize = 4;

    #[function]
    pub fn rows<B>(x: &Tensor<f32, { B * WIDTH }>) -> Tensor<f32, { B * WIDTH }> {
        x.reshape([B, WIDTH]).softmax(1).reshape([B * WIDTH])
    }

    #[function]
    pub fn picture(x: &Tensor<f32, { WIDTH * HEIGHT }>) -> Tensor<f32, HEIGHT, WIDTH> {
        x.reshape([HEIGHT, WIDTH])
    }

    #[function]
    pub fn table<B, V>(x: &Tensor<f32, { B * V }>, rows: &Tensor<f32, B>) -> Tensor<f32, B, V> {
        x.reshape([B, V]) + rows.unsqueeze(1)
    }

    pub mod wide {
        use tinyspec::prelude::*;

        const WIDTH: usize = 6;

        #[function]
        pub fn rows<B>(x: &Tensor<f32, { B * WIDTH }>) -> Tensor<f32, { B * WIDTH }> {
            x.reshape([B, WIDTH]).softmax(1).reshape([B * WIDTH])
        }
    }
}

#[function]
fn of_numbers(x: &Tensor<f32, 12>, y: &Tensor<f32, 4>) -> Tensor<f32, 4, 3> {
    let sum = product_dims::rows(x) + product_dims::wide::rows(x) * 2.0 + x;
    product_dims::picture(&sum) + product_dims::table(x, y).sum(1, true)
}

#[function]
fn of_dims<N>(x: &Tensor<f32, { N * product_dims::WIDTH }>, y: &Tensor<f32, N>) -> Tensor<f32, N, 3> {
    product_dims::table(&(product_dims::rows(x) + x), y)
}

#[test]
fn products_bind_what_is_unknown_in_them() -> Result<()> {
    [of_numbers::FUNCTION, of_dims::FUNCTION, product_dims::table::FUNCTION].into_iter().for_each(same_graph);
    on_both(|| {
        let (x, y) = (Tensor::ones([12]), Tensor::from_slice(&[0f32, 1.0, 2.0, 3.0], [4]));
        let found = of_numbers(&x, &y).to_vec::<f32>()?;
        let expected = (0..12).map(|i| 1.0 / 3.0 + 2.0 / 6.0 + 1.0 + 3.0 * (1.0 + (i / 3) as f32));
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5), "{found:?}");
        let found = of_dims(&x, &y).to_vec::<f32>()?;
        let expected = (0..12).map(|i| 1.0 / 3.0 + 1.0 + (i / 3) as f32);
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5), "{found:?}");
        // 13 is not a product with 3.
        assert!(product_dims::rows(&Tensor::ones([13])).to_vec::<f32>().is_err());
        Ok(())
    })
}
