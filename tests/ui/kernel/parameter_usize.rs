use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<f32, N>, n: usize, h: f16) {
        for i in global(n) { y[i] = h as f32; }
    }
}

fn main() { k(&mut tinyspec::Tensor::ones([4]), 4, 1.0); }
