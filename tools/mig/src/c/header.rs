//! Headers.

use super::text::Text;
use super::{CStyle, parameter, prologue, server_name};
use crate::interface::{Interface, Routine, Side};

/// `Routine` or `SimpleRoutine`.
pub(super) fn kind(routine: &Routine) -> &'static str {
    if routine.simple { "SimpleRoutine" } else { "Routine" }
}

fn declare(text: &mut Text, routine: &Routine, name: &str, side: Side) {
    text.line(format!("\n/* {} {} */", kind(routine), routine.name));
    text.raw("#ifdef\tmig_external\nmig_external\n#else\nextern\n#endif\n");
    text.line(format!("kern_return_t {name}"));
    text.list(&parameter::parameters(routine, side), ";");
}

/// The header of the client's functions.
pub fn header(interface: &Interface, style: &CStyle) -> String {
    let (mut text, name) = (Text::default(), &interface.name);
    text.raw(&format!("#ifndef\t_{name}_user_\n#define\t_{name}_user_\n\n/* Module {name} */\n\n"));
    text.raw("#include <mach/kern_return.h>\n#include <mach/port.h>\n#include <mach/message.h>\n\n");
    prologue::imports(&mut text, interface, Side::User);
    for routine in interface.present() {
        let function = style.user_name(interface, &routine.name);
        declare(&mut text, routine, &function, Side::User);
    }
    text.line(format!("\n#endif\t/* not defined(_{name}_user_) */"));
    text.finish()
}

/// The header of the server's functions.
pub fn server_header(interface: &Interface) -> String {
    let (mut text, name, demux) = (Text::default(), &interface.name, &interface.demux);
    text.raw(&format!("#ifndef\t_{name}_server_\n#define\t_{name}_server_\n\n/* Module {name} */\n\n"));
    text.raw("#include <mach/kern_return.h>\n#include <mach/port.h>\n#include <mach/message.h>\n\n");
    text.raw("#include <mach/mig_errors.h>\n");
    prologue::imports(&mut text, interface, Side::Server);
    for routine in interface.present() {
        let function = server_name(interface, &routine.name);
        declare(&mut text, routine, &function, Side::Server);
    }
    let (base, last) = (interface.base, interface.routines.len().saturating_sub(1));
    text.line(format!("\nextern mig_routine_t {demux}_routines[];"));
    text.line(format!("static __inline __attribute__ ((unused)) mig_routine_t {demux}_routine"));
    text.line("\t(const mach_msg_header_t *InHeadP)");
    text.block("", |text| {
        text.line(format!("int msgh_id = InHeadP->msgh_id - {base};\n"));
        text.line(format!("if ((msgh_id > {last}) || (msgh_id < 0))"));
        text.deeper("return 0;\n");
        text.line(format!("return {demux}_routines[msgh_id];"));
    });
    text.line(format!("\n#endif\t/* not defined(_{name}_server_) */"));
    text.finish()
}
