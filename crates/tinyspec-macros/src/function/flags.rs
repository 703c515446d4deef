//! Which parameters are flags: a `bool` that decides what the graph is.

use syn::punctuated::Punctuated;
use syn::visit::{Visit, visit_expr_binary, visit_expr_if, visit_expr_method_call};
use syn::{BinOp, Block, Expr, ExprBinary, ExprIf, ExprMethodCall, FnArg, Pat, Token, Type, UnOp};

/// The parameters of type `bool`, except those that the body uses as tensors: `on.where_(a, b)`, `mask & on`. The
/// condition of an `if` is always a flag.
pub fn find(inputs: &Punctuated<FnArg, Token![,]>, body: &Block) -> Vec<String> {
    let bools = inputs.iter().filter_map(|input| match input {
        FnArg::Typed(input) => match (&*input.pat, &*input.ty) {
            (Pat::Ident(name), Type::Path(ty)) if ty.path.is_ident("bool") => Some(name.ident.to_string()),
            _ => None,
        },
        FnArg::Receiver(_) => None,
    });
    let bools: Vec<String> = bools.collect();
    let mut uses = Uses { asked: vec![], tensors: vec![] };
    if !bools.is_empty() {
        uses.visit_block(body);
    }
    bools.into_iter().filter(|name| uses.asked.contains(name) || !uses.tensors.contains(name)).collect()
}

struct Uses {
    asked: Vec<String>,
    tensors: Vec<String>,
}

/// The name that an expression consists of, possibly in parentheses.
fn name_of(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Path(path) => path.path.get_ident().map(ToString::to_string),
        Expr::Paren(inner) => name_of(&inner.expr),
        Expr::Group(inner) => name_of(&inner.expr),
        Expr::Reference(inner) => name_of(&inner.expr),
        Expr::Unary(inner) if matches!(inner.op, UnOp::Not(_) | UnOp::Deref(_)) => name_of(&inner.expr),
        _ => None,
    }
}

impl<'ast> Visit<'ast> for Uses {
    fn visit_expr_if(&mut self, branch: &'ast ExprIf) {
        self.asked.extend(name_of(&branch.cond));
        visit_expr_if(self, branch);
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        self.tensors.extend(name_of(&call.receiver));
        visit_expr_method_call(self, call);
    }

    fn visit_expr_binary(&mut self, binary: &'ast ExprBinary) {
        let names = [&binary.left, &binary.right].into_iter().filter_map(|operand| name_of(operand));
        match binary.op {
            BinOp::And(_) | BinOp::Or(_) | BinOp::Eq(_) | BinOp::Ne(_) => self.asked.extend(names),
            _ => self.tensors.extend(names),
        }
        visit_expr_binary(self, binary);
    }
}
