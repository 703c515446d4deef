use tinyspec::uop;

uop! {
    struct Kernel;
}

fn main() {}
