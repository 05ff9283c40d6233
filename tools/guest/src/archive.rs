//! Writing cpio archives in "newc" form, as Linux's initial root file system wants them.

use super::tree::{Node, Tree};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};

/// An archive that is being written, and how many bytes of it are.
struct Archive<W> {
    out: W,
    length: u64,
}

/// Packs a tree; returns how many bytes that were. The same tree makes the same bytes.
///
/// # Errors
/// The archive cannot be written, the tree's contents cannot be read, or a file is larger than such
/// an archive can hold.
pub(super) fn pack(tree: &Tree, out: impl Write) -> Result<u64> {
    let mut names: BTreeMap<usize, usize> = BTreeMap::new();
    for (_, _, node) in tree.nodes() {
        if let Node::File(file) = node {
            *names.entry(*file).or_default() += 1;
        }
    }
    let mut archive = Archive { out, length: 0 };
    // Files with several names have one inode number, and their data with the last name.
    let mut inodes: BTreeMap<usize, u32> = BTreeMap::new();
    let mut left = names.clone();
    for (next, (path, attributes, node)) in (1..).zip(tree.nodes()) {
        let (kind, links): (u32, usize) = match node {
            Node::Directory => (0o040_000, 2),
            Node::SymbolicLink(_) => (0o120_000, 1),
            Node::File(file) => (0o100_000, names[file]),
        };
        let data = match node {
            Node::Directory => Vec::new().into(),
            Node::SymbolicLink(target) => target.as_bytes().into(),
            Node::File(file) => {
                let remaining = left.entry(*file).or_default();
                *remaining -= 1;
                if *remaining == 0 { tree.content(*file)? } else { Vec::new().into() }
            }
        };
        let inode = match node {
            Node::File(file) => *inodes.entry(*file).or_insert(next),
            _ => next,
        };
        let numbers = [
            inode,
            kind | attributes.mode,
            attributes.user,
            attributes.group,
            links as u32,
            attributes.modified,
        ];
        archive.entry(path, numbers, &data).with_context(|| format!("packing {path}"))?;
    }
    archive.entry("TRAILER!!!", [0, 0, 0, 0, 1, 0], &[])?;
    // A machine maps an archive of whole pages instead of loading it.
    archive.pad(4096)?;
    Ok(archive.length)
}

/// Appends an archive with files of zeros, so many mebibytes of them, to the archive that a file
/// has; the zeros take no space in it. After each file of zeros there is one that tells how many
/// bytes are before it, so that a program can see that all of them are there.
pub(super) fn append_zeros(to: &mut File, mebibytes: u64) -> Result<()> {
    let mut archive = Archive { length: to.seek(SeekFrom::End(0))?, out: to };
    archive.entry("filling", [1, 0o040_755, 0, 0, 2, 0], &[])?;
    let mut before = 0;
    for number in 0..mebibytes.div_ceil(LARGEST_ZEROS) {
        let size = (mebibytes - before).min(LARGEST_ZEROS) << 20;
        before += size >> 20;
        let file = |index| [2 * number as u32 + index, 0o100_644, 0, 0, 1, 0];
        archive.header(&format!("filling/zeros-{number}"), file(2), size)?;
        archive.out.seek(SeekFrom::Current(i64::try_from(size)?))?;
        archive.length += size;
        let text = format!("{} bytes of zeros before\n", before << 20);
        archive.entry(&format!("filling/after-{number}"), file(3), text.as_bytes())?;
    }
    archive.entry("TRAILER!!!", [0, 0, 0, 0, 1, 0], &[])?;
    archive.pad(4096)
}

/// How many mebibytes one file of zeros has at most.
const LARGEST_ZEROS: u64 = 1 << 10;

impl<W: Write> Archive<W> {
    fn entry(&mut self, path: &str, numbers: [u32; 6], data: &[u8]) -> Result<()> {
        self.header(path, numbers, data.len() as u64)?;
        self.write(data)?;
        self.pad(4)
    }

    fn header(&mut self, path: &str, numbers: [u32; 6], size: u64) -> Result<()> {
        self.write(b"070701")?;
        let size = u32::try_from(size).context("files of 4 GiB do not fit an image")?;
        // After the size: the device's numbers and those of the device that the entry represents,
        // all 0.
        for number in numbers.into_iter().chain([size, 0, 0, 0, 0, path.len() as u32 + 1, 0]) {
            self.write(format!("{number:08x}").as_bytes())?;
        }
        self.write(path.as_bytes())?;
        self.write(&[0])?;
        self.pad(4)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.length += bytes.len() as u64;
        Ok(self.out.write_all(bytes)?)
    }

    fn pad(&mut self, alignment: u64) -> Result<()> {
        let zeros = self.length.next_multiple_of(alignment) - self.length;
        self.write(&[0; 4096][..zeros as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads entries back: path, the numbers, data.
    fn unpack(mut archive: &[u8]) -> Vec<(String, Vec<u32>, Vec<u8>)> {
        let mut entries = Vec::new();
        loop {
            assert_eq!(&archive[..6], b"070701");
            let numbers: Vec<u32> = archive[6..110]
                .chunks(8)
                .map(|digits| u32::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap())
                .collect();
            let (size, name) = (numbers[6] as usize, numbers[11] as usize);
            let path = String::from_utf8(archive[110..110 + name - 1].to_vec()).unwrap();
            let data = (110 + name).next_multiple_of(4);
            if path == "TRAILER!!!" {
                return entries;
            }
            entries.push((path, numbers, archive[data..data + size].to_vec()));
            archive = &archive[(data + size).next_multiple_of(4)..];
        }
    }

    fn packed(tree: &Tree) -> Vec<u8> {
        let mut packed = Vec::new();
        assert_eq!(pack(tree, &mut packed).unwrap(), packed.len() as u64);
        packed
    }

    #[test]
    fn what_is_packed_can_be_read() {
        let mut tree = Tree::new();
        tree.file("etc/motd", 0o644, b"hello".to_vec());
        tree.directory("tmp", 0o1777);
        tree.complete();
        let packed = packed(&tree);
        assert_eq!(packed.len() % 4096, 0);
        let entries = unpack(&packed);
        let find = |path: &str| entries.iter().find(|entry| entry.0 == path).unwrap();
        assert_eq!(find("etc/motd").2, b"hello");
        assert_eq!(find("etc/motd").1[1], 0o100_644);
        assert_eq!(find("tmp").1[1], 0o041_777);
        assert_eq!(find("bin").2, b"usr/bin");
        let inodes: std::collections::HashSet<u32> = entries.iter().map(|entry| entry.1[0]).collect();
        assert_eq!(inodes.len(), entries.len());
    }
}
