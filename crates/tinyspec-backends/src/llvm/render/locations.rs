//! Debug locations: the source of a machine instruction is a line of the kernel's printed Linear form. PTX carries them in `.loc`
//! directives, objects in `.debug_line`. The instructions themselves are the same as without locations.

use super::emit::Emitter;
use crate::LinearKernel;
use inkwell::context::Context;
use inkwell::debug_info::{
    AsDIScope as _, DIFlags, DIFlagsConstants as _, DISubprogram, DWARFEmissionKind, DWARFSourceLanguage,
    DebugInfoBuilder, debug_metadata_version,
};
use inkwell::module::{FlagBehavior, Module};
use inkwell::values::FunctionValue;
use tinyspec_ir::NodeId;

/// The newest version whose line table refers to no other section.
const DWARF: u64 = 4;

pub(super) struct Locations<'context> {
    context: &'context Context,
    builder: DebugInfoBuilder<'context>,
    function: DISubprogram<'context>,
    /// By node, its line in the Linear form as [`tinyspec_ir::text::print`] writes it, from 1; 0 for nodes outside of it.
    lines: Vec<u32>,
}

impl<'context> Locations<'context> {
    /// Attaches debug information to the kernel's function.
    pub fn new(
        context: &'context Context,
        module: &Module<'context>,
        function: FunctionValue<'context>,
        kernel: &LinearKernel,
    ) -> Locations<'context> {
        let flag = |name: &str, value: u64| {
            module.add_basic_value_flag(name, FlagBehavior::Warning, context.i32_type().const_int(value, false));
        };
        flag("Debug Info Version", debug_metadata_version().into());
        flag("Dwarf Version", DWARF);
        let (builder, unit) = module.create_debug_info_builder(
            false,
            DWARFSourceLanguage::C,
            &kernel.name,
            "",
            "tinyspec",
            true,
            "",
            0,
            "",
            DWARFEmissionKind::LineTablesOnly,
            0,
            false,
            false,
            "",
            "",
        );
        let file = unit.get_file();
        let signature = builder.create_subroutine_type(file, None, &[], DIFlags::ZERO);
        let (scope, name) = (unit.as_debug_info_scope(), &kernel.name);
        let subprogram =
            builder.create_function(scope, name, None, file, 0, signature, true, true, 0, DIFlags::ZERO, true);
        function.set_subprogram(subprogram);
        let mut lines = vec![0; kernel.graph.len()];
        for (line, node) in (1..).zip(kernel.graph.reachable(&[kernel.linear])) {
            lines[node.index()] = line;
        }
        Locations { context, builder, function: subprogram, lines }
    }

    /// Instructions emitted from now on get the location of this node.
    pub fn enter(&self, node: NodeId, emit: &Emitter<'context>) {
        let scope = self.function.as_debug_info_scope();
        emit.locate(self.builder.create_debug_location(self.context, self.lines[node.index()], 0, scope, None));
    }

    /// Completes the debug information; called after the last instruction.
    pub fn finish(&self) {
        self.builder.finalize();
    }
}
