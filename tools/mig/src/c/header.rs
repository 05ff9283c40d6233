//! The C headers of an interface.

use super::text::Text;
use super::{CStyle, demux, parameter, prologue, server_name, structs};
use crate::ast::ImportKind;
use crate::interface::{Interface, Routine, Side};
use crate::target::Dialect;

/// The name of the kind of a routine in comments: `Routine` or `SimpleRoutine`.
pub(super) fn kind(routine: &Routine) -> &'static str {
    if routine.simple { "SimpleRoutine" } else { "Routine" }
}

fn declare(text: &mut Text, interface: &Interface, routine: &Routine, name: &str, side: Side) {
    text.line(format!("\n/* {} {} */", kind(routine), routine.name));
    text.raw("#ifdef\tmig_external\nmig_external\n#else\nextern\n#endif\n");
    text.line(format!("kern_return_t {name}"));
    text.list(&parameter::parameters(interface, routine, side), ";");
}

/// The untyped dialect's internal header: the client's functions, for files of the program itself.
/// In addition it includes the files of `iimport`.
pub fn internal_header(interface: &Interface, style: &CStyle) -> String {
    let mut text = Text::default();
    only(&mut text, interface, ImportKind::Internal);
    text.raw(&header(interface, style));
    text.finish()
}

/// The untyped dialect's header of ids, which in addition includes the files of `dimport`.
pub fn definitions_header(interface: &Interface) -> String {
    let (mut text, name) = (Text::default(), &interface.name);
    text.raw(&format!("#ifndef\t_{name}_defs\n#define\t_{name}_defs\n\n/* Module {name} */\n\n"));
    only(&mut text, interface, ImportKind::Definitions);
    for routine in interface.present() {
        let (name, id) = (&routine.name, routine.id);
        text.line(format!("#define\tMACH_ID_{name}\t\t{id}\t/* {name}() */"));
        if !routine.simple {
            text.line(format!("#define\tMACH_ID_{name}_reply\t\t{}\t/* {name}() */", routine.reply_id()));
        }
    }
    text.line(format!("\n#endif\t/* not defined(_{name}_defs) */"));
    text.finish()
}

fn only(text: &mut Text, interface: &Interface, kind: ImportKind) {
    for import in interface.imports.iter().filter(|import| import.kind == kind) {
        text.line(format!("#include {}", import.file));
    }
}

/// Writes what only the untyped dialect's headers have: structs of messages, and a table of names
/// and ids.
fn messages(text: &mut Text, interface: &Interface, side: Side) {
    if interface.target.dialect == Dialect::Typed {
        return;
    }
    structs::write(text, interface, side);
    let name = &interface.name;
    text.line(format!("\n#ifndef\tsubsystem_to_name_map_{name}\n#define\tsubsystem_to_name_map_{name} \\"));
    let names = interface.present().map(|routine| format!("    {{ \"{}\", {} }}", routine.name, routine.id));
    text.line(names.collect::<Vec<_>>().join(",\\\n"));
    text.line("#endif");
}

/// The header of the client's functions.
pub fn header(interface: &Interface, style: &CStyle) -> String {
    let (mut text, name) = (Text::default(), &interface.name);
    text.raw(&format!("#ifndef\t_{name}_user_\n#define\t_{name}_user_\n\n/* Module {name} */\n\n"));
    begin(&mut text, interface, Side::User);
    for routine in interface.present() {
        let function = style.user_name(interface, &routine.name);
        declare(&mut text, interface, routine, &function, Side::User);
    }
    messages(&mut text, interface, Side::User);
    text.line(format!("\n#endif\t/* not defined(_{name}_user_) */"));
    text.finish()
}

/// The header of the server's functions.
pub fn server_header(interface: &Interface) -> String {
    let (mut text, name, demux) = (Text::default(), &interface.name, &interface.demux);
    text.raw(&format!("#ifndef\t_{name}_server_\n#define\t_{name}_server_\n\n/* Module {name} */\n\n"));
    begin(&mut text, interface, Side::Server);
    for routine in interface.present() {
        let function = server_name(interface, &routine.name);
        declare(&mut text, interface, routine, &function, Side::Server);
    }
    find(&mut text, interface, demux);
    messages(&mut text, interface, Side::Server);
    text.line(format!("\n#endif\t/* not defined(_{name}_server_) */"));
    text.finish()
}

/// Writes the beginning of a header: the guard against double inclusion, and includes.
fn begin(text: &mut Text, interface: &Interface, side: Side) {
    text.raw("#include <mach/kern_return.h>\n#include <mach/port.h>\n#include <mach/message.h>\n\n");
    if interface.target.dialect == Dialect::Untyped {
        let count = interface.routines.len();
        text.raw("#include <mach/ndr.h>\n#include <mach/mig_errors.h>\n");
        text.raw(&format!(
            "\n#ifndef\t{0}_MSG_COUNT\n#define\t{0}_MSG_COUNT\t{count}\n#endif\n\n",
            interface.name
        ));
    } else if side == Side::Server {
        text.raw("#include <mach/mig_errors.h>\n");
    }
    prologue::imports(text, interface, side);
}

/// Writes the declaration by which a server finds the function for a request.
fn find(text: &mut Text, interface: &Interface, demux: &str) {
    let (base, last) = (interface.base, interface.routines.len().saturating_sub(1));
    if interface.target.dialect == Dialect::Untyped {
        text.line(format!(
            "\nextern boolean_t {demux}(mach_msg_header_t *InHeadP, mach_msg_header_t *OutHeadP);"
        ));
        text.line(format!("extern mig_routine_t {demux}_routine(mach_msg_header_t *InHeadP);"));
        text.line(format!("\n#ifndef\t_{0}_subsystem_\n#define\t_{0}_subsystem_", interface.name));
        demux::subsystem_type(text, interface);
        return text.line("#endif");
    }
    text.line(format!("\nextern mig_routine_t {demux}_routines[];"));
    text.line(format!("static __inline __attribute__ ((unused)) mig_routine_t {demux}_routine"));
    text.line("\t(const mach_msg_header_t *InHeadP)");
    text.block("", |text| {
        text.line(format!("int msgh_id = InHeadP->msgh_id - {base};\n"));
        text.line(format!("if ((msgh_id > {last}) || (msgh_id < 0))"));
        text.deeper("return 0;\n");
        text.line(format!("return {demux}_routines[msgh_id];"));
    });
}
