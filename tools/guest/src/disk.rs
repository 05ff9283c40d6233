//! A disk with a root file system that lasts: made once from an image, and booted from afterwards.
//!
//! The file is raw and sparse. It has a GPT with a partition in which there is an ext4 file system.
//! The name of the partition says that the disk is one of ours, and in which form. A disk that
//! boots by itself has two more partitions before it, for the boot loader, the kernel and the
//! servers.

use super::image::{self, Request};
use super::tree::{ATTRIBUTES, Attributes, Node, Tree};
use anyhow::{Context, Result, bail};
use mac_build::command;
use mac_build::scratch::Scratch;
use mac_machine::devices::DiskImage;
use mac_machine::grub;
use mac_machine::qemu::Machine;
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
/// Where the first partition begins that is for files, in blocks: after 1 MiB.
const FIRST: u64 = (1 << 20) / write::BLOCK as u64;
/// What the other partitions are for: the system partition of UEFI, and the core of the loader that
/// a BIOS starts.
const SYSTEM: [u8; 16] =
    [0x28, 0x73, 0x2a, 0xc1, 0x1f, 0xf8, 0xd2, 0x11, 0xba, 0x4b, 0x00, 0xa0, 0xc9, 0x3e, 0xc9, 0x3b];
const BIOS_LOADER: [u8; 16] = *b"Hah!IdontNeedEFI";
/// The size of the system partition in bytes.
const SYSTEM_SIZE: u64 = 128 << 20;
/// What an image's greeting says about files, and what is true on a disk.
const IN_MEMORY: &str = "Files are in memory and gone afterwards; `poweroff` or `exit` ends the system.";
const ON_DISK: &str = "Files are on a disk and stay; `poweroff` or `exit` ends the system.";
/// The names of these partitions.
const SYSTEM_NAME: &str = "macadamia system";
const LOADER_NAME: &str = "macadamia loader";
/// The bytes of a block of the file system.
const FILE_SYSTEM_BLOCK: u64 = 4096;
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
    provide_with(file, size, request, None)
}

/// Makes the system that boots from a disk whose root partition has this GUID. The second argument
/// is a directory for files of the system.
pub(super) type System<'a> = &'a dyn Fn(&str, &Path) -> Result<Machine>;

/// Makes a disk that boots by itself, as [`provide`] makes one; or writes the system to one that
/// there is, in place of the one that it has. Returns whether the disk was made.
///
/// # Errors
/// As for [`provide`]. The disk that there is has no partitions for a system, or is in use.
pub(super) fn provide_bootable(
    file: &Path,
    size: Option<Size>,
    request: &Request,
    system: System<'_>,
) -> Result<bool> {
    let is_new = provide_with(file, size, request, Some(system))?;
    if !is_new {
        DiskImage::of(file).check_free()?;
        let image = File::options().read(true).write(true).open(file)?;
        let partitions = table(&image, image.metadata()?.len())?;
        install(&image, &partitions, system).with_context(|| format!("the disk {}", file.display()))?;
    }
    Ok(is_new)
}

/// Checks that a disk boots by itself.
///
/// # Errors
/// It does not, or cannot be read.
pub(super) fn check_bootable(file: &Path) -> Result<()> {
    let image = File::open(file).with_context(|| format!("the disk {}", file.display()))?;
    let partitions = table(&image, image.metadata()?.len())?;
    named(&partitions, SYSTEM_NAME).map(drop).with_context(|| format!("the disk {}", file.display()))
}

fn provide_with(
    file: &Path,
    size: Option<Size>,
    request: &Request,
    system: Option<System<'_>>,
) -> Result<bool> {
    match fs::metadata(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            make(file, size.unwrap_or(SIZE), request, system).map(|()| true)
        }
        Err(error) => Err(error).with_context(|| format!("the disk {}", file.display())),
        Ok(about) => {
            check(file, &about)?;
            if let Some(size) = size {
                grow(file, &about, size)?;
            }
            Ok(false)
        }
    }
}

/// Checks that `e2fsck` finds nothing wrong with the file system of a disk that is not in use.
pub(super) fn check_sound(file: &Path) -> Result<()> {
    let about = fs::metadata(file).with_context(|| format!("the disk {}", file.display()))?;
    let (_, partition) = root_partition(file, &about)?;
    let mut e2fsck = tool("e2fsck")?;
    e2fsck.args(["-f", "-n"]).arg(at(&file.display(), &partition));
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
    let (form, partition) = root_partition(file, about)?;
    if form != FORM {
        let age = if form > FORM { "newer" } else { "older" };
        bail!(
            "the disk {name} was made by a version of Macadamia that is {age}: it has form {form}, and this version \
             uses form {FORM}"
        );
    }
    // A superblock has its magic number at this place, and its state after that.
    let mut part = [0; 4];
    let magic = partition.first * write::BLOCK as u64 + 1024 + 56;
    let image = File::open(file).with_context(|| format!("the disk {name}"))?;
    image.read_exact_at(&mut part, magic).with_context(|| format!("the disk {name}"))?;
    if part[..2] != [0x53, 0xef] {
        bail!("the partition of the disk {name} has no ext4 file system any more");
    }
    if part[2] & ERRORS == 0 {
        return Ok(());
    }
    DiskImage::of(file).check_free()?;
    eprintln!("mac: the file system of the disk {name} has errors: e2fsck repairs it");
    repair(file, &partition)
}

/// Makes a disk that is not in use as large as `size`, with its root partition and file system.
/// What a call has left undone, the next one with the same size does.
///
/// # Errors
/// The disk is larger, or in use; another partition is in the way; the file system needs repair.
fn grow(file: &Path, about: &fs::Metadata, size: Size) -> Result<()> {
    let name = file.display();
    if size.0 < about.len() {
        bail!("the disk {name} is there and has {}: it cannot become smaller ({size})", Size(about.len()));
    }
    let image = File::options().read(true).write(true).open(file)?;
    let (_, old) = root_partition(file, about)?;
    let mut before = vec![0; write::BEFORE as usize * write::BLOCK];
    image.read_exact_at(&mut before, 0)?;
    let blocks = size.0 / write::BLOCK as u64;
    let enlarged = write::enlarged(&before, blocks, old.number);
    let enlarged = enlarged.context("a partition after that of the root is in the way")?;
    let bytes = |blocks: u64| blocks * write::BLOCK as u64;
    let mut superblock = [0; 8];
    image.read_exact_at(&mut superblock, bytes(old.first) + 1024)?;
    let known = u32::from_le_bytes([superblock[4], superblock[5], superblock[6], superblock[7]]);
    let known = u64::from(known) * FILE_SYSTEM_BLOCK;
    if size.0 == about.len() && known == bytes(old.count) {
        return Ok(());
    }
    DiskImage::of(file).check_free()?;
    let least = Size((bytes(old.first) + known).next_multiple_of(1 << 20) + bytes(old.first) + (1 << 20));
    if bytes(enlarged.count) < bytes(old.first) + known {
        bail!("the disk {name} grows to {least} at least, not to {size}");
    }
    eprintln!("mac: the disk {name} grows to {size}");
    repair(file, &old)?;
    // resize2fs makes a file as long as the file system is. That would cut off the end of one that
    // begins within the file, if the file did not have that length already.
    image.set_len(bytes(enlarged.count))?;
    let mut resize = tool("resize2fs")?;
    resize.arg(at(&name, &old)).arg(format!("{}k", bytes(enlarged.count) / 1024));
    command::output(&mut resize).with_context(|| format!("the disk {name}"))?;
    image.set_len(bytes(blocks))?;
    image.write_all_at(&enlarged.after, bytes(blocks - write::AFTER))?;
    image.write_all_at(&enlarged.before, 0)?;
    image.sync_all().with_context(|| format!("the disk {name}"))
}

/// The partition of a disk of ours with the root file system, and the number of its form.
///
/// # Errors
/// The disk is none of ours.
fn root_partition(file: &Path, about: &fs::Metadata) -> Result<(u32, Partition)> {
    let name = file.display();
    let image = File::open(file).with_context(|| format!("the disk {name}"))?;
    let mut forms = table(&image, about.len())?.into_iter().filter_map(|partition| {
        let form = form(&partition)?;
        Some((form, partition))
    });
    forms.next().with_context(|| {
        format!(
            "{name} is there, and it is no disk that ./mac run has made. It was not changed: --attach {name} gives \
             it to the machine as it is, and --disk with another name makes a disk"
        )
    })
}

/// How programs of e2fsprogs' are told of a file system that begins within an image.
fn at(image: &dyn std::fmt::Display, partition: &Partition) -> String {
    format!("{image}?offset={}", partition.first * write::BLOCK as u64)
}

/// The bit of a file system's state that says that errors were found in it.
const ERRORS: u8 = 2;

/// Checks the file system of a disk that is not in use, and repairs it as far as that needs no
/// decisions.
///
/// # Errors
/// It needs decisions.
fn repair(file: &Path, partition: &Partition) -> Result<()> {
    let mut e2fsck = tool("e2fsck")?;
    let place = at(&file.display(), partition);
    e2fsck.args(["-f", "-p"]).arg(&place);
    let done = e2fsck.output().context("starting e2fsck")?;
    // 1: it has repaired something; 4 and more: it has not repaired everything.
    if !matches!(done.status.code(), Some(0..4)) {
        bail!(
            "e2fsck does not repair the file system without being asked: run e2fsck '{place}'; it said:\n{}",
            String::from_utf8_lossy(&done.stdout).trim_end()
        );
    }
    Ok(())
}

/// The form that a partition's name says, if it is one of ours.
fn form(partition: &Partition) -> Option<u32> {
    name_of(partition)?.strip_prefix(NAME)?.parse().ok()
}

/// The name of a partition, if its table has names.
fn name_of(partition: &Partition) -> Option<String> {
    let Kind::Gpt { name, .. } = &partition.kind else { return None };
    String::from_utf16(name).ok()
}

/// The partition with this name, which a disk has that boots by itself.
fn named<'a>(partitions: &'a [Partition], name: &str) -> Result<&'a Partition> {
    let found = partitions.iter().find(|partition| name_of(partition).as_deref() == Some(name));
    found.context(
        "it does not boot by itself: it has no partitions for a boot loader and the system; ./mac image --disk \
         with another name makes a disk that has",
    )
}

/// Writes the boot loader and the system to a disk with partitions for them.
fn install(image: &File, partitions: &[Partition], system: System<'_>) -> Result<()> {
    let (place, core) = (named(partitions, SYSTEM_NAME)?, named(partitions, LOADER_NAME)?);
    let root = partitions.iter().find(|partition| form(partition).is_some());
    let Some(Partition { kind: Kind::Gpt { identity, .. }, .. }) = root else { bail!("it has no root") };
    let bytes = |blocks: u64| blocks * write::BLOCK as u64;
    let scratch = Scratch::new("disk-system")?;
    let machine = system(&partitions::guid_text(*identity), &scratch.0)?;
    let loader = grub::loader(&machine, core.first, bytes(place.count), &scratch.0)?;
    if loader.core.len() as u64 > bytes(core.count) {
        bail!("GRUB's core has {} KiB: more than its partition", loader.core.len() >> 10);
    }
    image.write_all_at(&loader.core, bytes(core.first))?;
    // The system partition of a new disk stays sparse.
    let mut new = File::open(&loader.system)?;
    let (mut chunk, mut old) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    for number in 0..bytes(place.count) / chunk.len() as u64 {
        let to = bytes(place.first) + number * chunk.len() as u64;
        new.read_exact(&mut chunk)?;
        image.read_exact_at(&mut old, to)?;
        if chunk != old {
            image.write_all_at(&chunk, to)?;
        }
    }
    image.write_all_at(&loader.boot_code, 0)?;
    image.sync_all().context("writing the system")
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
pub(super) fn tool(name: &str) -> Result<Command> {
    let others = ["/usr/sbin", "/sbin"].map(|directory| Path::new(directory).join(name));
    let found = command::find(name).or_else(|| others.into_iter().find(|path| path.is_file()));
    let found = found.with_context(|| format!("{name} is missing (Debian: apt-get install e2fsprogs)"))?;
    Ok(command::clean(found))
}

/// Makes the disk, and says how large it is and how long that took.
fn make(file: &Path, size: Size, request: &Request, system: Option<System<'_>>) -> Result<()> {
    let begun = Instant::now();
    tool("debugfs")?;
    let count = fill(image::files(request)?, file, size, system)?;
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
/// this one. With a `system` it boots by itself. Returns how many files there are.
fn fill(mut tree: Tree, file: &Path, size: Size, system: Option<System<'_>>) -> Result<usize> {
    let uuid = partitions::guid_text(random()?);
    tree.file("etc/fstab", 0o644, format!("UUID={uuid} / ext4 errors=remount-ro 0 1\n").into_bytes());
    tree.edit("etc/motd", |greeting| greeting.replace(IN_MEMORY, ON_DISK))?;
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
    let before = if system.is_some() { SYSTEM_SIZE } else { 0 };
    let least = Size((before + bytes + bytes / 4 + ROOM).next_multiple_of(1 << 20));
    if size.0 < least.0 {
        bail!("a disk of {size} is too small for these files: it takes at least {least}");
    }
    let blocks = size.0 / write::BLOCK as u64;
    let image =
        File::options().read(true).write(true).create_new(true).open(&partial.0).with_context(writing)?;
    image.set_len(blocks * write::BLOCK as u64).with_context(writing)?;
    // The last part that is no whole MiB stays free.
    let first = FIRST + before / write::BLOCK as u64;
    let kibibytes = (((blocks - write::AFTER - first) * write::BLOCK as u64) >> 20) << 10;
    let root = New {
        first,
        count: kibibytes * 1024 / write::BLOCK as u64,
        purpose: PURPOSE,
        identity: random()?,
        name: &format!("{NAME}{FORM}"),
    };
    let mut partitions = vec![root];
    if system.is_some() {
        let partition = |purpose, range: std::ops::Range<u64>, name| {
            Ok::<_, anyhow::Error>(New {
                first: range.start,
                count: range.end - range.start,
                purpose,
                identity: random()?,
                name,
            })
        };
        partitions.push(partition(SYSTEM, FIRST..first, SYSTEM_NAME)?);
        partitions.push(partition(BIOS_LOADER, write::BEFORE..FIRST, LOADER_NAME)?);
    }
    let files = staged.0.file_name().context("a directory without a name")?;
    let mut mke2fs = tool("mke2fs")?;
    mke2fs.args([
        "-q",
        "-F",
        "-t",
        "ext4",
        "-b",
        &FILE_SYSTEM_BLOCK.to_string(),
        "-I",
        "256",
        "-L",
        "macadamia",
        "-O",
        FEATURES,
    ]);
    mke2fs
        .args(["-U", &uuid, "-E", &format!("offset={},root_owner=0:0", first * write::BLOCK as u64), "-d"])
        .arg(files);
    mke2fs.args([&unfinished, &format!("{kibibytes}k")]).current_dir(directory);
    command::output(&mut mke2fs).context("making the file system")?;
    let (before, after) = write::gpt(blocks, random()?, &partitions);
    image.write_all_at(&before, 0).with_context(writing)?;
    let end = (blocks - write::AFTER) * write::BLOCK as u64;
    image.write_all_at(&after, end).with_context(writing)?;
    let partitions = table(&image, blocks * write::BLOCK as u64)?;
    let place = at(&unfinished, &partitions[0]);
    set_attributes(&tree, directory, &place, &staged.0).context("setting the owners of files")?;
    if let Some(system) = system {
        install(&image, &partitions, system)?;
    }
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
/// host's user may not have such files. `image` is how debugfs is told of the file system. Values
/// are written into `scratch`, which is in `directory`.
fn set_attributes(tree: &Tree, directory: &Path, image: &str, scratch: &Path) -> Result<()> {
    let script = Temporary(scratch.with_extension("script"));
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
    debugfs.arg(image).current_dir(directory);
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

    fn tree() -> Tree {
        let mut tree = Tree::new();
        tree.directory("root", 0o700);
        tree.directory("tmp", 0o1777);
        tree.directory("etc", 0o755);
        tree.file("etc/a \"name\" \\ here", 0o4751, b"content\n".to_vec());
        tree.file("etc/motd", 0o644, include_bytes!("../../../guests/interactive/etc/motd").to_vec());
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
        let count = fill(tree(), &file, size, None).unwrap();
        assert_eq!(count, tree().nodes().count(), "all but the list of attributes, and /etc/fstab");
        assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 1, "nothing else stays");
        let about = fs::metadata(&file).unwrap();
        assert!(about.len() == size.0 && about.blocks() * 512 < 20 << 20, "it is sparse: {about:?}");
        check_sound(&file).unwrap();
        let image = format!("{}?offset=1048576", file.display());
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
        assert!(look("cat /etc/motd").contains("Files are on a disk and stay;"), "{}", look("cat /etc/motd"));
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
        let smaller = provide(&file, Some(Size(99 << 20)), &request).unwrap_err().to_string();
        assert!(
            smaller.ends_with("is there and has 100 MiB: it cannot become smaller (99 MiB)"),
            "{smaller}"
        );
        // It grows with its file system.
        for size in [Size(101 << 20), Size(2 << 30)] {
            assert!(!provide(&file, Some(size), &request).unwrap());
            assert_eq!(fs::metadata(&file).unwrap().len(), size.0);
            check_sound(&file).unwrap();
            let about = said("dumpe2fs", &["-h", &image]);
            let blocks = format!("Block count:              {}", (size.0 - (2 << 20)) >> 12);
            assert!(about.contains(&blocks), "{blocks}: {about}");
        }
        assert!(look("cat /etc/fstab").contains(uuid));
    }

    #[test]
    fn a_disk_that_boots_by_itself_keeps_its_files_when_its_system_is_replaced() {
        let scratch = Scratch::new("bootable-disk").unwrap();
        let kernel = scratch.0.join("kernel");
        let with_kernel = |bytes: &[u8]| fs::write(&kernel, bytes).unwrap();
        let told = std::cell::RefCell::new(String::new());
        let system = |root: &str, _: &Path| {
            *told.borrow_mut() = root.into();
            let elsewhere = [("kernel".to_string(), kernel.clone())].into();
            Ok(Machine { elsewhere, ..Machine::default() })
        };
        let disks = scratch.0.join("disks");
        fs::create_dir(&disks).unwrap();
        let file = disks.join("disk.img");
        with_kernel(b"the first");
        fill(tree(), &file, Size(300 << 20), Some(&system)).unwrap();
        assert_eq!(fs::read_dir(&disks).unwrap().count(), 1, "nothing else stays");
        let about = fs::metadata(&file).unwrap();
        assert!(about.blocks() * 512 < 30 << 20, "it is sparse: {about:?}");
        check_sound(&file).unwrap();
        check_bootable(&file).unwrap();
        let image = File::open(&file).unwrap();
        let found = table(&image, about.len()).unwrap();
        let places: Vec<_> = found.iter().map(|it| (it.first, it.first + it.count)).collect();
        assert_eq!(places[1..], [(2048, 2048 + (128 << 11)), (34, 2048)]);
        assert_eq!((places[0].0, found[1].number), (2048 + (128 << 11), grub::SYSTEM_PARTITION));
        let Kind::Gpt { identity, .. } = found[0].kind else { panic!("{found:?}") };
        assert_eq!(*told.borrow(), partitions::guid_text(identity));
        let mut start = [0; 34 * 512 + 512];
        image.read_exact_at(&mut start, 0).unwrap();
        assert_eq!(start[510..512], [0x55, 0xaa]);
        assert!(start[..440].windows(4).any(|word| word == b"GRUB"), "GRUB's boot sector");
        assert_ne!(start[34 * 512..], [0; 512], "the core is at its place");
        let content = |name: &str| {
            let mut mtype = Command::new("mtype");
            mtype.arg("-i").arg(format!("{}@@1M", file.display())).arg(name);
            command::output(&mut mtype).unwrap()
        };
        assert_eq!(content("::/boot/kernel"), "the first");
        assert!(content("::/boot/grub/grub.cfg").contains("multiboot2 /boot/kernel"));
        with_kernel(b"another");
        let request = Request::default();
        assert!(!provide_bootable(&file, None, &request, &system).unwrap());
        assert_eq!(content("::/boot/kernel"), "another");
        check_sound(&file).unwrap();
        let failing = |_: &str, _: &Path| bail!("no system");
        assert!(provide_bootable(&file, None, &request, &failing).is_err());
        assert_eq!(content("::/boot/kernel"), "another", "it stays as it was");
        // It grows, and not by so little that the file system's tools would cut its end off.
        let few = provide(&file, Some(Size(310 << 20)), &request).unwrap_err().to_string();
        assert!(few.ends_with("grows to 429 MiB at least, not to 310 MiB"), "{few}");
        for size in [Size(429 << 20), Size(1 << 30)] {
            assert!(!provide(&file, Some(size), &request).unwrap());
            check_sound(&file).unwrap();
            assert!(fs::metadata(&file).unwrap().len() == size.0);
        }
        assert_eq!(content("::/boot/kernel"), "another");
        // One without partitions for a system stays as it is; one whose system fails is not made.
        let plain = disks.join("plain.img");
        fill(tree(), &plain, Size(100 << 20), None).unwrap();
        let refused = format!("{:#}", provide_bootable(&plain, None, &request, &system).unwrap_err());
        assert!(refused.contains("it does not boot by itself"), "{refused}");
        assert!(check_bootable(&plain).is_err());
        fs::remove_file(&plain).unwrap();
        assert!(fill(tree(), &plain, Size(300 << 20), Some(&failing)).is_err());
        assert!(!plain.exists() && fs::read_dir(&disks).unwrap().count() == 1);
    }

    #[test]
    fn a_disk_that_is_too_small_is_not_made() {
        let scratch = Scratch::new("small-disk").unwrap();
        let file = scratch.0.join("disk.img");
        let refused = fill(tree(), &file, Size(1 << 20), None).unwrap_err().to_string();
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
