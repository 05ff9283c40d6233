//! A disk with a root file system that lasts: made once from an image, and booted from afterwards.
//!
//! The file is raw and sparse. It has a GPT with one partition, in which there is an ext4 file
//! system. The name of the partition says that the disk is one of ours, and in which form.

use super::image::{self, Request};
use super::tree::{ATTRIBUTES, Attributes, Node, Tree};
use anyhow::{Context, Result, bail};
use mac_build::command;
use mac_machine::devices::DiskImage;
use partitions::write::{self, New};
use partitions::{Kind, Partition};
use std::fs::{self, File};
use std::future::{Future, ready};
use std::io::{BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::Command;
use std::str::FromStr;
use std::task::{Context as Task, Poll, Waker};
use std::time::Instant;

/// The name of the partition, before the number of the form.
const NAME: &str = "macadamia root ";
/// The form of the disk: it changes when a system made for one form cannot use another.
const FORM: u32 = 1;
/// What the partition is for, as a GPT has it: the root of a Linux system on x86-64.
const PURPOSE: [u8; 16] =
    [0xe3, 0xbc, 0x68, 0x4f, 0xcd, 0xe8, 0xb1, 0x4d, 0x96, 0xe7, 0xfb, 0xca, 0xf9, 0x84, 0xb7, 0x09];
/// Where the partition begins, in bytes and blocks.
const START: u64 = 1 << 20;
const FIRST: u64 = START / write::BLOCK as u64;
/// The size of a disk if none is given.
const SIZE: Size = Size(8 << 30);
/// How much room a disk has at least in addition to its files.
const ROOM: u64 = 64 << 20;
/// The features of the file system: those that its file server knows, whatever this host's tools
/// would choose.
const FEATURES: &str = "none,has_journal,ext_attr,resize_inode,dir_index,filetype,extent,64bit,flex_bg,\
                        sparse_super,large_file,huge_file,dir_nlink,extra_isize,metadata_csum";

/// A number of bytes, as `8G` or `512M`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size(pub(super) u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let units = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];
        let parsed = units.iter().find_map(|&(unit, shift)| {
            let number: u64 = text.strip_suffix([unit, unit.to_ascii_lowercase()])?.parse().ok()?;
            number.checked_mul(1 << shift)
        });
        parsed.filter(|&size| size > 0).map(Size).ok_or_else(|| "a size is a number and K, M, G or T".into())
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            size if size >= 1 << 30 => write!(f, "{:.1} GiB", size as f64 / f64::from(1 << 30)),
            size => write!(f, "{} MiB", size >> 20),
        }
    }
}

/// Makes the disk from an image if there is no such file. Returns whether it was made.
///
/// # Errors
/// There is a file, which is no disk of ours or of another size; or the disk cannot be made, and
/// then there is no file.
pub(super) fn provide(file: &Path, size: Option<Size>, request: &Request) -> Result<bool> {
    match fs::metadata(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            make(file, size.unwrap_or(SIZE), request).map(|()| true)
        }
        Err(error) => Err(error).with_context(|| format!("the disk {}", file.display())),
        Ok(about) => {
            check(file, &about)?;
            if let Some(size) = size.filter(|size| size.0 != about.len()) {
                let name = file.display();
                bail!("the disk {name} is there and has {}, not {size}: leave out --size", Size(about.len()));
            }
            Ok(false)
        }
    }
}

/// Checks that `e2fsck` finds nothing wrong with the file system of a disk that is not in use.
pub(super) fn check_sound(file: &Path) -> Result<()> {
    let mut e2fsck = tool("e2fsck")?;
    e2fsck.args(["-f", "-n"]).arg(format!("{}?offset={START}", file.display()));
    let found = e2fsck.output().context("starting e2fsck")?;
    if !found.status.success() {
        bail!("the file system is damaged:\n{}", String::from_utf8_lossy(&found.stdout));
    }
    Ok(())
}

/// Checks that a file is a disk of ours.
fn check(file: &Path, about: &fs::Metadata) -> Result<()> {
    let name = file.display();
    if !about.is_file() {
        bail!("{name} is no file");
    }
    let image = File::open(file).with_context(|| format!("the disk {name}"))?;
    let mut forms = table(&image, about.len())?.into_iter().filter_map(|partition| {
        let form = form(&partition)?;
        Some((form, partition))
    });
    let Some((form, partition)) = forms.next() else {
        bail!(
            "{name} is there, and it is no disk that ./mac run has made. It was not changed: --attach {name} gives \
             it to the machine as it is, and --disk with another name makes a disk"
        );
    };
    if form != FORM {
        let age = if form > FORM { "newer" } else { "older" };
        bail!(
            "the disk {name} was made by a version of Macadamia that is {age}: it has form {form}, and this version \
             uses form {FORM}"
        );
    }
    // A superblock has its magic number at this place, and its state after that.
    let mut part = [0; 4];
    let at = partition.first * write::BLOCK as u64 + 1024 + 56;
    image.read_exact_at(&mut part, at).with_context(|| format!("the disk {name}"))?;
    if part[..2] != [0x53, 0xef] {
        bail!("the partition of the disk {name} has no ext4 file system any more");
    }
    if part[2] & ERRORS != 0 { repair(file) } else { Ok(()) }
}

/// The bit of a file system's state that says that errors were found in it.
const ERRORS: u8 = 2;

/// Repairs the file system of a disk as far as that needs no decisions.
///
/// # Errors
/// It needs decisions; or another emulator uses the disk.
fn repair(file: &Path) -> Result<()> {
    DiskImage::of(file).check_free()?;
    eprintln!("mac: the file system of the disk {} has errors: e2fsck repairs it", file.display());
    let mut e2fsck = tool("e2fsck")?;
    e2fsck.arg("-p").arg(format!("{}?offset={START}", file.display()));
    let done = e2fsck.output().context("starting e2fsck")?;
    // 1: it has repaired something; 4 and more: it has not repaired everything.
    if !matches!(done.status.code(), Some(0..4)) {
        bail!(
            "e2fsck does not repair the file system without being asked: run e2fsck '{}?offset={START}'; it said:\n{}",
            file.display(),
            String::from_utf8_lossy(&done.stdout).trim_end()
        );
    }
    Ok(())
}

/// The form that a partition's name says, if it is one of ours.
fn form(partition: &Partition) -> Option<u32> {
    let Kind::Gpt { name, .. } = &partition.kind else { return None };
    String::from_utf16(name).ok()?.strip_prefix(NAME)?.parse().ok()
}

/// The partitions of an image file.
fn table(file: &File, length: u64) -> Result<Vec<Partition>> {
    let image = Image { file, blocks: length / write::BLOCK as u64 };
    let reading = pin!(partitions::read(&image));
    match reading.poll(&mut Task::from_waker(Waker::noop())) {
        Poll::Ready(found) => found.context("reading the disk's partitions"),
        Poll::Pending => bail!("a file cannot be waited for"),
    }
}

struct Image<'a> {
    file: &'a File,
    blocks: u64,
}

impl partitions::Disk for Image<'_> {
    type Error = std::io::Error;

    fn block_size(&self) -> usize {
        write::BLOCK
    }

    fn blocks(&self) -> u64 {
        self.blocks
    }

    fn read(&self, block: u64, buffer: &mut [u8]) -> impl Future<Output = std::io::Result<()>> + Send {
        ready(self.file.read_exact_at(buffer, block * write::BLOCK as u64))
    }
}

/// A program of e2fsprogs', which may be where only an administrator's shell looks.
fn tool(name: &str) -> Result<Command> {
    let others = ["/usr/sbin", "/sbin"].map(|directory| Path::new(directory).join(name));
    let found = command::find(name).or_else(|| others.into_iter().find(|path| path.is_file()));
    let found = found.with_context(|| format!("{name} is missing (Debian: apt-get install e2fsprogs)"))?;
    Ok(command::clean(found))
}

/// Makes the disk, and says how large it is and how long that took.
fn make(file: &Path, size: Size, request: &Request) -> Result<()> {
    let begun = Instant::now();
    tool("debugfs")?;
    let count = fill(image::files(request)?, file, size)?;
    let used = Size(fs::metadata(file)?.blocks() * 512);
    eprintln!(
        "mac: the disk {}: {size} with {count} files, which takes {used} of this host's disk until more is written; \
         made in {:.0} s",
        file.display(),
        begun.elapsed().as_secs_f64()
    );
    Ok(())
}

/// What is removed when this is dropped.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = if self.0.is_dir() { fs::remove_dir_all(&self.0) } else { fs::remove_file(&self.0) };
    }
}

/// Makes a disk of this size with the files of a tree, and with a table of file systems that has
/// this one. Returns how many files there are.
fn fill(mut tree: Tree, file: &Path, size: Size) -> Result<usize> {
    let uuid = text(random()?);
    tree.file("etc/fstab", 0o644, format!("UUID={uuid} / ext4 errors=remount-ro 0 1\n").into_bytes());
    tree.complete();
    let writing = || format!("writing the disk {}", file.display());
    let directory = match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let unfinished = format!(".macadamia-disk-{}", std::process::id());
    let partial = Temporary(directory.join(&unfinished));
    let staged = Temporary(directory.join(format!("{unfinished}-files")));
    fs::create_dir_all(&staged.0).with_context(writing)?;
    let (count, bytes) = stage(&tree, &staged.0).with_context(writing)?;
    let least = Size((bytes + bytes / 4 + ROOM).next_multiple_of(1 << 20));
    if size.0 < least.0 {
        bail!("a disk of {size} is too small for these files: it takes at least {least}");
    }
    let blocks = size.0 / write::BLOCK as u64;
    let image = File::create(&partial.0).with_context(writing)?;
    image.set_len(blocks * write::BLOCK as u64).with_context(writing)?;
    // The last part that is no whole MiB stays free.
    let kibibytes = (((blocks - write::AFTER - FIRST) * write::BLOCK as u64) >> 20) << 10;
    let files = staged.0.file_name().context("a directory without a name")?;
    let mut mke2fs = tool("mke2fs")?;
    mke2fs.args(["-q", "-F", "-t", "ext4", "-b", "4096", "-I", "256", "-L", "macadamia", "-O", FEATURES]);
    mke2fs.args(["-U", &uuid, "-E", &format!("offset={START},root_owner=0:0"), "-d"]).arg(files);
    mke2fs.args([&unfinished, &format!("{kibibytes}k")]).current_dir(directory);
    command::output(&mut mke2fs).context("making the file system")?;
    set_attributes(&tree, directory, &unfinished, &staged.0).context("setting the owners of files")?;
    let partition = New {
        first: FIRST,
        count: kibibytes * 1024 / write::BLOCK as u64,
        purpose: PURPOSE,
        identity: random()?,
        name: &format!("{NAME}{FORM}"),
    };
    let (before, after) = write::gpt(blocks, random()?, &[partition]);
    image.write_all_at(&before, 0).with_context(writing)?;
    let end = (blocks - write::AFTER) * write::BLOCK as u64;
    image.write_all_at(&after, end).with_context(writing)?;
    fs::rename(&partial.0, file).with_context(writing)?;
    Ok(count)
}

/// A new GUID, which is random.
fn random() -> Result<[u8; 16]> {
    let mut identity = [0; 16];
    let mut source = File::open("/dev/urandom").context("random bytes")?;
    source.read_exact(&mut identity).context("random bytes")?;
    identity[7] = identity[7] & 0x0f | 0x40;
    identity[8] = identity[8] & 0x3f | 0x80;
    Ok(identity)
}

/// A GUID as text: the bytes of its first three numbers are in reverse order.
fn text(identity: [u8; 16]) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let reversed = |range: std::ops::Range<usize>| {
        let mut bytes = identity[range].to_vec();
        bytes.reverse();
        hex(&bytes)
    };
    let [low, middle, high] = [reversed(0..4), reversed(4..6), reversed(6..8)];
    format!("{low}-{middle}-{high}-{}-{}", hex(&identity[8..10]), hex(&identity[10..]))
}

/// Writes the files of a tree, as this user's own, into a directory. Returns how many there are,
/// and their bytes with a block for each.
fn stage(tree: &Tree, directory: &Path) -> Result<(usize, u64)> {
    let (mut count, mut bytes) = (0, 0);
    // The first name of each file.
    let mut names = std::collections::BTreeMap::new();
    // The attributes in the list are set in the image.
    for (path, _, node) in tree.nodes().filter(|(path, ..)| *path != ATTRIBUTES) {
        let place = directory.join(path);
        count += 1;
        bytes += 4096;
        match node {
            Node::Directory => fs::create_dir(&place)?,
            Node::SymbolicLink(target) => std::os::unix::fs::symlink(target, &place)?,
            Node::File(file) => match names.get(file) {
                Some(first) => fs::hard_link(first, &place)?,
                None => {
                    let content = tree.content(*file)?;
                    bytes += content.len() as u64;
                    fs::write(&place, content)?;
                    names.insert(*file, place);
                }
            },
        }
    }
    Ok((count, bytes))
}

/// Gives the files in the image the owners, modes, times and extended attributes of the tree: this
/// host's user may not have such files. Values are written into `scratch`, which is in `directory`.
fn set_attributes(tree: &Tree, directory: &Path, image: &str, scratch: &Path) -> Result<()> {
    let script = Temporary(directory.join(format!("{image}-script")));
    let mut commands = BufWriter::new(File::create(&script.0)?);
    let newest = tree.nodes().map(|(_, attributes, _)| attributes.modified).max().unwrap_or(0);
    let root = Attributes { mode: 0o755, user: 0, group: 0, modified: newest };
    let found = Attributes { mode: 0o700, ..root };
    let above = [("", root, &Node::Directory), ("lost+found", found, &Node::Directory)];
    let nodes = tree.nodes().filter(|(path, ..)| *path != ATTRIBUTES);
    for (path, attributes, node) in above.into_iter().chain(nodes) {
        let kind = match node {
            Node::Directory => 0o040_000,
            Node::File(_) => 0o100_000,
            Node::SymbolicLink(_) => 0o120_000,
        };
        if path.contains('\n') {
            bail!("{path:?}: a disk is not filled with such a name");
        }
        let path = path.replace('"', "\"\"");
        let Attributes { mode, user, group, modified } = attributes;
        let numbers =
            [("mode", format!("0{:o}", kind | mode)), ("uid", user.to_string()), ("gid", group.to_string())];
        let times = ["atime", "ctime", "mtime", "crtime"].map(|field| (field, format!("@{modified}")));
        for (field, value) in numbers.into_iter().chain(times) {
            writeln!(commands, "set_inode_field \"/{path}\" {field} {value}")?;
        }
    }
    let values = scratch.file_name().context("a directory without a name")?.to_string_lossy();
    for (number, (path, name, value)) in tree.extended_attributes()?.into_iter().enumerate() {
        let file = format!(".value-{number}");
        fs::write(scratch.join(&file), value)?;
        writeln!(commands, "ea_set -f {values}/{file} \"{}\" {name}", path.replace('"', "\"\""))?;
    }
    commands.into_inner().map_err(|error| error.into_error())?.sync_all()?;
    let mut debugfs = tool("debugfs")?;
    debugfs.args(["-w", "-f"]).arg(script.0.file_name().context("a script without a name")?);
    debugfs.arg(format!("{image}?offset={START}")).current_dir(directory);
    let done = debugfs.output().context("starting debugfs")?;
    // It ends with success whatever happens, and names its version before the first error.
    let words = String::from_utf8_lossy(&done.stderr);
    let errors: Vec<&str> = words.lines().filter(|line| !line.starts_with("debugfs 1.")).take(4).collect();
    if !done.status.success() || !errors.is_empty() {
        bail!("debugfs: {} ({})", errors.join("; "), done.status);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mac_build::scratch::Scratch;

    fn tree() -> Tree {
        let mut tree = Tree::new();
        tree.directory("root", 0o700);
        tree.directory("tmp", 0o1777);
        tree.directory("etc", 0o755);
        tree.file("etc/a \"name\" \\ here", 0o4751, b"content\n".to_vec());
        tree.link("etc/link", "elsewhere");
        let list = b"/etc/a \"name\" \\ here\0security.capability\x000100a2\0";
        tree.file(ATTRIBUTES, 0o600, list.to_vec());
        tree.complete();
        tree
    }

    fn said(program: &str, arguments: &[&str]) -> String {
        let done = tool(program).unwrap().args(arguments).output().unwrap();
        String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr)
    }

    #[test]
    fn a_disk_has_the_files_with_their_owners_and_is_sound() {
        let scratch = Scratch::new("disk").unwrap();
        let file = scratch.0.join("a disk.img");
        let size: Size = "100M".parse().unwrap();
        let count = fill(tree(), &file, size).unwrap();
        assert_eq!(count, tree().nodes().count(), "all but the list of attributes, and /etc/fstab");
        assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 1, "nothing else stays");
        let about = fs::metadata(&file).unwrap();
        assert!(about.len() == size.0 && about.blocks() * 512 < 20 << 20, "it is sparse: {about:?}");
        check_sound(&file).unwrap();
        let image = format!("{}?offset={START}", file.display());
        let look = |request: &str| said("debugfs", &["-R", request, &image]);
        let about = look("stat \"/etc/a \"\"name\"\" \\ here\"");
        assert!(about.contains("Mode:  04751") && about.contains("User:     0   Group:     0"), "{about}");
        assert_eq!(look("cat \"/etc/a \"\"name\"\" \\ here\"").lines().next(), Some("content"));
        let value = look("ea_get -x \"/etc/a \"\"name\"\" \\ here\" security.capability");
        assert!(value.contains("01 00 a2"), "{value}");
        assert!(look("stat /tmp").contains("Mode:  01777") && look("stat /root").contains("Mode:  0700"));
        let table = look("cat /etc/fstab");
        let uuid = table.lines().next().unwrap().strip_prefix("UUID=").unwrap().split(' ').next().unwrap();
        assert_eq!(uuid.as_bytes()[14], b'4', "a random one: {uuid}");
        assert!(said("dumpe2fs", &["-h", &image]).contains(uuid), "{table}");
        assert!(look("stat \"/etc/fstab\"").contains("Mode:  0644"));
        assert!(look("stat /etc/link").contains("Fast link dest: \"elsewhere\""));
        // What is there is used, and is not made again.
        let request = Request::default();
        assert!(!provide(&file, None, &request).unwrap());
        assert!(!provide(&file, Some(size), &request).unwrap());
        // Errors that a file system is marked with are repaired.
        said("debugfs", &["-w", "-R", "set_super_value state 3", &image]);
        assert!(said("dumpe2fs", &["-h", &image]).contains("clean with errors"));
        assert!(!provide(&file, None, &request).unwrap());
        assert!(!said("dumpe2fs", &["-h", &image]).contains("with errors"));
        let other = provide(&file, Some(SIZE), &request).unwrap_err().to_string();
        assert!(other.ends_with("is there and has 100 MiB, not 8.0 GiB: leave out --size"), "{other}");
    }

    #[test]
    fn a_disk_that_is_too_small_is_not_made() {
        let scratch = Scratch::new("small-disk").unwrap();
        let file = scratch.0.join("disk.img");
        let refused = fill(tree(), &file, Size(1 << 20)).unwrap_err().to_string();
        assert_eq!(refused, "a disk of 1 MiB is too small for these files: it takes at least 65 MiB");
        assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 0);
    }

    #[test]
    fn other_files_are_left_as_they_are() {
        let scratch = Scratch::new("other-disks").unwrap();
        let file = scratch.0.join("disk.img");
        let refused = || format!("{:#}", provide(&file, None, &Request::default()).unwrap_err());
        fs::write(&file, [7; 4096]).unwrap();
        assert!(refused().contains("it is no disk that ./mac run has made"), "{}", refused());
        assert_eq!(fs::read(&file).unwrap(), [7; 4096]);
        let blocks = 4096;
        let with_name = |name: &str| {
            let partition = New { first: FIRST, count: 100, purpose: PURPOSE, identity: [1; 16], name };
            let (mut bytes, after) = write::gpt(blocks, [2; 16], &[partition]);
            bytes.resize((blocks - write::AFTER) as usize * write::BLOCK, 0);
            bytes.extend(after);
            fs::write(&file, bytes).unwrap();
        };
        with_name("macadamia root 99");
        assert!(refused().contains("that is newer: it has form 99"), "{}", refused());
        with_name("macadamia root 0");
        assert!(refused().contains("that is older: it has form 0"), "{}", refused());
        with_name("macadamia root 1");
        assert!(refused().contains("has no ext4 file system any more"), "{}", refused());
        with_name("another");
        assert!(refused().contains("it is no disk that ./mac run has made"), "{}", refused());
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert!(refused().ends_with("is no file"), "{}", refused());
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!("8g".parse(), Ok(Size(8 << 30)));
        assert_eq!("512M".parse::<Size>().unwrap().to_string(), "512 MiB");
        for bad in ["", "8", "G", "-1G", "0M", "99999999999T"] {
            assert!(bad.parse::<Size>().is_err(), "{bad}");
        }
    }
}
