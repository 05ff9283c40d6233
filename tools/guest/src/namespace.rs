//! Where packages' scripts run on this host: in namespaces of their own (users, mounts, processes,
//! network), as users that own nothing here. Their root is a user id of the host without any right,
//! their file system lies in memory and goes with them, and there is no network.

use anyhow::{Context, Result, bail};
use mac_build::command;
use mac_build::scratch::Guard;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

/// The first of the host's user ids that root takes for the namespace. Others take what
/// /etc/subuid and /etc/subgid give them.
const FIRST: u32 = 100_000;
/// How many ids a system of Debian's has.
const COUNT: u32 = 65_536;

/// What the process in the namespaces does before it becomes the command: the working directory
/// appears as /mnt/packages, although its user may not enter the directories above it, and file
/// systems in memory as /mnt and as its home.
const PREPARE: &str = "set -e
mount -t tmpfs -o mode=755,size=90% packages /mnt
mkdir /mnt/packages /mnt/tmp
mount --no-canonicalize --bind . /mnt/packages
cd /
mount -t tmpfs -o mode=700 home /root
export HOME=/root TMPDIR=/mnt/tmp
exec \"$@\"";

/// Namespaces of users, which end when this is dropped.
pub(super) struct Namespace {
    /// The process that holds them.
    holder: Guard,
}

/// Where a command is started, as it sees it.
pub(super) struct Place {
    pub(super) command: Command,
    /// The path under which it finds the directory that it was given.
    pub(super) packages: String,
}

impl Namespace {
    /// Makes namespaces in which there are a system's users.
    pub(super) fn new() -> Result<Namespace> {
        let mut holder = command::clean("unshare");
        holder.args(["--user", "sh", "-c", "echo ready; exec cat"]).stdin(Stdio::piped());
        holder.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut holder =
            Guard(holder.spawn().context("cannot start unshare (Debian: apt-get install util-linux)")?);
        let mut ready = [0; 6];
        let said = holder.0.stdout.as_mut().context("unshare without output")?;
        if said.read_exact(&mut ready).is_err() {
            let mut why = String::new();
            let _ = holder.0.stderr.take().map(|mut error| error.read_to_string(&mut why));
            bail!("this machine refuses user namespaces: {}", why.trim());
        }
        let process = holder.0.id();
        if rustix::process::geteuid().is_root() {
            let map = format!("0 {FIRST} {COUNT}\n");
            for file in ["uid_map", "gid_map"] {
                fs::write(format!("/proc/{process}/{file}"), &map)
                    .with_context(|| format!("this machine refuses the user ids from {FIRST} on"))?;
            }
        } else {
            let ids = [("newuidmap", "/etc/subuid"), ("newgidmap", "/etc/subgid")];
            for (program, file) in ids {
                let first = given(file)?.to_string();
                let mut map = command::clean(program);
                map.args([process.to_string(), "0".into(), first, COUNT.to_string()]);
                command::output(&mut map)
                    .context("needed for user namespaces (Debian: apt-get install uidmap)")?;
            }
        }
        Ok(Namespace { holder })
    }

    /// A command in the namespaces, with a directory of the host.
    pub(super) fn place(&self, program: &str, directory: &Path) -> Place {
        let mut command = command::clean("nsenter");
        command.arg(format!("--user=/proc/{}/ns/user", self.holder.0.id()));
        command.args(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "--net"]);
        command.args(["--mount-proc", "sh", "-c", PREPARE, "sh", program]).current_dir(directory);
        Place { command, packages: "/mnt/packages".into() }
    }
}

/// A command that runs in no namespaces.
pub(super) fn none(program: &str, directory: &Path) -> Place {
    let mut command = command::clean(program);
    command.current_dir(directory);
    Place { command, packages: directory.display().to_string() }
}

/// The first of the ids that a file gives to this user.
fn given(file: &str) -> Result<u32> {
    let (id, name) =
        (rustix::process::getuid().as_raw().to_string(), std::env::var("USER").unwrap_or_default());
    let text = fs::read_to_string(file).unwrap_or_default();
    first_given(&text, &[&id, &name]).with_context(|| {
        format!(
            "installing Debian's packages needs {COUNT} user ids of {file}: \
             sudo usermod --add-subuids {FIRST}-{last} --add-subgids {FIRST}-{last} {name}",
            last = FIRST + COUNT - 1
        )
    })
}

/// The first of the ids that such a text gives to one of these users, if they are enough.
fn first_given(text: &str, users: &[&str]) -> Option<u32> {
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let user = fields.next()?;
        let (first, count): (u32, u32) = (fields.next()?.parse().ok()?, fields.next()?.trim().parse().ok()?);
        (users.contains(&user) && !user.is_empty() && count >= COUNT).then_some(first)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_by_name_and_number() {
        let text = "one:100000:65536\n1001:165536:65536\ntwo:300000:1000\ntwo:400000:65536\n:1:65536\n";
        assert_eq!(first_given(text, &["1000", "one"]), Some(100_000));
        assert_eq!(first_given(text, &["1001", ""]), Some(165_536));
        assert_eq!(first_given(text, &["7", "two"]), Some(400_000));
        assert_eq!(first_given(text, &["8", ""]), None);
    }
}
