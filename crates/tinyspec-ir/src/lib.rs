//! The UOp language of tinyspec: op table, graph, dtypes, rules, gradients, text and binary forms.
