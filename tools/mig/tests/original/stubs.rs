//! Reads message layouts from the C stubs that GNU's compiler has written.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The C stubs of one definition.
pub(crate) struct Stubs {
    user: String,
    server: String,
    pub(crate) list: String,
}

pub(crate) struct Message {
    /// The size of the smallest message in bytes.
    pub(crate) size: u64,
    pub(crate) fixed: bool,
    pub(crate) items: Vec<Item>,
}

pub(crate) struct Item {
    pub(crate) name: String,
    pub(crate) sent: String,
    pub(crate) bits: u32,
    pub(crate) count: u64,
    pub(crate) inline: bool,
    pub(crate) long: bool,
}

impl Stubs {
    /// Runs GNU's compiler on a definition; none if the compiler refuses the definition.
    pub(crate) fn of(root: &Path, name: &str, text: &str) -> Option<Stubs> {
        let directory = root.join("stubs").join(name);
        fs::create_dir_all(&directory).unwrap();
        let input = directory.join("in.defs");
        fs::write(&input, text).unwrap();
        let mut command = Command::new(root.join("usr/lib/mig/x86_64-gnu-migcom"));
        command.current_dir(&directory).stdin(fs::File::open(input).unwrap()).stderr(Stdio::null());
        command.args(["-q", "-user", "user.c", "-server", "server.c", "-header", "user.h"]);
        command.args(["-sheader", "server.h", "-list", "list"]).stdout(Stdio::null());
        let status = command.status().unwrap();
        let read = |file: &str| fs::read_to_string(directory.join(file)).unwrap();
        status.success().then(|| Stubs { user: read("user.c"), server: read("server.c"), list: read("list") })
    }

    /// The text of the client's function for a routine.
    fn user(&self, name: &str) -> &str {
        between(&self.user, &format!("mig_external kern_return_t {name}\n"), "\n}\n")
    }

    /// The text of the server's function for a routine.
    fn server(&self, name: &str) -> &str {
        between(&self.server, &format!("mig_internal void _X{name}\n"), "\n}\n")
    }

    pub(crate) fn request(&self, name: &str) -> Message {
        let function = self.user(name);
        let exact = number_after(function, "sizeof(Request) == ");
        let sum = number_after(function, "msgh_size = ");
        let (size, fixed) = match (exact, sum) {
            (Some(size), _) => (size, true),
            (None, Some(size)) => (size, false),
            (None, None) => panic!("{name}: no size of its request"),
        };
        Message { size, fixed, items: items(structure(function, "Request"), function) }
    }

    pub(crate) fn reply(&self, name: &str, user: &str) -> Message {
        let client = self.user(user);
        let checked = between(client, "if (mig_unlikely (OutP->Head.msgh_id", "RetCodeType");
        let least = number_after(checked, "msgh_size < ");
        let exact = number_after(checked, "msgh_size != ");
        let (size, fixed) = match (least, exact) {
            (Some(size), _) => (size, false),
            (None, Some(size)) => (size, true),
            (None, None) => panic!("{name}: no size of its reply"),
        };
        // The descriptors of a sent reply are in the server's file; the client's file has those of
        // a received reply.
        Message { size, fixed, items: items(structure(client, "Reply"), self.server(name)) }
    }

    pub(crate) fn is_complex(&self, name: &str) -> bool {
        self.user(name).contains("msgh_bits = MACH_MSGH_BITS_COMPLEX")
    }
}

fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let start = text.find(begin).unwrap_or_else(|| panic!("no {begin:?}")) + begin.len();
    let length = text[start..].find(end).unwrap_or_else(|| panic!("no {end:?} after {begin:?}"));
    &text[start..start + length]
}

/// The number after the first occurrence of one of `words` that has a number after it.
fn number_after(text: &str, words: &str) -> Option<u64> {
    text.match_indices(words).find_map(|(at, _)| {
        let rest = &text[at + words.len()..];
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..digits].parse().ok()
    })
}

/// The text of the C struct `name` in a function.
fn structure<'a>(function: &'a str, name: &str) -> &'a str {
    let end = function.find(&format!("\t}} {name};")).unwrap();
    let start = function[..end].rfind("typedef struct {").unwrap();
    &function[start..end]
}

/// The items of the struct of a message, with the values of its descriptors.
fn items(structure: &str, function: &str) -> Vec<Item> {
    let descriptors = structure.lines().filter_map(|line| {
        let rest = line.trim().strip_prefix("mach_msg_type_")?;
        let rest = rest.strip_prefix("t ").or(rest.strip_prefix("long_t "))?;
        rest.strip_suffix("Type;")
    });
    descriptors.map(|name| item(name, function)).collect()
}

fn item(name: &str, function: &str) -> Item {
    let long = function.contains(&format!("const mach_msg_type_long_t {name}Type = {{"));
    let short = function.contains(&format!("const mach_msg_type_t {name}Type = {{"));
    if !long && !short {
        // GNU's server functions leave the descriptor of the result without values.
        return Item { name: name.to_owned(), sent: String::new(), bits: 0, count: 0, inline: true, long };
    }
    let kind = if long { "mach_msg_type_long_t" } else { "mach_msg_type_t" };
    let text = between(function, &format!("const {kind} {name}Type = {{"), "};");
    let prefix = if long { "msgtl" } else { "msgt" };
    let field = |prefix: &str, field: &str| {
        let value = between(text, &format!("/* {prefix}_{field} = */"), ",\n").trim();
        value.rsplit(' ').next().unwrap_or_default().to_owned()
    };
    Item {
        name: name.to_owned(),
        sent: field(prefix, "name"),
        bits: field(prefix, "size").parse().unwrap(),
        count: field(prefix, "number").parse().unwrap(),
        inline: field("msgt", "inline") == "TRUE",
        long: field("msgt", "longform") == "TRUE",
    }
}
