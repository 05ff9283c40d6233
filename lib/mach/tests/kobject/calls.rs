//! Which calls of Mach's interfaces are served: each call of the definitions is carried out, or one
//! of the lists here says why not. The chapter on Mach's ports has the lists.

use std::collections::BTreeSet;
use std::fmt::Write;

use mach::ipc::typed::MsgOptions;
use mig::interface::Routine;

use crate::objects::{Objects, program_with_objects};
use crate::requests::{self, Chooser, root};
use crate::support::{BUFFER, System};

/// The interfaces whose requests kernel objects carry out.
const SERVED: [&str; 6] = ["mach", "mach_port", "mach_host", "gnumach", "mach_debug", "mach_i386"];

/// Interfaces with another receiver than kernel objects, or that kernel objects do not serve yet.
const OTHERS: [(&str, &str); 10] = [
    ("exc", "sent to exception ports"),
    ("notify", "sent by ports"),
    ("task_notify", "sent to the port of `register_new_task_notification`"),
    (
        "memory_object",
        "sent to pagers; `memory_object_copy` is not: a copy shows the object as it was, whatever strategy the pager has chosen",
    ),
    ("memory_object_default", "to be sent to the default pager, not there yet"),
    ("default_pager", "a server's"),
    ("mach4", "proxies of memory objects, not there yet"),
    ("device", "devices, not there yet"),
    ("device_request", "devices, not there yet"),
    ("device_reply", "devices, not there yet"),
];

/// Calls that make no sense here. They check the objects and answer `KERN_FAILURE`.
const UNSUPPORTED: [(&str, &str); 12] = [
    ("processor_start", "root starts the processors, all when the machine starts"),
    ("processor_exit", "a processor is never stopped"),
    ("processor_control", "no processor has such commands"),
    ("task_ras_control", "no part of a program is restarted: a thread continues where it was"),
    ("vm_allocate_contiguous", "no program knows physical addresses"),
    ("vm_pages_phys", "no program knows physical addresses"),
    ("vm_set_size_limit", "the limit of a task's memory is that of its server"),
    ("host_load_symbol_table", "the kernel's debugger has the symbols of the boot image"),
    ("i386_set_ldt", "threads of 64 bits have no segments"),
    ("i386_set_gdt", "threads of 64 bits have no segments"),
    ("i386_io_perm_create", "ports for input and output are the drivers', by L4 mappings"),
    ("i386_io_perm_modify", "ports for input and output are the drivers', by L4 mappings"),
];

/// Calls about memory that a server has, not yet there. They answer an error.
const LATER: [&str; 4] = [
    "vm_set_default_memory_manager",
    "mach_vm_object_info",
    "mach_vm_object_pages",
    "mach_vm_object_pages_phys",
];

/// Zeros, and names of objects of the right kinds.
struct Zeros(Objects);

impl Chooser for Zeros {
    fn kind(&mut self, received: Option<u32>) -> u32 {
        const COPY_SEND: u32 = 19;
        const MAKE_SEND_ONCE: u32 = 21;
        if received == Some(18) { MAKE_SEND_ONCE } else { COPY_SEND }
    }

    fn name(&mut self, of: &str) -> u32 {
        self.0.of(of).last().copied().unwrap_or(0)
    }

    fn number(&mut self, _bits: u32) -> u64 {
        0
    }

    fn count(&mut self, most: u64) -> u64 {
        if most == 1024 { 1024 } else { 0 }
    }

    fn memory(&mut self, _bytes: u64) -> u64 {
        BUFFER + 0x1000
    }
}

/// The result that a call has with arguments of zero on an object of the right kind; `None`: it has
/// no reply.
fn result(routine: &Routine) -> Option<i32> {
    let system = System::new();
    system.run(async {
        let (other, _) = program_with_objects(&system, &[]).await;
        let (program, mut objects) = program_with_objects(&system, std::slice::from_ref(&other)).await;
        // Controls come last, because every call accepts them; a set's last name is not its
        // control.
        objects.sets.reverse();
        let mut zeros = Zeros(objects);
        let to = match routine.port().of.name.as_str() {
            // The definition does not say which port: it is the control of the host.
            "mach_port_t" => zeros.name("host_priv_t"),
            of => zeros.name(of),
        };
        // No port stands for a memory object, so such calls go to a task.
        let to = if to == 0 { zeros.name("task_t") } else { to };
        let reply = program.reply_name().unwrap();
        let mut bytes = requests::request(routine, to, reply.0, &mut zeros);
        let length = bytes.len();
        bytes.resize(8192, 0);
        program.message(MsgOptions::SEND, &mut bytes, length, mach::ipc::Name::NULL).await.unwrap();
        if !program.task.is_alive() {
            return Some(0);
        }
        let options = MsgOptions::RECEIVE | MsgOptions::RECEIVE_TIMEOUT;
        match program.message(options, &mut bytes, 0, reply).await {
            // The right to reply to a call without a reply is dropped, which sends a notification.
            Ok(()) if bytes[28..32] == (routine.id as u32 + 100).to_le_bytes() => {
                Some(i32::from_le_bytes(bytes[40..44].try_into().unwrap()))
            }
            _ => None,
        }
    })
}

#[test]
fn each_call_is_carried_out_or_a_list_says_why_not() {
    const BAD_ID: i32 = -303;
    const BAD_ARGUMENTS: i32 = -304;
    const FAILURE: i32 = 5;
    assert!(UNSUPPORTED.len() <= 15);
    let mut known = BTreeSet::new();
    for interface in SERVED.map(requests::interface) {
        for routine in interface.present() {
            let (name, found) = (routine.name.as_str(), result(routine));
            known.insert(name.to_owned());
            // A call without a reply answers only an error, and only a sender that wants an answer.
            assert!(found.is_some() || routine.reply.is_none(), "{name} has not replied");
            assert!(found != Some(0) || routine.reply.is_some(), "{name} has replied");
            let Some(found) = found else { continue };
            assert!(found != BAD_ID && found != BAD_ARGUMENTS, "{name}: {found}");
            if UNSUPPORTED.iter().any(|(unsupported, _)| *unsupported == name) {
                assert_eq!(found, FAILURE, "{name}");
            } else if LATER.contains(&name) {
                assert_ne!(found, 0, "{name}");
            }
        }
    }
    let listed = UNSUPPORTED.iter().map(|(name, _)| *name).chain(LATER);
    for name in listed {
        assert!(known.contains(name), "no definition has {name}");
    }
}

/// Code marks around names, with commas.
fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[test]
fn the_chapter_has_the_lists() {
    let mut text = String::from("\n| interface | calls of kernel objects |\n|---|---|\n");
    for interface in SERVED.map(requests::interface) {
        let missing = |name: &&str| !LATER.contains(name) && !UNSUPPORTED.iter().any(|(no, _)| no == name);
        let served = interface.present().map(|routine| routine.name.as_str()).filter(missing);
        writeln!(text, "| `{}` | {} |", interface.name, names(served)).unwrap();
    }
    text += "\nThese calls answer `KERN_FAILURE`, because they make no sense here:\n\n";
    text += "| call | why |\n|---|---|\n";
    UNSUPPORTED.iter().for_each(|(name, why)| writeln!(text, "| `{name}` | {why} |").unwrap());
    text += "\nThese calls are not there yet, and answer an error:\n\n";
    LATER.iter().for_each(|name| writeln!(text, "- `{name}`").unwrap());
    text += "\nThe other interfaces:\n\n| interface | messages |\n|---|---|\n";
    OTHERS.iter().for_each(|(name, who)| writeln!(text, "| `{name}` | {who} |").unwrap());
    text.push('\n');

    let chapter = root().join("docs/src/mach-ports.md");
    let present = std::fs::read_to_string(&chapter).unwrap();
    let (head, rest) = present.split_once("<!-- mach: calls -->\n").unwrap();
    let (_, tail) = rest.split_once("<!-- end -->").unwrap();
    let expected = format!("{head}<!-- mach: calls -->\n{text}<!-- end -->{tail}");
    if std::env::var_os("KOBJECT_BLESS").is_some() {
        std::fs::write(&chapter, &expected).unwrap();
    }
    assert!(present == expected, "KOBJECT_BLESS=1 writes {}", chapter.display());
}
