use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<f32, N>, x: &Global<f32, N>) {
        y.fill(0.0);
        for i in global(N) {
            y[i].expp();
            y[i].exp();
            unheard_of(x, y[i]);
            y[i] = 0.0;
        }
    }
}

fn main() {}
