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
