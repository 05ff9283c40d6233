//! The entries of tar archives.

use ::tar::EntryType;
use anyhow::{Context, Result, bail};
use std::io::{Read, Seek, SeekFrom};

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Directory,
    /// Where in the archive the content is, and its length in bytes.
    File(u64, u64),
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

/// The extended attribute that gives a program some of the superuser's rights.
const CAPABILITY: &str = "SCHILY.xattr.security.capability";
/// The permission bit by which a program has its owner's rights.
const SET_USER_ID: u32 = 0o4000;

/// All entries of an archive, without device nodes. A program with capabilities is set-user-id
/// instead, as Debian's own scripts make it where a file system has no capabilities.
pub(super) fn parse(mut archive: impl Read + Seek) -> Result<Vec<Entry>> {
    // The reader would take the end of the output for the end of the archive. An archive ends with
    // an empty block, so check that it is there.
    let mut last = [1; 512];
    archive
        .seek(SeekFrom::End(-512))
        .and_then(|_| archive.read_exact(&mut last))
        .context("it is too short")?;
    if last != [0; 512] {
        bail!("the end is missing");
    }
    archive.rewind()?;
    let mut entries = Vec::new();
    for entry in ::tar::Archive::new(archive).entries_with_seek()? {
        let mut entry = entry?;
        let path = plain(str::from_utf8(&entry.path_bytes()).context("a name is not UTF-8")?);
        let link = entry.link_name_bytes().unwrap_or_default().into_owned();
        let link = String::from_utf8(link).context("the target of a link is not UTF-8")?;
        let kind = match entry.header().entry_type() {
            EntryType::XGlobalHeader | EntryType::Char | EntryType::Block | EntryType::Fifo => continue,
            EntryType::Regular => Kind::File(entry.raw_file_position(), entry.size()),
            EntryType::Link => Kind::HardLink(plain(&link)),
            EntryType::Symlink => Kind::SymbolicLink(link),
            EntryType::Directory => Kind::Directory,
            other => bail!("{path}: entries of kind {other:?} are not understood"),
        };
        let has_capabilities = match entry.pax_extensions()? {
            Some(mut extensions) => {
                extensions.any(|extension| extension.is_ok_and(|one| one.key() == Ok(CAPABILITY)))
            }
            None => false,
        };
        let header = entry.header();
        entries.push(Entry {
            path,
            mode: header.mode()? & 0o7777 | if has_capabilities { SET_USER_ID } else { 0 },
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
    use std::io::Cursor;
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
            let entries = parse(Cursor::new(&tar.stdout)).unwrap();
            let find =
                |name: &str| entries.iter().find(|entry| entry.path == format!("{long}{name}")).unwrap();
            assert_eq!(entries[0].path, "");
            assert_eq!(entries[0].kind, Kind::Directory);
            let file = find("file");
            let Kind::File(start, length) = file.kind else { panic!("{format}: {file:?}") };
            assert_eq!(&tar.stdout[start as usize..][..length as usize], b"content", "{format}");
            assert_eq!((file.mode, file.user, file.group, file.modified), (0o755, 7, 8, 1000));
            assert_eq!(find("other").kind, Kind::HardLink(format!("{long}file")));
            assert_eq!(find("link").kind, Kind::SymbolicLink("file".into()));
            // A damaged header is an error, not another name.
            let mut damaged = tar.stdout.clone();
            damaged[0] ^= 1;
            assert!(parse(Cursor::new(damaged)).is_err());
            assert!(parse(Cursor::new(&tar.stdout[..1024])).is_err());
            assert!(parse(Cursor::new(&[0; 100])).is_err());
        }
    }

    #[test]
    fn a_program_with_capabilities_is_set_user_id_instead() {
        let mut archive = ::tar::Builder::new(Vec::new());
        for (name, attribute) in [("ping", CAPABILITY), ("other", "SCHILY.xattr.user.note")] {
            archive.append_pax_extensions([(attribute, b"\x01\0\0\x02".as_slice())]).unwrap();
            let mut header = ::tar::Header::new_ustar();
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(0);
            header.set_mode(0o755);
            header.set_size(0);
            archive.append_data(&mut header, name, std::io::empty()).unwrap();
        }
        let entries = parse(Cursor::new(archive.into_inner().unwrap())).unwrap();
        let modes: Vec<_> = entries.iter().map(|entry| (entry.path.as_str(), entry.mode)).collect();
        assert_eq!(modes, [("ping", 0o4755), ("other", 0o755)]);
    }
}
