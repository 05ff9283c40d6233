//! The server's demultiplexer, a function that handles a request of any routine, and its table with
//! one function for each routine.

use super::CStyle;
use super::text::Text;
use crate::interface::{Interface, Routine, Side};
use crate::target::Dialect;

/// The C type of an error reply, which carries a status and nothing else.
pub(super) fn reply_type(interface: &Interface) -> &'static str {
    match interface.target.dialect {
        Dialect::Typed => "mig_reply_header_t",
        Dialect::Untyped => "mig_reply_error_t",
    }
}

/// Writes the demultiplexer, its table, and the table of names if `style` asks for it.
pub(super) fn write(text: &mut Text, interface: &Interface, style: &CStyle) {
    match interface.target.dialect {
        Dialect::Typed => table(text, interface),
        Dialect::Untyped => subsystem(text, interface),
    }
    if style.symbols {
        symbols(text, interface);
    }
    demux(text, interface);
}

/// Writes the typed dialect's table of functions, indexed by the request's id.
fn table(text: &mut Text, interface: &Interface) {
    text.line(format!("\nmig_routine_t {}_routines[] =", interface.demux));
    text.block("", |text| {
        for routine in &interface.routines {
            match routine {
                Some(routine) => text.line(format!("_X{},", routine.name)),
                None => text.line("0,"),
            }
        }
        if interface.routines.is_empty() {
            text.line("0");
        }
    });
    text.raw(";\n");
}

/// Writes the C declaration and type of the untyped dialect's table.
pub(super) fn subsystem_type(text: &mut Text, interface: &Interface) {
    let (name, count) = (&interface.name, interface.routines.len().max(1));
    text.line(format!("extern const struct {name}_subsystem {{"));
    text.deeper("mig_server_routine_t server;");
    text.deeper("mach_msg_id_t start, end;");
    text.deeper("unsigned int maxsize;");
    text.deeper("vm_address_t reserved;");
    text.deeper(format!("struct routine_descriptor routine[{count}];"));
    text.line(format!("}} {name}_subsystem;"));
}

/// Writes the untyped dialect's table, by which servers find a routine and the size of its reply.
fn subsystem(text: &mut Text, interface: &Interface) {
    let (name, base, demux) = (&interface.name, interface.base, &interface.demux);
    let (last, end) = (interface.routines.len().saturating_sub(1), interface.routines.len() as u64 + base);
    text.line(format!("\nmig_external mig_routine_t {demux}_routine(mach_msg_header_t *InHeadP);"));
    text.line(format!("#ifndef\t_{name}_subsystem_\n#define\t_{name}_subsystem_"));
    subsystem_type(text, interface);
    text.line("#endif");
    let replies = interface.present().filter_map(|routine| routine.reply.as_ref());
    let largest = replies.map(|reply| reply.maximum).max().unwrap_or(0).max(36);
    text.block(format!("const struct {name}_subsystem {name}_subsystem ="), |text| {
        text.line(format!("{demux}_routine, {base}, {end}, {largest}, 0,"));
        text.block("", |text| {
            let line = |routine: &Option<Routine>| match routine {
                Some(routine) => {
                    let count: usize = routine
                        .arguments
                        .iter()
                        .map(|argument| argument.parameters(Side::Server).len())
                        .sum();
                    let size = routine.reply.as_ref().map_or(36, |reply| reply.maximum);
                    let stub = format!("(mig_stub_routine_t) _X{}", routine.name);
                    format!("{{ (mig_impl_routine_t) 0, {stub}, {count}, 0, 0, {size} }},")
                }
                None => "{ 0, 0, 0, 0, 0, 0 },".to_owned(),
            };
            interface.routines.iter().for_each(|routine| text.line(line(routine)));
            if interface.routines.is_empty() {
                text.line(line(&None));
            }
        });
    });
    text.raw(";\n");
    text.line(format!("\nmig_external mig_routine_t {demux}_routine(mach_msg_header_t *InHeadP)"));
    text.block("", |text| {
        text.line(format!("int msgh_id = InHeadP->msgh_id - {base};\n"));
        text.line(format!("if ((msgh_id > {last}) || (msgh_id < 0))"));
        text.deeper("return 0;");
        text.line(format!("return (mig_routine_t) {name}_subsystem.routine[msgh_id].stub_routine;"));
    });
}

fn symbols(text: &mut Text, interface: &Interface) {
    let (name, base) = (&interface.name, interface.base);
    text.line(format!("\nmig_symtab_t _{name}SymTab[] ="));
    text.block("", |text| {
        for routine in &interface.routines {
            match routine {
                Some(routine) => {
                    text.line(format!("{{ \"{0}\", {1}, (void *) _X{0} }},", routine.name, routine.id));
                }
                None => text.line("{ \"\", 0, 0 },"),
            }
        }
    });
    text.raw(";\n");
    text.line(format!("int _{name}SymTabBase = {base};"));
    text.line(format!("int _{name}SymTabEnd = {};", base + interface.routines.len() as u64));
}

/// Writes the demultiplexer.
fn demux(text: &mut Text, interface: &Interface) {
    let (name, base) = (&interface.demux, interface.base);
    let last = base + interface.routines.len().saturating_sub(1) as u64;
    let reply = reply_type(interface);
    text.line(format!("\nmig_external boolean_t {name}"));
    text.line("\t(mach_msg_header_t *InHeadP, mach_msg_header_t *OutHeadP)");
    text.block("", |text| {
        text.line(format!("{reply} *OutP = ({reply} *) OutHeadP;"));
        text.raw(
            "	mig_routine_t routine;

	OutP->Head.msgh_bits = MACH_MSGH_BITS(MACH_MSGH_BITS_REPLY(InHeadP->msgh_bits), 0);
	OutP->Head.msgh_size = sizeof *OutP;
	OutP->Head.msgh_remote_port = InHeadP->msgh_reply_port;
	OutP->Head.msgh_local_port = MACH_PORT_NULL;
	OutP->Head.msgh_id = InHeadP->msgh_id + 100;
",
        );
        text.raw(match interface.target.dialect {
            Dialect::Typed => {
                "	OutP->Head.msgh_seqno = 0;
	mig_describe((char *) &OutP->RetCodeType, MACH_MSG_TYPE_INTEGER_32, 32, 1, MIG_INLINE);

"
            }
            Dialect::Untyped => "	OutP->Head.msgh_reserved = 0;\n	OutP->NDR = NDR_record;\n\n",
        });
        let find = match interface.target.dialect {
            Dialect::Typed => format!("{name}_routines[InHeadP->msgh_id - {base}]"),
            Dialect::Untyped => format!("{name}_routine(InHeadP)"),
        };
        text.line(format!("if ((InHeadP->msgh_id > {last}) || (InHeadP->msgh_id < {base}) ||"));
        text.line(format!("    ((routine = {find}) == 0)) {{"));
        text.raw(
            "		OutP->RetCode = MIG_BAD_ID;
		return FALSE;
	}
	(*routine) (InHeadP, &OutP->Head);
	return TRUE;
",
        );
    });
}
