//! The blocks by family, a file each. Sizes are those of real models, as far as these run on a CPU.

use super::block::Block;

macro_rules! families {
    ($($family:ident)*) => {
        $(mod $family;)*

        /// All of them.
        pub fn all() -> Vec<Block> {
            let mut all = Vec::new();
            $(all.extend($family::blocks());)*
            all
        }
    };
}

families! {
    attention gates norms convolutions depthwise pools recurrent losses gathers sorts
    scans optimisers factorisations einsums distances stencils finance simulation imaging quantised
}
