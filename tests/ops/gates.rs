//! Reads with an alternative: where the gate is false memory is not touched.

use crate::rows::ALL;
use tinyspec::ir::{Graph, NodeId, Op};
use tinyspec::prelude::*;
use tinyspec::{device, with_default_device};
use tinyspec_core::lower::kernel::lower_observed;
use tinyspec_core::lower::rangeify::rangeify;

uop! { <N>
    fn neighbours(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            y[i] = x.get([i - 2], -1.0) + if i % 3 == 0 { x[i] } else { 0.0 };
        }
    }
}

/// A kernel of the program reads with an alternative and a gate.
fn has_gated_loads(specs: &[Spec], name: &str, program: impl Fn(&[Tensor]) -> Tensor) -> Result<bool> {
    let traced = Function::trace(specs, |inputs| vec![program(inputs)])?;
    let target = device(name)?.target().clone();
    let schedule = rangeify(traced.body().graph(), traced.body().outputs(), &target)?;
    let mut found = false;
    for call in &schedule.calls {
        let mut own = Graph::new();
        let sink = own.import(&schedule.graph, &[call.kernel], |_, _| Ok(None))?[0];
        let mut observe = |_: &'static str, graph: &Graph, root: NodeId| {
            let is_gated = |&node: &NodeId| graph.op(node) == Op::Load && graph.sources(node).len() == 3;
            found |= graph.reachable(&[root]).iter().any(is_gated);
        };
        lower_observed(own, sink, call.hand_written.as_ref(), &target, &mut observe)?;
    }
    Ok(found)
}

#[test]
fn reads_outside_and_under_conditions_are_gated_loads() -> Result<()> {
    let x = [1.0f32, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
    let by_hand = [0.0f32, -1.0, 1.0, 10.0, 4.0, 8.0, 80.0];
    let padded = [0.0f32, 0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 0.0];
    let picked = [64.0f32, 0.0, 2.0, 0.0];
    for name in ALL {
        with_default_device::<_, Error>(name, || {
            let x = Tensor::from_slice(&x, [7]);
            let spec = Spec::new(DType::F32, [7]);
            assert!(has_gated_loads(std::slice::from_ref(&spec), name, |x| neighbours(&x[0]))?, "{name}");
            assert_eq!(neighbours(&x).to_vec::<f32>()?, by_hand, "{name}");
            let pad = |x: &Tensor| x.pad([2], [10], 0.0);
            assert!(has_gated_loads(std::slice::from_ref(&spec), name, |x| pad(&x[0]))?, "{name}");
            assert_eq!(pad(&x).to_vec::<f32>()?, padded, "{name}");
            // A place from data may be outside.
            let places = Tensor::from_slice(&[6i32, 7, 1, 100], [4]);
            let specs = [spec, Spec::new(DType::I32, [4])];
            let pick = |x: &Tensor, places: &Tensor| x.index0(places);
            assert!(has_gated_loads(&specs, name, |x| pick(&x[0], &x[1]))?, "{name}");
            assert_eq!(pick(&x, &places).to_vec::<f32>()?, picked, "{name}");
            Ok(())
        })?;
    }
    Ok(())
}

/// Two stores into one tensor, from text: the second one sees what the first has written.
const STORES: &str = "
%0 = const[index 4]
%1 = stack(%0)
%2 = param[0 f32](%1)
%3 = param[1 f32](%1)
%4 = param[2 bool](%1)
%5 = store(%2, %3, %4)
%6 = const[f32 7.0]
%7 = cmplt(%3, %6)
%8 = const[bool 1]
%9 = xor(%7, %8)
%10 = store(%2, %6, %9)
%11 = after(%2, %5, %10)
%12 = mul(%11, %11)
return %11, %12
";

#[test]
fn a_store_under_a_gate_leaves_the_rest() -> Result<()> {
    for name in ALL {
        with_default_device(name, || -> Result<()> {
            let function: Function = STORES.parse()?;
            let again: Function = function.to_string().parse()?;
            let old = Tensor::from_slice(&[1f32, 2.0, f32::NAN, 4.0], [4]);
            let new = Tensor::from_slice(&[5f32, 6.0, 3.0, 8.0], [4]);
            let gate = Tensor::from_slice(&[true, false, false, false], [4]);
            for function in [function, again] {
                let results = function.call(&[&old, &new, &gate]);
                let state = results[0].to_vec::<f32>()?;
                assert_eq!((state[0], state[1], state[3]), (5.0, 2.0, 7.0), "{name}");
                assert!(state[2].is_nan(), "{name}");
                assert_eq!(results[1].to_vec::<f32>()?[3], 49.0, "{name}");
                // The argument is a value, which stays.
                assert_eq!(old.to_vec::<f32>()?[0], 1.0);
                // What is stored has the gradient where it is stored, the rest where it stays.
                let slopes = grad(&results[0].sum(.., false), &[&old, &new])?;
                assert_eq!(slopes[0].to_vec::<f32>()?, [0.0, 1.0, 1.0, 0.0], "{name}");
                assert_eq!(slopes[1].to_vec::<f32>()?, [1.0, 0.0, 0.0, 0.0], "{name}");
            }
            Ok(())
        })?;
    }
    Ok(())
}
