//! Reading tar archives as packages have them: ustar with GNU's long names, or pax headers for
//! names.

use anyhow::{Context, Result, bail};

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

const BLOCK: usize = 512;

/// All entries of an archive.
pub(super) fn parse(archive: &[u8]) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    let mut rest = archive;
    // What an extension header says about the entry that follows it.
    let (mut long_path, mut long_link) = (None, None);
    while let Some((header, behind)) = rest.split_at_checked(BLOCK) {
        if header.iter().all(|byte| *byte == 0) {
            return Ok(entries);
        }
        check_sum(header)?;
        let size = number(&header[124..136])? as usize;
        let data = behind.get(..size).context("an entry is cut off")?;
        rest = behind.get(size.next_multiple_of(BLOCK)..).unwrap_or_default();
        match header[156] {
            b'L' => long_path = Some(text(data)?),
            b'K' => long_link = Some(text(data)?),
            b'x' => (long_path, long_link) = pax_names(data)?,
            b'g' => {}
            kind => {
                let path = match long_path.take() {
                    Some(path) => path,
                    None => short_path(header)?,
                };
                let link = match long_link.take() {
                    Some(link) => link,
                    None => text(&header[157..257])?,
                };
                let kind = match kind {
                    b'0' | 0 => Kind::File(data.to_vec()),
                    b'1' => Kind::HardLink(plain(&link)),
                    b'2' => Kind::SymbolicLink(link),
                    b'5' => Kind::Directory,
                    other => bail!("{path}: entries of kind {:?} are not understood", char::from(other)),
                };
                entries.push(Entry {
                    path: plain(&path),
                    mode: number(&header[100..108])? as u32 & 0o7777,
                    user: number(&header[108..116])? as u32,
                    group: number(&header[116..124])? as u32,
                    modified: number(&header[136..148])? as u32,
                    kind,
                });
            }
        }
    }
    bail!("the end is missing")
}

fn check_sum(header: &[u8]) -> Result<()> {
    let sum: u64 = header
        .iter()
        .enumerate()
        // The field itself counts as spaces.
        .map(|(place, byte)| u64::from(if (148..156).contains(&place) { b' ' } else { *byte }))
        .sum();
    if number(&header[148..156])? != sum {
        bail!("a header's checksum is wrong");
    }
    Ok(())
}

/// The path in the header itself, with its prefix if the format has one.
fn short_path(header: &[u8]) -> Result<String> {
    let name = text(&header[..100])?;
    let prefix = if &header[257..263] == b"ustar\0" { text(&header[345..500])? } else { String::new() };
    Ok(if prefix.is_empty() { name } else { format!("{prefix}/{name}") })
}

/// Path and link of a pax header: records `LENGTH KEY=VALUE\n`.
fn pax_names(mut data: &[u8]) -> Result<(Option<String>, Option<String>)> {
    let (mut path, mut link) = (None, None);
    while !data.is_empty() {
        let space = data.iter().position(|byte| *byte == b' ').context("a pax record without a length")?;
        let length: usize = std::str::from_utf8(&data[..space])?.parse().context("a pax record's length")?;
        let record = data.get(space + 1..length).context("a pax record is cut off")?;
        data = &data[length..];
        let record = text(record.strip_suffix(b"\n").context("a pax record's end")?)?;
        match record.split_once('=') {
            Some(("path", value)) => path = Some(value.to_string()),
            Some(("linkpath", value)) => link = Some(value.to_string()),
            Some(("size", _)) => bail!("files of 8 GiB are not understood"),
            _ => {}
        }
    }
    Ok((path, link))
}

/// A path without what stands before its first component and after its last.
fn plain(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    parts.join("/")
}

/// The text up to the first NUL.
fn text(field: &[u8]) -> Result<String> {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    String::from_utf8(field[..end].to_vec()).context("a name is not UTF-8")
}

/// An octal number that ends with a space, a NUL or the field.
fn number(field: &[u8]) -> Result<u64> {
    let digits: String = field
        .iter()
        .map(|byte| char::from(*byte))
        .skip_while(|c| *c == ' ')
        .take_while(|c| c.is_digit(8))
        .collect();
    if digits.is_empty() { Ok(0) } else { Ok(u64::from_str_radix(&digits, 8)?) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn what_tar_packs_is_read() {
        // The oldest format has no room for long targets of links.
        for (format, depth) in [("gnu", 6), ("pax", 6), ("ustar", 4)] {
            let directory = std::env::temp_dir().join(format!("mac-tar-{}-{format}", std::process::id()));
            let long = "long-directory-name/".repeat(depth);
            let script = format!(
                "set -e; mkdir -p '{long}' && cd '{long}' && printf content >file && ln file other && ln -s file link"
            );
            std::fs::create_dir_all(&directory).unwrap();
            assert!(
                Command::new("sh").args(["-c", &script]).current_dir(&directory).status().unwrap().success()
            );
            let tar = Command::new("tar")
                .args([
                    &format!("--format={format}"),
                    "--sort=name",
                    "--mode=u=rwx,go=rx",
                    "--owner=7",
                    "--group=8",
                ])
                .args(["--mtime=@1000", "-c", "."])
                .current_dir(&directory)
                .output()
                .unwrap();
            std::fs::remove_dir_all(&directory).unwrap();
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
