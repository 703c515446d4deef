//! Special functions against values of 15 digits and more (mpmath, SciPy), in f64 and f32.

use crate::support::on_each_device;
use tinyspec_core::{Error, Tensor};
use tinyspec_ir::DType;

type Function = fn(&Tensor) -> Tensor;

/// Points and values, and how far off f64 and f32 may be, as a share of what is at least 1.
struct Case {
    name: &'static str,
    function: Function,
    points: &'static [f64],
    values: &'static [f64],
    bounds: [f64; 2],
}

const GAMMA: &[f64] = &[1e-5, 0.1, 0.5, 1.0, 1.5, 2.0, 3.7, 10.0, 100.5, -0.5, -1.25, -7.3];
const BESSEL: &[f64] = &[0.0, 0.1, 1.0, -3.5, 7.9, 8.1, 25.0, 600.0];

const CASES: [Case; 7] = [
    Case {
        name: "erfinv",
        function: Tensor::erfinv,
        points: &[-0.999999, -0.9, -0.3, 0.0, 1e-10, 0.5, 0.95, 0.9999999999],
        values: &[
            -3.458910737275499,
            -1.1630871536766743,
            -0.2724627147267543,
            0.0,
            8.862269254527581e-11,
            0.4769362762044699,
            1.3859038243496777,
            4.572824958544925,
        ],
        bounds: [1e-14, f64::INFINITY],
    },
    Case {
        name: "ndtr",
        function: Tensor::ndtr,
        points: &[-10.0, -2.5, 0.0, 0.3, 5.0],
        values: &[7.61985302416047e-24, 0.006209665325776132, 0.5, 0.6179114221889526, 0.9999997133484281],
        bounds: [1e-15, 2e-7],
    },
    Case {
        name: "ndtri",
        function: Tensor::ndtri,
        points: &[1e-300, 1e-20, 0.001, 0.3, 0.5, 0.975, 0.999999],
        values: &[
            -37.0470962993612,
            -9.262340089798409,
            -3.090232306167813,
            -0.5244005127080409,
            0.0,
            1.959963984540054,
            4.753424308817087,
        ],
        bounds: [1e-13, f64::INFINITY],
    },
    Case {
        name: "lgamma",
        function: Tensor::lgamma,
        points: GAMMA,
        values: &[
            11.512919692895826,
            2.252712651734206,
            0.5723649429247001,
            0.0,
            -0.12078223763524518,
            0.0,
            1.428072326665388,
            12.801827480081469,
            361.4355404677776,
            1.2655121234846454,
            1.3664317612369763,
            -7.779101629826852,
        ],
        bounds: [2e-14, 1e-6],
    },
    Case {
        name: "digamma",
        function: Tensor::digamma,
        points: GAMMA,
        values: &[
            -100000.57719921567,
            -10.423754940411076,
            -1.9635100260214235,
            -0.5772156649015329,
            0.03648997397857652,
            0.42278433509846713,
            1.1671535393615113,
            2.251752589066721,
            4.605174352581845,
            0.03648997397857652,
            3.714139120213528,
            4.33730730551005,
        ],
        bounds: [2e-14, 4e-6],
    },
    Case {
        name: "i0",
        function: Tensor::i0,
        points: BESSEL,
        values: &[
            1.0,
            1.0025015629340956,
            1.2660658777520084,
            7.3782034322254795,
            389.406283282158,
            469.5006067101215,
            5774560606.4663105,
            6.1463054039368444e258,
        ],
        bounds: [1e-13, f64::INFINITY],
    },
    Case {
        name: "i0e",
        function: Tensor::i0e,
        points: BESSEL,
        values: &[
            1.0,
            0.9071009257823011,
            0.4657596075936405,
            0.22280243801077915,
            0.14436986414104191,
            0.14251180948829528,
            0.0801967735474367,
            0.01629014665630598,
        ],
        bounds: [1e-15, 2e-7],
    },
];

#[test]
fn values_of_the_literature() {
    on_each_device(|| {
        for Case { name, function, points, values, bounds } in &CASES {
            let x = Tensor::from_slice(points, [points.len()]);
            for (dtype, bound) in [DType::F64, DType::F32].into_iter().zip(bounds) {
                let got = function(&x.cast(dtype)).cast(DType::F64).to_vec::<f64>()?;
                for ((x, got), want) in points.iter().zip(got).zip(*values) {
                    let distance = (got - want).abs() / want.abs().max(1.0);
                    assert!(distance <= *bound || bound.is_infinite(), "{name}({x}) {dtype}: {got} {want}");
                }
            }
        }
        Ok(())
    });
}

#[test]
fn inverses_and_their_ends() {
    on_each_device(|| {
        let points: Vec<f32> = (-999..1000).map(|i| i as f32 / 1000.0).collect();
        let y = Tensor::from_slice(&points, [points.len()]);
        let back = (y.erfinv().erf() - &y).abs().max(.., false).item::<f32>()?;
        assert!(back <= 2e-7, "{back}");
        let p = (&y + 1.0) * 0.5;
        let back = (p.ndtri().ndtr() - &p).abs().max(.., false).item::<f32>()?;
        assert!(back <= 3e-7, "{back}");
        let show = |x: Tensor| Ok::<_, Error>(format!("{:?}", x.to_vec::<f32>()?));
        let ends = Tensor::from_slice(&[-1f32, 1.0, 1.5, f32::NAN], [4]);
        assert_eq!(show(ends.erfinv())?, "[-inf, inf, NaN, NaN]");
        let ends = Tensor::from_slice(&[0f32, 1.0, -0.5, 1.5], [4]);
        assert_eq!(show(ends.ndtri())?, "[-inf, inf, NaN, NaN]");
        let ends = Tensor::from_slice(&[0f32, -1.0, f32::INFINITY, f32::NAN, f32::NEG_INFINITY], [5]);
        assert_eq!(show(ends.lgamma())?, "[inf, inf, inf, NaN, inf]");
        assert_eq!(show(ends.digamma())?, "[-inf, NaN, inf, NaN, NaN]");
        assert_eq!(show(ends.narrow(0, 2, 3).i0())?, "[inf, NaN, inf]");
        assert_eq!(show(ends.narrow(0, 2, 3).i0e())?, "[0.0, NaN, 0.0]");
        let p = Tensor::from_slice(&[0f32, 1.0, -1.0], [3]);
        assert_eq!(show(p.entr())?, "[0.0, 0.0, -inf]");
        assert_eq!(show(p.xlog1py(-1.0).narrow(0, 0, 2))?, "[0.0, -inf]");
        Ok(())
    });
}

#[test]
fn powers_of_one_and_exponents_that_a_zero_scales() {
    let x = Tensor::from_slice(&[0.0f32, 1.0, -2.5, 1e30], [4]);
    assert_eq!(x.const_pow(1.0).to_vec::<f32>().unwrap(), [1.0; 4]);
    assert_eq!(x.mul(0.0).exp2().to_vec::<f32>().unwrap(), [1.0; 4]);
    let ends = x.slice(0, 1, 4, 1).const_pow(f64::INFINITY).to_vec::<f32>().unwrap();
    assert_eq!(ends, [f32::INFINITY, 0.0, f32::INFINITY]);
}

#[test]
fn angles_and_lengths_of_what_is_no_number() {
    on_each_device(|| {
        let (nan, infinity) = (f32::NAN, f32::INFINITY);
        let of = |data: &[f32]| Tensor::from_slice(data, [data.len()]);
        let show = |x: Tensor| Ok::<_, Error>(format!("{:?}", x.to_vec::<f32>()?));
        let y = of(&[nan, nan, infinity, -infinity, nan, 1.0, nan, 0.0]);
        let x = of(&[0.0, -0.0, nan, nan, infinity, nan, nan, nan]);
        assert_eq!(show(y.atan2(&x))?, format!("{:?}", [nan; 8]));
        let x = of(&[0.0, nan, nan, nan, 1.0, infinity, -infinity, infinity]);
        let y = of(&[nan, 0.0, infinity, nan, nan, nan, nan, infinity]);
        assert_eq!(show(x.hypot(&y))?, "[NaN, NaN, inf, NaN, NaN, inf, inf, inf]");
        Ok(())
    });
}

#[test]
fn gamma_and_its_kin_at_single_points() {
    on_each_device(|| {
        let x = Tensor::from_slice(&[1f64, 2.0], [2]);
        let roots = x.lgamma();
        assert_eq!(roots.to_vec::<f64>()?, [0.0, 0.0]);
        // ψ(1) = -γ, ψ(2) = 1 - γ
        let euler = 0.5772156649015329;
        let slopes = tinyspec_core::grad(&roots.sum(.., false), &[&x])?[0].to_vec::<f64>()?;
        assert!((slopes[0] + euler).abs() < 1e-13 && (slopes[1] - 1.0 + euler).abs() < 1e-13, "{slopes:?}");
        let zeros = Tensor::from_slice(&[0f64, -0.0], [2]);
        assert_eq!(zeros.digamma().to_vec::<f64>()?, [f64::NEG_INFINITY, f64::INFINITY]);
        // The least f32 is 2⁻¹⁴⁹; the tail of a normal distribution is that small at -14.1238….
        let least = Tensor::from_slice(&[f32::from_bits(1), 1e-40], [2]).ndtri().to_vec::<f32>()?;
        let tail =
            |x: f64| (-x * x / 2.0).exp() / (x * std::f64::consts::TAU.sqrt()) * (1.0 - x.powi(-2) + 3.0 * x.powi(-4));
        for (x, p) in least.iter().zip([2f64.powi(-149), f64::from(1e-40f32)]) {
            // The slope of the logarithm of the tail is about x.
            let off = (tail(f64::from(-x)) / p).ln() / f64::from(*x);
            assert!(off.abs() < 1e-4, "{x}: {off}");
        }
        Ok(())
    });
}
