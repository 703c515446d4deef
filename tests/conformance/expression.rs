//! The symbolic corpus: trees of integer ops over variables with bounds.

use crate::run::Failure;
use serde_json::Value;
use std::path::Path;
use tinyspec::DType;
use tinyspec::ir::{Arg, Builder, Graph, NodeId, Op};

/// An expression, the least and greatest of its values, and some of them.
pub struct Expression {
    pub id: String,
    pub variables: Vec<Variable>,
    tree: Value,
    pub bounds: (i64, i64),
    /// Values of the variables, and the expression's.
    pub samples: Vec<(Vec<i64>, i64)>,
}

/// Both bounds are among its values.
pub struct Variable {
    name: String,
    pub min: i64,
    pub max: i64,
}

impl Variable {
    /// How many values it has.
    pub fn count(&self) -> i64 {
        self.max - self.min + 1
    }
}

/// All expressions, in the order of the file.
pub fn read(folder: &Path) -> Result<Vec<Expression>, String> {
    let path = folder.join("symbolic.jsonl");
    let lines = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let lines = lines.lines().filter(|line| !line.trim().is_empty()).enumerate();
    lines.map(|(number, line)| parse(line).ok_or(format!("symbolic.jsonl:{}: no expression", number + 1))).collect()
}

fn parse(line: &str) -> Option<Expression> {
    let case: Value = serde_json::from_str(line).ok()?;
    let variable = |variable: &Value| {
        let name = variable["name"].as_str()?.to_string();
        Some(Variable { name, min: variable["min"].as_i64()?, max: variable["max"].as_i64()? })
    };
    let sample = |sample: &Value| {
        let at: Option<Vec<i64>> = sample[0].as_array()?.iter().map(Value::as_i64).collect();
        Some((at?, sample[1].as_i64().or(sample[1].as_bool().map(i64::from))?))
    };
    Some(Expression {
        id: case["id"].as_str()?.to_string(),
        variables: case["vars"].as_array()?.iter().map(variable).collect::<Option<_>>()?,
        bounds: (case["min"].as_i64()?, case["max"].as_i64()?),
        samples: case["samples"].as_array()?.iter().map(sample).collect::<Option<_>>()?,
        tree: case["expr"].clone(),
    })
}

impl Expression {
    /// Its node, where each variable stands for one of `values`.
    pub fn build(&self, graph: &mut Graph, values: &[NodeId]) -> Result<NodeId, Failure> {
        let node = self.part(graph, &self.tree, values)?;
        as_index(graph, node)
    }

    fn part(&self, graph: &mut Graph, tree: &Value, values: &[NodeId]) -> Result<NodeId, Failure> {
        let (name, rest) = match tree.as_array().and_then(|items| items.split_first()) {
            Some((Value::String(name), rest)) => (name.as_str(), rest),
            _ => return Err(Failure::NotBuilt),
        };
        match (name, rest) {
            ("const", [number]) => return Ok(graph.index(number.as_i64().ok_or(Failure::NotBuilt)?)),
            ("var", [name]) => {
                let position = self.variables.iter().position(|variable| Some(variable.name.as_str()) == name.as_str());
                return position.and_then(|position| values.get(position)).copied().ok_or(Failure::NotBuilt);
            }
            _ => {}
        }
        let parts = rest.iter().map(|tree| self.part(graph, tree, values)).collect::<Result<Vec<_>, _>>()?;
        let sources = parts.iter().map(|&part| as_index(graph, part)).collect::<Result<Vec<_>, _>>()?;
        let minus = |graph: &mut Graph, node: NodeId| {
            let minus = graph.index(-1);
            graph.alu(Op::Mul, &[node, minus])
        };
        Ok(match (name, &sources[..]) {
            ("add", &[a, b]) => graph.alu(Op::Add, &[a, b])?,
            ("mul", &[a, b]) => graph.alu(Op::Mul, &[a, b])?,
            ("max", &[a, b]) => graph.alu(Op::Max, &[a, b])?,
            ("floordiv", &[a, b]) => graph.alu(Op::Idiv, &[a, b])?,
            ("floormod", &[a, b]) => graph.alu(Op::Mod, &[a, b])?,
            ("lt", &[a, b]) => graph.alu(Op::CmpLt, &[a, b])?,
            ("ne", &[a, b]) => graph.alu(Op::CmpNe, &[a, b])?,
            ("sub", &[a, b]) => {
                let b = minus(graph, b)?;
                graph.alu(Op::Add, &[a, b])?
            }
            ("min", &[a, b]) => {
                let (a, b) = (minus(graph, a)?, minus(graph, b)?);
                let greatest = graph.alu(Op::Max, &[a, b])?;
                minus(graph, greatest)?
            }
            ("where", &[condition, a, b]) => {
                let zero = graph.index(0);
                let condition = graph.alu(Op::CmpNe, &[condition, zero])?;
                graph.alu(Op::Where, &[condition, a, b])?
            }
            _ => return Err(Failure::NotBuilt),
        })
    }
}

/// Conditions count as 0 and 1.
fn as_index(graph: &mut Graph, node: NodeId) -> Result<NodeId, Failure> {
    match graph.dtype(node) {
        DType::Bool => Ok(graph.add(Op::Cast, &[node], Arg::DType(DType::Index))?),
        _ => Ok(node),
    }
}
