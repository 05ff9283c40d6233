//! Tables of subsystems, calls and types, and the definitions that are made from them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A subsystem of a table.
pub(crate) struct Subsystem {
    pub(crate) name: String,
    pub(crate) base: u64,
    /// The calls: the id, whether the call is a simple routine, its name, and its arguments.
    pub(crate) calls: Vec<(u64, bool, String, String)>,
}

/// The contents of a table file.
pub(crate) struct Table {
    pub(crate) subsystems: Vec<Subsystem>,
    pub(crate) types: BTreeMap<String, String>,
}

impl Table {
    pub(crate) fn read(text: &str) -> Table {
        let mut table = Table { subsystems: Vec::new(), types: BTreeMap::new() };
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(subsystem) = line.strip_prefix("subsystem ") {
                let (name, base) = subsystem.split_once(' ').unwrap();
                let (name, base) = (name.to_owned(), base.parse().unwrap());
                table.subsystems.push(Subsystem { name, base, calls: Vec::new() });
            } else if let Some((name, of)) = line.split_once(" = ").filter(|(name, _)| !name.contains('(')) {
                table.types.insert(name.to_owned(), of.to_owned());
            } else if line != "types" {
                let (id, call) = line.split_once(' ').unwrap();
                let (simple, call) = match call.strip_prefix("simple ") {
                    Some(call) => (true, call),
                    None => (false, call),
                };
                let (name, arguments) = call.split_once('(').unwrap();
                let arguments = arguments.strip_suffix(')').unwrap().to_owned();
                let calls = &mut table.subsystems.last_mut().unwrap().calls;
                calls.push((id.parse().unwrap(), simple, name.to_owned(), arguments));
            }
        }
        table
    }

    /// Adds the definition of a type after the definitions of the types of its elements.
    fn define(&self, name: &str, done: &mut BTreeSet<String>, text: &mut String) {
        let Some(of) = self.types.get(name) else { return };
        if !done.insert(name.to_owned()) {
            return;
        }
        for word in of.split(|letter: char| !letter.is_alphanumeric() && letter != '_') {
            self.define(word, done, text);
        }
        writeln!(text, "type {name} = {of};").unwrap();
    }

    /// The text of a definition of a subsystem.
    pub(crate) fn definition(&self, subsystem: &Subsystem) -> String {
        let mut text = format!("subsystem {} {};\n", subsystem.name, subsystem.base);
        let mut done = BTreeSet::new();
        self.types.keys().for_each(|name| self.define(name, &mut done, &mut text));
        let mut next = subsystem.base;
        for (id, simple, name, arguments) in &subsystem.calls {
            (next..*id).for_each(|_| text += "skip;\n");
            next = id + 1;
            let kind = if *simple { "simpleroutine" } else { "routine" };
            writeln!(text, "{kind} {name}({arguments});").unwrap();
        }
        text
    }
}
