//! The entries of tar archives, as packages have them.

use ::tar::EntryType;
use anyhow::{Context, Result, bail};
use std::io::Read;

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Directory,
    File(Vec<u8>),
    SymbolicLink(String),
    /// Another name of the file at that path of the archive.
    HardLink(String),
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Without leading `./` or `/`, without trailing `/`; empty for the root.
    pub(super) path: String,
    /// Permission bits, with set-user-id, set-group-id and sticky.
    pub(super) mode: u32,
    pub(super) user: u32,
    pub(super) group: u32,
    /// Seconds since 1970.
    pub(super) modified: u32,
    pub(super) kind: Kind,
}

/// All entries of an archive.
pub(super) fn parse(archive: &[u8]) -> Result<Vec<Entry>> {
    // The reader would take the end of the output for the end of the archive. An archive ends with
    // an empty block, so check that it is there.
    if !archive.ends_with(&[0; 512]) {
        bail!("the end is missing");
    }
    let mut entries = Vec::new();
    for entry in ::tar::Archive::new(archive).entries()? {
        let mut entry = entry?;
        let path = plain(str::from_utf8(&entry.path_bytes()).context("a name is not UTF-8")?);
        let link = entry.link_name_bytes().unwrap_or_default().into_owned();
        let link = String::from_utf8(link).context("the target of a link is not UTF-8")?;
        let kind = match entry.header().entry_type() {
            EntryType::XGlobalHeader => continue,
            EntryType::Regular => {
                let mut content = Vec::new();
                entry.read_to_end(&mut content).with_context(|| format!("reading {path}"))?;
                Kind::File(content)
            }
            EntryType::Link => Kind::HardLink(plain(&link)),
            EntryType::Symlink => Kind::SymbolicLink(link),
            EntryType::Directory => Kind::Directory,
            other => bail!("{path}: entries of kind {other:?} are not understood"),
        };
        let header = entry.header();
        entries.push(Entry {
            path,
            mode: header.mode()? & 0o7777,
            user: u32::try_from(header.uid()?)?,
            group: u32::try_from(header.gid()?)?,
            modified: u32::try_from(header.mtime()?)?,
            kind,
        });
    }
    Ok(entries)
}

/// A path without what stands before its first component and after its last.
fn plain(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use mac_build::scratch::Scratch;
    use std::process::Command;

    #[test]
    fn what_tar_packs_is_read() {
        // The oldest format has no room for long targets of links.
        for (format, depth) in [("gnu", 6), ("pax", 6), ("ustar", 4)] {
            let scratch = Scratch::new(&format!("tar-{format}")).unwrap();
            let long = "long-directory-name/".repeat(depth);
            let script = format!(
                "set -e; mkdir -p '{long}' && cd '{long}' && printf content >file && ln file other && ln -s file link"
            );
            let mut shell = Command::new("sh");
            assert!(shell.args(["-c", &script]).current_dir(&scratch.0).status().unwrap().success());
            let tar = Command::new("tar")
                .args([
                    &format!("--format={format}"),
                    "--sort=name",
                    "--mode=u=rwx,go=rx",
                    "--owner=7",
                    "--group=8",
                ])
                .args(["--mtime=@1000", "-c", "."])
                .current_dir(&scratch.0)
                .output()
                .unwrap();
            let entries = parse(&tar.stdout).unwrap();
            let find =
                |name: &str| entries.iter().find(|entry| entry.path == format!("{long}{name}")).unwrap();
            assert_eq!(entries[0].path, "");
            assert_eq!(entries[0].kind, Kind::Directory);
            let file = find("file");
            assert_eq!(file.kind, Kind::File(b"content".to_vec()), "{format}");
            assert_eq!((file.mode, file.user, file.group, file.modified), (0o755, 7, 8, 1000));
            assert_eq!(find("other").kind, Kind::HardLink(format!("{long}file")));
            assert_eq!(find("link").kind, Kind::SymbolicLink("file".into()));
            // A damaged header is an error, not another name.
            let mut damaged = tar.stdout.clone();
            damaged[0] ^= 1;
            assert!(parse(&damaged).is_err());
            assert!(parse(&tar.stdout[..1024]).is_err());
        }
    }
}
