//! The entries of tar archives.

use ::tar::{EntryType, Header};
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
    /// The extended attributes that an image keeps: names and values.
    pub(super) attributes: Vec<(String, Vec<u8>)>,
}

/// Headers begin at multiples of this many bytes.
const BLOCK: u64 = 512;
/// What stands before the name of an extended attribute in tar's own headers.
const EXTENDED: &str = "SCHILY.xattr.";

/// Whether an image keeps this extended attribute: it does not keep those that only the host's
/// security modules understand.
fn is_kept(name: &str) -> bool {
    name == "security.capability" || name.starts_with("user.")
}

/// All entries of an archive, without device nodes.
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
    let mut archive = ::tar::Archive::new(archive);
    let mut entries = Vec::new();
    // Where headers in addition to the entry's own may be: between the entry before and it.
    let (mut end, mut additional) = (0, Vec::new());
    for entry in archive.entries_with_seek()? {
        let entry = entry?;
        let start = end;
        end = (entry.raw_file_position() + entry.size()).next_multiple_of(BLOCK);
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
        additional.push(start..entry.raw_header_position());
        let header = entry.header();
        entries.push(Entry {
            path,
            mode: header.mode()? & 0o7777,
            user: u32::try_from(header.uid()?)?,
            group: u32::try_from(header.gid()?)?,
            modified: u32::try_from(header.mtime()?)?,
            kind,
            attributes: Vec::new(),
        });
    }
    let mut archive = archive.into_inner();
    for (entry, place) in entries.iter_mut().zip(additional).filter(|(_, place)| !place.is_empty()) {
        let mut headers = vec![0; usize::try_from(place.end - place.start)?];
        archive.seek(SeekFrom::Start(place.start)).and_then(|_| archive.read_exact(&mut headers))?;
        entry.attributes = attributes(&headers)
            .with_context(|| format!("{}: the extended attributes are damaged", entry.path))?;
    }
    Ok(entries)
}

/// The extended attributes in the headers before an entry's own that an image keeps. `None`: a
/// header is damaged. A value may have any bytes, also that which ends a line.
fn attributes(mut headers: &[u8]) -> Option<Vec<(String, Vec<u8>)>> {
    let mut attributes = Vec::new();
    while let Some((header, rest)) = headers.split_at_checked(BLOCK as usize) {
        let header = Header::from_byte_slice(header);
        let size = usize::try_from(header.entry_size().ok()?).ok()?;
        let mut records = rest.get(..size)?;
        headers = rest.get(size.checked_next_multiple_of(BLOCK as usize)?..)?;
        if header.entry_type() != EntryType::XHeader {
            continue;
        }
        while !records.is_empty() {
            // The length in decimal digits, a space, the key, `=`, the value and a line feed: the
            // length is that of all of them.
            let digits = records.iter().position(|&byte| byte == b' ')?;
            let length: usize = str::from_utf8(&records[..digits]).ok()?.parse().ok()?;
            let (record, next) = records.split_at_checked(length)?;
            let (b'\n', record) = record.get(digits + 1..)?.split_last()? else { return None };
            let equals = record.iter().position(|&byte| byte == b'=')?;
            let name = str::from_utf8(&record[..equals]).ok().and_then(|key| key.strip_prefix(EXTENDED));
            if let Some(name) = name.filter(|name| is_kept(name)) {
                attributes.push((name.to_string(), record[equals + 1..].to_vec()));
            }
            records = next;
        }
    }
    Some(attributes)
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
    fn capabilities_and_attributes_of_users_are_kept() {
        let mut archive = ::tar::Builder::new(Vec::new());
        let value = b"\x01\0\0\x02=\n".as_slice();
        for name in ["security.capability", "user.note", "security.selinux", "trusted.note"] {
            archive.append_pax_extensions([(&*format!("{EXTENDED}{name}"), value)]).unwrap();
            let mut header = ::tar::Header::new_ustar();
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(0);
            header.set_mode(0o755);
            header.set_size(0);
            archive.append_data(&mut header, name, std::io::empty()).unwrap();
        }
        let archive = archive.into_inner().unwrap();
        let entries = parse(Cursor::new(&archive)).unwrap();
        let kept: Vec<_> = entries.iter().flat_map(|entry| &entry.attributes).collect();
        assert_eq!(
            kept,
            [
                &("security.capability".to_string(), value.to_vec()),
                &("user.note".to_string(), value.to_vec())
            ]
        );
        assert!(entries.iter().all(|entry| entry.mode == 0o755));
        // A record that says that it is longer than the header is damage.
        let mut damaged = archive;
        damaged[512] = b'9';
        assert!(parse(Cursor::new(damaged)).is_err());
    }
}
