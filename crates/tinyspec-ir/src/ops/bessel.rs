//! Bessel's functions. The coefficients interpolate `e^-x I₀(x)` at Chebyshev's points, in 60 digits; highest power first.

use super::elementwise::{abs, exp, polynomial, scale, shift, sqrt};
use super::{dtype_of, in_wide, like};
use crate::{Builder, DType, NodeId, Op, Result};

/// Coefficients for f32 and narrower, and for f64.
type Coefficients<'c> = [&'c [f64]; 2];

/// `e^-x I₀(x)` at `x - 4` for x in 0..8.
const SMALL: Coefficients<'static> = [
    &[
        4.4105626297559205e-13,
        -4.067389005033839e-12,
        5.869407867979771e-12,
        -2.5531921550742886e-11,
        8.323519698896926e-10,
        -5.887454093672187e-09,
        2.7736215450193548e-08,
        -1.5351258595543417e-07,
        8.714578563858942e-07,
        -4.2957785153543856e-06,
        1.9341138018783654e-05,
        -8.283966620961257e-05,
        0.0003412003720783674,
        -0.001391456236243231,
        0.00590722171816672,
        -0.028251030739065156,
        0.2070019212239867,
    ],
    &[
        -8.892738931190824e-25,
        1.2776437161523408e-23,
        -7.808239677193748e-23,
        9.589318305219553e-22,
        -1.6144276617239195e-20,
        1.937747995732053e-19,
        -2.09053368152095e-18,
        2.2725028367729776e-17,
        -2.3849155772158844e-16,
        2.365903042251178e-15,
        -2.2286233961679925e-14,
        1.993524135099254e-13,
        -1.6874615401131482e-12,
        1.3475002795154674e-11,
        -1.0121459772172295e-10,
        7.128754828244111e-10,
        -4.692710711784936e-09,
        2.877990181576671e-08,
        -1.6397838354955791e-07,
        8.663487507994346e-07,
        -4.2444577406637e-06,
        1.9354303205238265e-05,
        -8.297205167571528e-05,
        0.0003411852194323635,
        -0.001391303771261926,
        0.005907226783747744,
        -0.028251081721551368,
        0.20700192122398667,
    ],
];

/// `√x e^-x I₀(x)` at `16/x - 1` for x from 8 on.
const LARGE: Coefficients<'static> = [
    &[
        1.0829898259271648e-07,
        3.6317103052767936e-07,
        1.4767921099425512e-06,
        1.1111525456650722e-05,
        0.00013621684311530051,
        0.003360555851925354,
        0.4021765094450081,
    ],
    &[
        -9.887043830443403e-11,
        2.264798224527865e-10,
        7.197534582344068e-10,
        -1.3320154008063538e-09,
        -2.682319925322526e-09,
        3.2885023855719443e-09,
        7.01585459986679e-09,
        -2.936770695094053e-09,
        -1.3186462085681747e-08,
        -7.711547780444459e-09,
        7.497573713320946e-09,
        2.1786299931335195e-08,
        3.9334363714914886e-08,
        8.868756452767316e-08,
        2.9735920977050024e-07,
        1.483850178033181e-06,
        1.1143033809949664e-05,
        0.00013621607431419543,
        0.0033605519836677825,
        0.4021765094450085,
    ],
];

fn series(b: &mut dyn Builder, x: NodeId, [short, long]: Coefficients) -> Result<NodeId> {
    let coefficients = if dtype_of(b, x) == DType::F64 { long } else { short };
    polynomial(b, x, coefficients)
}

/// `e^-|x| I₀(x)`: the modified function of order 0, without its growth.
pub fn i0e(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    in_wide(b, x, |b, x| {
        let x = abs(b, x)?;
        scaled(b, x)
    })
}

fn scaled(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let bound = like(b, x, 8.0);
    let is_far = b.alu(Op::CmpLt, &[bound, x])?;
    let near = b.alu(Op::Where, &[is_far, bound, x])?;
    let near = shift(b, near, -4.0)?;
    let near = series(b, near, SMALL)?;
    let far = b.alu(Op::Where, &[is_far, x, bound])?;
    let inverse = b.alu(Op::Recip, &[far])?;
    let place = scale(b, inverse, 16.0)?;
    let place = shift(b, place, -1.0)?;
    let value = series(b, place, LARGE)?;
    let root = sqrt(b, far)?;
    let far = b.alu(Op::Div, &[value, root])?;
    b.alu(Op::Where, &[is_far, far, near])
}

/// `I₀(x)`, the modified function of order 0.
pub fn i0(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    in_wide(b, x, |b, x| {
        let x = abs(b, x)?;
        let scaled = scaled(b, x)?;
        // In two halves: the whole growth would be infinite before the product is.
        let half = scale(b, x, 0.5)?;
        let half = exp(b, half)?;
        let value = b.alu(Op::Mul, &[half, scaled])?;
        let value = b.alu(Op::Mul, &[value, half])?;
        let infinity = like(b, x, f64::INFINITY);
        let finite = b.alu(Op::CmpNe, &[half, infinity])?;
        b.alu(Op::Where, &[finite, value, infinity])
    })
}
