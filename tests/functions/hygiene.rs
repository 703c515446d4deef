//! Names: whatever the user's are, the expansion has its own.

use crate::same_graph;
use tinyspec::prelude::{Result, Tensor};

/// Names that an expansion might use.
macro_rules! taken_names {
    () => {
        struct Some;
        struct None;
        struct Ok;
        struct Err;
        type Result = u8;
        type Option = u8;
        type Vec = u8;
        struct Box;
        struct String;
        mod std {}
        mod core {}
        mod alloc {}
    };
}

/// Such names, in a module without a prelude.
#[allow(dead_code, non_camel_case_types, missing_docs)]
mod strange {
    #![no_implicit_prelude]

    use ::tinyspec::{Tensor, function};

    taken_names!();

    #[function]
    pub fn parameters<B>(
        inputs: &Tensor<f32, B>,
        dims: &Tensor<f32, B>,
        sizes: &Tensor<f32, B>,
        arguments: &Tensor<f32, B>,
        make: f32,
        result: f32,
        results: f32,
    ) -> Tensor<f32, B> {
        inputs + dims + sizes + arguments * make + result * results
    }

    #[function(grad)]
    pub fn loss<inputs>(
        x: &Tensor<f32, inputs>,
        one: &Tensor<f32, inputs>,
        cotangent_0: f32,
        gradients: f32,
    ) -> Tensor<f32> {
        (parameters(x, one, x, one, 1.0, 2.0, 3.0) * cotangent_0 * gradients).sum(.., false)
    }
}

/// The same names around models.
#[allow(dead_code, missing_docs)]
mod strange_models {
    #![no_implicit_prelude]

    use ::tinyspec::{Tensor, function, model};

    taken_names!();

    #[model(functions)]
    pub struct Layer<I, O> {
        pub name: Tensor<f32, I, O>,
        pub prefix: ::core::option::Option<Tensor<f32, O>>,
        pub visit: [Tensor<f32, O>; 2],
        #[model(len = 2)]
        pub make: ::std::vec::Vec<Tensor<f32, O>>,
    }

    #[function]
    impl<I, O> Layer<I, O> {
        pub fn forward<B>(&self, inputs: &Tensor<f32, B, I>) -> Tensor<f32, B, O> {
            inputs.matmul(&self.name) + &self.visit[0] + &self.make[1]
        }
    }

    #[function]
    pub fn applied<B>(make: &Layer<2, 3>, arguments: &Tensor<f32, B, 2>, tensor: f32) -> Tensor<f32, B, 3> {
        make.forward(arguments) * tensor
    }
}

/// Dims with names that constants, statics and structs have.
#[allow(dead_code)]
mod constants {
    use tinyspec::prelude::*;

    const B: usize = 7;
    static N: usize = 7;
    struct M;

    #[function]
    pub fn sizes<B, N, M>(x: &Tensor<f32, B, N, M>) -> Tensor<f32, { B * N }, M> {
        x.reshape([B * N, M]) * B
    }

    #[model(functions)]
    pub struct Layer<K, N> {
        pub w: Tensor<f32, K, N>,
    }

    #[function]
    impl<K, N> Layer<K, N> {
        pub fn forward<B>(&self, x: &Tensor<f32, B, K>) -> Tensor<f32, B, N> {
            x.matmul(&self.w).reshape([B, N]) / N
        }
    }
}

/// Keywords as names.
mod raw {
    use tinyspec::prelude::*;

    #[function]
    pub fn r#match<B>(r#type: &Tensor<f32, B>) -> Tensor<f32, B> {
        let r#loop = r#type * 2.0;
        let r#plain = r#loop;
        plain + r#type * 0.0
    }

    #[function]
    pub fn calls<r#B>(x: &Tensor<f32, B>) -> Tensor<f32, r#B> {
        r#match(x) + self::r#match(x)
    }

    #[model(functions)]
    pub struct r#Layer<r#in, O> {
        pub r#type: Tensor<f32, r#in, O>,
    }

    #[function]
    impl<r#in, O> Layer<r#in, O> {
        #[function(grad)]
        pub fn r#move(&self, x: &Tensor<f32, r#in>) -> Tensor<f32> {
            x.matmul(&self.r#type).sum(.., false)
        }
    }

    #[model]
    pub struct Outer {
        pub r#box: Layer<2, 3>,
    }

    #[function]
    pub fn moved(outer: &Outer, r#where: &Tensor<f32, 2>) -> Tensor<f32> {
        outer.r#box.r#move(r#where)
    }
}

macro_rules! typed {
    ($name:ident, $argument:ty, $result:ty, $factor:expr, $callee:expr, $size:literal) => {
        #[function]
        fn $name(x: $argument) -> $result {
            let y = x * $factor;
            let y: $result = $callee(&y);
            y.reshape([$size])
        }
    };
}
typed!(from_fragments, &Tensor<f32, 2>, Tensor<f32, 2>, 1.0 + 2.0, raw::calls, 2);

macro_rules! fields {
    ($name:ident { $($field:ident: $ty:ty),* }) => {
        #[tinyspec::model]
        struct $name { $($field: $ty),* }
    };
}
fields!(Fields { w: Tensor<f32, 2>, layer: raw::Layer<2, 3> });

#[tinyspec::function]
fn of_fields(fields: &Fields) -> Tensor<f32> {
    fields.layer.r#move(&fields.w)
}

use tinyspec::function;

#[test]
fn graphs_are_the_same() {
    let functions = [
        constants::sizes::FUNCTION,
        constants::Layer::<2, 3>::FORWARD,
        strange::parameters::FUNCTION,
        strange::loss::FUNCTION,
        strange_models::Layer::<2, 3>::FORWARD,
        strange_models::applied::FUNCTION,
        raw::r#match::FUNCTION,
        raw::calls::FUNCTION,
        raw::Layer::<2, 3>::MOVE,
        raw::moved::FUNCTION,
        from_fragments::FUNCTION,
        of_fields::FUNCTION,
    ];
    functions.into_iter().for_each(same_graph);
}

#[test]
fn names_are_as_written() -> Result<()> {
    use tinyspec::prelude::Model;
    let outer = raw::Outer::init();
    let names: Vec<String> = outer.named_parameters().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["box.type"]);
    assert_eq!(raw::r#match::FUNCTION.name(), "match");
    let x = Tensor::ones([2]);
    assert_eq!(from_fragments(&x).to_vec::<f32>()?, [12.0, 12.0]);
    Ok(())
}
