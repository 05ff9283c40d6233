//! Images with an init of Debian's: one can log in at their terminals.

use super::tree::Tree;
use anyhow::Result;

/// The terminal of a guest.
const CONSOLE: &str = "T0:2345:respawn:/sbin/getty -L ttyS0 115200 vt100";

/// Starts getty on the console, and on the terminals of a screen only if there are any. root has
/// no password then, since Debian's installer has asked for none. Without Debian's init nothing
/// changes.
pub(super) fn make_possible(tree: &mut Tree) -> Result<()> {
    if tree.edit("etc/inittab", inittab)? {
        tree.edit("etc/shadow", shadow)?;
    }
    Ok(())
}

/// Debian's table with these lines instead of its own: it has getty on the terminals of a screen
/// and, as a comment, on a serial line.
fn inittab(text: &str) -> String {
    let line = |line: &str| {
        let fields: Vec<&str> = line.splitn(4, ':').collect();
        let [id, levels, "respawn", command] = fields[..] else { return format!("{line}\n") };
        match command.strip_prefix("/sbin/getty ").and_then(|words| words.split(' ').next_back()) {
            Some(_) if id == "#T0" => format!("{CONSOLE}\n"),
            Some(terminal) if !id.starts_with('#') => format!(
                "{id}:{levels}:respawn:/bin/sh -c '[ -e /dev/{terminal} ] || exec sleep 86400; exec {command}'\n"
            ),
            _ => format!("{line}\n"),
        }
    };
    let text: String = text.lines().map(line).collect();
    if text.contains(CONSOLE) { text } else { format!("{text}{CONSOLE}\n") }
}

/// The table of passwords with an empty one for root, if none has been set.
fn shadow(text: &str) -> String {
    text.lines()
        .map(|line| match line.strip_prefix("root:*:") {
            Some(rest) => format!("root::{rest}\n"),
            None => format!("{line}\n"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Node;

    fn content(tree: &Tree, path: &str) -> String {
        let node = tree.nodes().find(|(name, ..)| *name == path).map(|(.., node)| node);
        let Some(Node::File(file)) = node else { panic!("{path} is no file") };
        String::from_utf8(tree.content(*file).unwrap().into_owned()).unwrap()
    }

    #[test]
    fn getty_runs_on_the_console_and_on_terminals_that_are_there() {
        let mut tree = Tree::new();
        let table = "id:2:initdefault:\n1:2345:respawn:/sbin/getty --noclear 38400 tty1\n\
                     #T0:23:respawn:/sbin/getty -L ttyS0 9600 vt100\n\
                     #T3:23:respawn:/sbin/mgetty -x0 -s 57600 ttyS3\n";
        tree.file("etc/inittab", 0o644, table.into());
        tree.file("etc/shadow", 0o640, "root:*:1:0:::::\ndaemon:*:1:0:::::\n".into());
        make_possible(&mut tree).unwrap();
        let expected = format!(
            "id:2:initdefault:\n1:2345:respawn:/bin/sh -c '[ -e /dev/tty1 ] || exec sleep 86400; \
             exec /sbin/getty --noclear 38400 tty1'\n{CONSOLE}\n\
             #T3:23:respawn:/sbin/mgetty -x0 -s 57600 ttyS3\n"
        );
        assert_eq!(content(&tree, "etc/inittab"), expected);
        assert_eq!(content(&tree, "etc/shadow"), "root::1:0:::::\ndaemon:*:1:0:::::\n");
        let (_, attributes, _) = tree.nodes().find(|(path, ..)| *path == "etc/shadow").unwrap();
        assert_eq!(attributes.mode, 0o640);
        // Done twice, nothing changes.
        make_possible(&mut tree).unwrap();
        assert_eq!(content(&tree, "etc/inittab").matches(CONSOLE).count(), 1);
    }

    #[test]
    fn a_password_that_is_there_and_a_system_without_init_stay_as_they_are() {
        assert_eq!(shadow("root:$6$x:1:0:::::\n"), "root:$6$x:1:0:::::\n");
        let mut tree = Tree::new();
        tree.file("etc/shadow", 0o640, "root:*:1:0:::::\n".into());
        make_possible(&mut tree).unwrap();
        assert_eq!(content(&tree, "etc/shadow"), "root:*:1:0:::::\n");
    }
}
