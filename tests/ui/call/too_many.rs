use tinyspec::prelude::*;

macro_rules! functions {
    ($($name:ident)*) => { $(
        #[function]
        fn $name<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
            x + 1
        }
    )* };
}

functions! {
    f0 f1 f2 f3 f4 f5 f6 f7 f8 f9 f10 f11 f12 f13 f14 f15
    f16 f17 f18 f19 f20 f21 f22 f23 f24 f25 f26 f27 f28 f29 f30 f31
    f32 f33 f34 f35 f36 f37 f38 f39 f40 f41 f42 f43 f44 f45 f46 f47
    f48 f49 f50 f51 f52 f53 f54 f55 f56 f57 f58 f59 f60
}

#[function]
fn all<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    let mut y = x.clone();
    y = f0(&y);
    y = f1(&y);
    y = f2(&y);
    y = f3(&y);
    y = f4(&y);
    y = f5(&y);
    y = f6(&y);
    y = f7(&y);
    y = f8(&y);
    y = f9(&y);
    y = f10(&y);
    y = f11(&y);
    y = f12(&y);
    y = f13(&y);
    y = f14(&y);
    y = f15(&y);
    y = f16(&y);
    y = f17(&y);
    y = f18(&y);
    y = f19(&y);
    y = f20(&y);
    y = f21(&y);
    y = f22(&y);
    y = f23(&y);
    y = f24(&y);
    y = f25(&y);
    y = f26(&y);
    y = f27(&y);
    y = f28(&y);
    y = f29(&y);
    y = f30(&y);
    y = f31(&y);
    y = f32(&y);
    y = f33(&y);
    y = f34(&y);
    y = f35(&y);
    y = f36(&y);
    y = f37(&y);
    y = f38(&y);
    y = f39(&y);
    y = f40(&y);
    y = f41(&y);
    y = f42(&y);
    y = f43(&y);
    y = f44(&y);
    y = f45(&y);
    y = f46(&y);
    y = f47(&y);
    y = f48(&y);
    y = f49(&y);
    y = f50(&y);
    y = f51(&y);
    y = f52(&y);
    y = f53(&y);
    y = f54(&y);
    y = f55(&y);
    y = f56(&y);
    y = f57(&y);
    y = f58(&y);
    y = f59(&y);
    y = f60(&y);
    y
}

fn main() {}
