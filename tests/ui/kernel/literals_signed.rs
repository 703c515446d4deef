use tinyspec::uop;

uop! {
    fn k(y: &mut Global<i32, 4>) {
        for i in global(1) {
            y[0] = -2147483649i32;
            y[1] = 2147483648i32;
            y[2] = -1u8 as i32;
        }
    }
}

fn main() {}
