//! A kernel's Linear form, in comments behind its code: an error shows the line of it that an instruction is for.

use tinyspec_backends::LinearKernel;
use tinyspec_ir::text;

const MARK: &[u8] = b"\n// the Linear form:\n";
const COMMENT: &str = "// ";

/// Adds it.
pub fn add(kernel: &LinearKernel, mut code: Vec<u8>) -> Vec<u8> {
    code.extend(MARK);
    for line in text::print(&kernel.graph, &[kernel.linear]).lines() {
        code.extend(format!("{COMMENT}{line}\n").bytes());
    }
    code
}

/// Its lines, none where there is no such comment.
pub fn read(code: &[u8]) -> Vec<String> {
    let Some(start) = code.windows(MARK.len()).rposition(|bytes| bytes == MARK) else { return Vec::new() };
    let text = String::from_utf8_lossy(&code[start + MARK.len()..]);
    text.lines().map_while(|line| line.strip_prefix(COMMENT)).map(str::to_string).collect()
}
