//! The names that methods of PyTorch, tinygrad, NumPy and other crates have in tinyspec: `docs/pytorch.md` for
//! messages. A test compares the two.

use tinyspec_ir::ops::METHODS;

/// Other names for methods that are not in the method table, which has its own list.
const RENAMED: &[(&str, &str)] = &[("ndim", "rank")];

/// Methods that are written as another expression in tinyspec, or that have no equivalent.
const OTHERWISE: &[(&[&str], &str)] = &[
    (&["to_dtype", "astype", "type", "float"], "`.cast(DType::F32)` converts"),
    (&["double"], "`.cast(DType::F64)` converts"),
    (&["half"], "`.cast(DType::F16)` converts"),
    (&["bfloat16"], "`.cast(DType::BF16)` converts"),
    (&["int"], "`.cast(DType::I32)` converts"),
    (&["long"], "`.cast(DType::I64)` converts"),
    (&["short"], "`.cast(DType::I16)` converts"),
    (&["char"], "`.cast(DType::I8)` converts"),
    (&["byte"], "`.cast(DType::U8)` converts"),
    (&["bool"], "`.cast(DType::Bool)` converts, and so does `.ne(0)`"),
    (
        &["concat", "concatenate", "hstack", "vstack", "dstack", "column_stack", "row_stack"],
        "`Tensor::cat(&[&a, &b], axis)` joins",
    ),
    (&["hsplit", "vsplit", "dsplit"], "`.chunk(count, axis)` splits"),
    (&["parameters_to_vector"], "`Tensor::cat(&[&a, &b], 0)` joins what `.flatten(0, -1)` gives"),
    (
        &["attention", "scaled_dot_product_attention", "multi_head_attention_forward"],
        "it is called `sdpa`, with a mask `sdpa_mask`, with options `sdpa_with`",
    ),
    (&["addmm", "addmv", "addbmm", "baddbmm", "addr"], "write `m * beta + a.matmul(b) * alpha`"),
    (&["chain_matmul"], "write `a.matmul(b).matmul(c)`"),
    (&["inner", "vdot"], "write `(x * y).sum(-1, false)`"),
    (&["dist"], "write `(x - y).norm(2.0, .., false)`"),
    (&["pdist"], "it is the upper triangle of `x.cdist(x, 2.0)`"),
    (&["cholesky_inverse"], "write `Tensor::eye(n, n, dtype).cholesky_solve(&factor, false)`"),
    (&["map", "apply"], "operations work on all elements: write them on the tensor itself, as in `x * 2.0`"),
    (&["iter", "into_iter"], "operations work on all elements; parts are `.at(…)` and `.split(1, 0)`"),
    (&["t", "T", "mT"], "`.transpose(-1, -2)` swaps the last two axes"),
    (&["fliplr"], "write `x.flip([1])`"),
    (&["flipud"], "write `x.flip([0])`"),
    (&["atleast_1d", "atleast_2d", "atleast_3d"], "`.unsqueeze(0)` adds an axis"),
    (&["diagflat"], "write `x.flatten(0, -1).diag(0)`"),
    (&["len"], "`.shape()[0]` is the size of axis 0, a dim"),
    (&["size", "dim"], "`.shape()[axis]` is the size of an axis, a dim"),
    (&["numel", "nelement"], "multiply the dims: `B * 64`"),
    (&["nbytes", "element_size", "is_floating_point", "is_signed"], "the signature says the dtype and the dims"),
    (&["get", "__getitem__"], "`.at(…)` takes parts and picks, as in `x.at((0, 1..))`"),
    (&["__setitem__", "index_put", "put"], "`.set(part, values)` gives the tensor with another part"),
    (&["__pow__"], "it is called `pow`"),
    (&["argwhere"], "how many it finds depends on data, and a graph has a known shape: call it outside"),
    (&["unique", "unique_consecutive"], "how many it finds depends on data, and a graph has a known shape"),
    (&["combinations"], "`.index_select(0, &numbers)` picks them, for numbers of `Tensor::tril_indices`"),
    (&["unravel_index"], "write `i.idiv(columns, \"floor\")` and `i.imod(columns, \"floor\")`"),
    (&["positive"], "write the tensor itself"),
    (&["copy"], "write the tensor itself: values share memory until one is assigned"),
    (&["equal"], "write `x.eq(&y).all(.., false)`"),
    (&["batch_norm"], "they are `batch_norm_train` and `batch_norm_eval`, and `batch_norm_running` for the statistics"),
    (&["softmax2d"], "write `x.softmax(1)`"),
    (&["embedding_bag"], "write `tokens.embedding(&table).sum(1, false)`"),
    (&["triplet_margin_with_distance_loss"], "write `(d(x, near) - d(x, far) + margin).relu()` for a distance `d`"),
    (&["nanquantile"], "it is `quantile` of what `masked_select` leaves, outside"),
    (&["bartlett_window"], "write `1.0 - (ramp * 2.0 / n - 1.0).abs()`"),
    (&["kaiser_window"], "write `(beta * (1.0 - r.square()).sqrt()).i0() / beta.i0()`"),
    (&["stft", "istft"], "`unfold` gives windows: multiply them with `cos` and `sin` of the frequencies"),
    (&["rand", "geometric", "log_normal", "cauchy", "gamma", "poisson", "gumbel_softmax"], DRAWN),
    (
        &["dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"],
        "draw the mask outside, and pass it: `x * mask`",
    ),
    (&["rrelu"], "draw the slopes outside, and pass them: `.leaky_relu(slope)` has one for all"),
    (&["manual_seed", "get_rng_state", "set_rng_state"], DRAWN),
    (
        &["new", "as_tensor", "tensor", "from_numpy", "frombuffer", "scalar", "scalar_tensor"],
        "values come from outside: pass the tensor, or build it of `arange`, `full` and `eye`",
    ),
    (&["empty", "empty_like"], "`Tensor::zeros([B, 64])` has values"),
    (&["no_grad"], "gradients exist for whatever `grad(&loss, &[…])` is asked for; `.detach()` cuts"),
    (&["register_buffer"], "`#[model(buffer)]` before a field says it, and a `&mut self` method assigns it"),
    (&["clip_grad_value"], "`nn::clip_norm` and `nn::clip_value` clip gradients, outside"),
    (&["compile", "jit"], "a #[function] is compiled"),
    (&["shard", "distributed"], "`.to([\"cpu:0\", \"cpu:1\"])` shares a value between devices, outside"),
    (
        &["complex", "real", "imag", "conj", "angle", "polar", "view_as_complex"],
        "there is no complex dtype; keep two tensors",
    ),
    (
        &[
            "svd",
            "eigh",
            "eigvals",
            "pinv",
            "matrix_rank",
            "cond",
            "svdvals",
            "lobpcg",
            "pca_lowrank",
            "matrix_exp",
            "ldl_factor",
            "geqrf",
            "ormqr",
            "householder_product",
        ],
        "it iterates until data say that it ends; `qr`, `cholesky`, `lu` and `solve` are here",
    ),
    (
        &["polygamma", "zeta", "multigammaln", "gammainc", "igamma", "i1", "bessel_j0", "airy_ai"],
        "it is not here; `lgamma`, `digamma`, `i0` and `erf` are",
    ),
    (&["adaptive_log_softmax_with_loss"], "it is not here: `docs/pytorch.md` lists the losses"),
    (
        &["max_unpool1d", "max_unpool2d", "max_unpool3d", "fractional_max_pool2d", "return_indices"],
        "a pool gives values only; `scatter` puts values at places",
    ),
    (&["sparse", "to_sparse", "sspaddmm"], "all tensors are dense"),
    (&["quantize_per_tensor"], "integers are ordinary tensors: `.round()` and `.cast(DType::I8)`"),
    (&["vmap"], "write the function with one more dim"),
    (&["spectral_norm", "prune", "parametrize"], "compute the weight in the function, of the fields of the model"),
];

const DRAWN: &str = "random numbers are drawn outside, as with `Tensor::uniform`, and passed";

/// Methods with another name in tinyspec, and that name.
fn renamed() -> impl Iterator<Item = (&'static str, &'static str)> {
    let of_table = METHODS.iter().flat_map(|row| row.aliases.iter().map(|alias| (*alias, row.name)));
    of_table.chain(RENAMED.iter().copied())
}

/// Advice for a method of another library.
pub(super) fn hint(name: &str) -> Option<String> {
    if let Some((_, here)) = renamed().find(|(there, _)| *there == name) {
        return Some(format!("it is called `{here}`"));
    }
    OTHERWISE.iter().find(|(there, _)| there.contains(&name)).map(|(_, hint)| (*hint).to_string())
}

#[cfg(test)]
mod tests {
    use super::super::method::OUTSIDE_THE_TABLE;
    use super::super::pick::PICKING;
    use super::super::words::AT_RUN_TIME;
    use super::*;
    use std::collections::BTreeSet;

    fn is_here(name: &str) -> bool {
        METHODS.iter().any(|row| row.name == name) || OUTSIDE_THE_TABLE.contains(&name) || PICKING.contains(&name)
    }

    /// Every method name of other libraries that the page lists gets a hint.
    #[test]
    fn methods_of_the_page_have_hints() {
        let page = include_str!("../../../../../docs/pytorch.md");
        let tables = page
            .split("<!-- ")
            .filter(|part| ["other -->", "composed -->", "missing -->"].iter().any(|name| part.starts_with(name)));
        let there = tables.flat_map(str::lines).filter_map(|row| row.strip_prefix("| ")?.split_once(" | "));
        let names = there.flat_map(|(there, _)| there.split('`').skip(1).step_by(2));
        let is_method = |name: &&str| name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        // Options of PyTorch, which are not methods.
        let options = ["num_layers", "bidirectional", "weight_decay"];
        let silent: Vec<&str> = names
            .filter(is_method)
            .filter(|name| !options.contains(name) && !is_here(name))
            .filter(|name| {
                let plain = name.strip_suffix('_').filter(|_| !name.starts_with('_')).unwrap_or(name);
                hint(plain).is_none() && !is_here(plain) && AT_RUN_TIME.iter().all(|(known, _)| *known != plain)
            })
            .collect();
        assert!(silent.is_empty(), "nothing is said of {silent:?}");
    }

    #[test]
    fn hints_are_of_what_is_not_here_and_name_what_is() {
        let otherwise = OTHERWISE.iter().flat_map(|(there, _)| there.iter().copied());
        let there = renamed().map(|(there, _)| there).chain(otherwise);
        let mut seen = BTreeSet::new();
        for name in there {
            assert!(seen.insert(name), "`{name}` stands there twice");
            assert!(!is_here(name), "`{name}` is here");
        }
        for (_, here) in renamed() {
            assert!(is_here(here), "`{here}` is not here");
        }
    }
}
