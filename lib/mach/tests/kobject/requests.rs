//! Requests of every routine of the definitions in `interfaces/mach`, made from the layouts that
//! `mig` computes.

use std::path::{Path, PathBuf};

use mig::interface::{Argument, Interface, Routine};
use mig::layout::{Item, ItemKind};
use mig::target::{Dialect, Target};
use mig::types::Placement;

/// The text of a definition, with the files that it includes.
fn text(directory: &Path, file: &str) -> String {
    let text = std::fs::read_to_string(directory.join(file)).unwrap();
    let mut all = String::new();
    for line in text.lines() {
        match line.strip_prefix("#include <").and_then(|rest| rest.strip_suffix('>')) {
            Some(file) => all += &self::text(directory, file),
            None => all += line,
        }
        all.push('\n');
    }
    // Comments have been removed when a definition comes from the preprocessor.
    while let Some(start) = all.find("/*") {
        let end = start + all[start..].find("*/").unwrap() + 2;
        all.replace_range(start..end, " ");
    }
    all
}

/// The root directory of the tree.
pub(crate) fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs tests");
    Path::new(&package).join("../..")
}

/// The interface that a definition of `interfaces/mach` describes.
pub(crate) fn interface(name: &str) -> Interface {
    let directory = root().join("interfaces");
    let text = text(&directory, &format!("mach/{name}.defs"));
    let compiled = mig::compile(Target::of(Dialect::Typed), name, &text);
    let report = compiled.report();
    compiled.interface.unwrap_or_else(|| panic!("{report}"))
}

/// What the data of a request is.
pub(crate) trait Chooser {
    /// The type of a right whose type the sender chooses; `received` is the type that must arrive,
    /// if the definition says so.
    fn kind(&mut self, received: Option<u32>) -> u32;
    /// A name for a right of the argument's type.
    fn name(&mut self, of: &str) -> u32;
    /// A number of at most `bits` bits.
    fn number(&mut self, bits: u32) -> u64;
    /// How many elements an array has, of at most `most`.
    fn count(&mut self, most: u64) -> u64;
    /// An address of memory out of line, of this size in bytes.
    fn memory(&mut self, bytes: u64) -> u64;
}

fn is_right(kind: u32) -> bool {
    (16..=21).contains(&kind)
}

fn value(body: &mut Vec<u8>, item: &Item, argument: &Argument, chooser: &mut impl Chooser) -> bool {
    let descriptor = item.descriptor.unwrap();
    let received = (!descriptor.received.is_polymorphic()).then_some(descriptor.received.number);
    let kind = if descriptor.sent.is_polymorphic() { chooser.kind(received) } else { descriptor.sent.number };
    let inline = match descriptor.placement {
        Placement::Inline => true,
        Placement::OutOfLine => false,
        Placement::Either => chooser.count(1) == 0,
    };
    let count = if descriptor.variable { chooser.count(descriptor.count.min(200)) } else { descriptor.count };
    let mut word = u64::from(kind) | u64::from(descriptor.bits) << 8 | count << 32;
    word |= u64::from(inline) << 29 | u64::from(descriptor.long) << 30;
    body.extend_from_slice(&word.to_le_bytes());
    let bytes = count * u64::from(descriptor.bits) / 8;
    if !inline {
        body.extend_from_slice(&chooser.memory(bytes).to_le_bytes());
    } else if is_right(kind) {
        (0..count)
            .for_each(|_| body.extend_from_slice(&u64::from(chooser.name(&argument.of.name)).to_le_bytes()));
    } else {
        let number = |chooser: &mut _| u64::to_le_bytes(Chooser::number(chooser, descriptor.bits));
        let size = (descriptor.bits as usize / 8).clamp(1, 8);
        let start = body.len();
        while ((body.len() - start) as u64) < bytes {
            let number = number(chooser);
            body.extend_from_slice(&number[..size]);
        }
        body.truncate(start + bytes as usize);
    }
    body.resize(body.len().next_multiple_of(8), 0);
    !inline || is_right(kind)
}

/// A request of a routine to the port `to`, with a reply to the port `reply`.
pub(crate) fn request(routine: &Routine, to: u32, reply: u32, chooser: &mut impl Chooser) -> Vec<u8> {
    let mut body = Vec::new();
    let mut complex = false;
    for item in &routine.request.items {
        match (item.kind, item.argument) {
            (ItemKind::Value, Some(argument)) => {
                complex |= value(&mut body, item, &routine.arguments[argument], chooser);
            }
            (ItemKind::Count, _) => {
                body.extend_from_slice(&(2u64 | 32 << 8 | 1 << 29 | 1 << 32).to_le_bytes());
                body.extend_from_slice(&chooser.count(1024).to_le_bytes());
            }
            _ => {}
        }
    }
    let bits = 19 | 21 << 8 | u32::from(complex) << 31;
    let mut bytes = Vec::new();
    for word in [bits, 32 + body.len() as u32, to, 0, reply, 0, 0, routine.id as u32] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.extend_from_slice(&body);
    bytes
}
