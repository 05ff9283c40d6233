//! Requests between servers are written in `interfaces/*.defs`, and `mig` writes the code that
//! encodes them. Only the kernel's own protocols are encoded by hand: thread starts, page faults,
//! exceptions, interrupts, those of sigma0.

use anyhow::{Context, Result, bail};
use mac_build::tree;
use std::fs;

/// Directories in which no message with a label is made by hand.
const DIRECTORIES: [&str; 4] = ["lib", "servers", "personality", "docs/templates"];

/// What makes messages and reads them: their labels are arguments.
const BELOW: [&str; 5] = ["lib/l4/", "lib/x2/", "lib/direct/", "lib/interfaces/", "lib/message/"];

/// Files that encode or decode a protocol of the kernel's, or tests of what hostile servers send.
const KERNEL_PROTOCOLS: [&str; 4] = [
    "lib/mach-l4/src/event.rs",
    "lib/mach-l4/src/worker.rs",
    "servers/sigma0/src/",
    "servers/root/src/tests/",
];

/// What makes a message; its first argument is the label.
const MAKERS: [&str; 3] = ["Message::with_words(", "Message::new(", "MessageTag::new("];

/// Checks that no request is encoded by hand.
pub(crate) fn check() -> Result<()> {
    let mut found = Vec::new();
    for directory in DIRECTORIES {
        for file in tree::files(&tree::root().join(directory), &[".rs"])? {
            let name = file.strip_prefix(tree::root()).unwrap_or(&file).display().to_string();
            if BELOW.iter().chain(&KERNEL_PROTOCOLS).any(|prefix| name.starts_with(prefix)) {
                continue;
            }
            let text = fs::read_to_string(&file).with_context(|| format!("reading {name}"))?;
            found.extend(labelled_lines(&text).map(|(line, text)| format!("    {name}:{line}: {text}")));
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    bail!(
        "requests are encoded by the stubs of interfaces/*.defs (docs/src/mig.md), not by hand:\n{}",
        found.join("\n")
    )
}

/// The lines, from 1 on, that make a message with another label than 0.
fn labelled_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    lines.filter(|(_, line)| {
        MAKERS.iter().any(|maker| {
            line.match_indices(maker).any(|(at, _)| {
                let label = &line[at + maker.len()..];
                !["0,", "0)"].iter().any(|none| label.starts_with(none))
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_with_a_label_is_found_and_one_without_is_none() {
        let text = "let a = Message::new(0);\nipc::call(to, Message::with_words(PRINT, &[1]))\n\
                    MessageTag::new(0, 1, 0)\nMessageTag::new(4000, 1, 0)\nMessage::with_words(0, &[ip, sp])\n";
        let found: Vec<usize> = labelled_lines(text).map(|(line, _)| line).collect();
        assert_eq!(found, [2, 4]);
    }

    #[test]
    fn no_request_is_encoded_by_hand() {
        check().unwrap();
    }
}
