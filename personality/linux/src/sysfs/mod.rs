//! The file system of /sys, with the files that describe processors: those that `lscpu`,
//! get_nprocs(3) and language run-times read (Linux' Documentation/ABI, sysfs-devices-system-cpu);
//! terminals; the hardware clock (`rtc`); disks, as `lsblk` and others read them (`disks`); and
//! interfaces of the network (`network`). No file can be written.
//!
//! The tree is made again when disks or interfaces have come or gone. A node shows the tree in
//! which it was found.
//!
//! Each processor is shown as a core of one package in one memory node: programs learn only how
//! many processors there are.

mod disks;
mod network;
mod rtc;
mod terminals;

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write;
use unix::devfs::Terminals;
use unix::disk::Device;
use unix::network::Network;
use unix::sync::SpinLock;
use unix::vfs::{
    DeviceNumber, DirectoryEntry, FileSystem, FileSystemStatus, FileType, Link, Metadata, Mode,
    NewAttributes, NewNode, OpenContext, OpenFlags, Opened, PAGE_SIZE, Vnode, VnodeRef,
};
use unix::{AttemptError, CopyError, Environment, Error, MaybeReady, Result, Timestamp, UserBuffer};

/// The most processors that there can be.
const MOST_PROCESSORS: usize = 64;

/// The kind of a node of sysfs, with its contents.
enum Content {
    /// A directory, with the number of directories in it.
    Directory(u32),
    File(String),
    /// A file whose text changes.
    Live(Box<dyn Fn() -> String + Send + Sync>),
    /// A symbolic link, with its target.
    Link(String),
}

/// The nodes by path, without a slash at the beginning or the end; the root's path is empty. The
/// inode number of a node is its position among all paths in sorted order.
type Nodes = BTreeMap<String, (u64, Content)>;

/// What gives the disks and partitions that the system has now.
type Devices = dyn Fn() -> Vec<Device> + Send + Sync;

/// What there is besides processors, at the moment at which a tree is made.
type Places = (Vec<disks::Place>, Vec<network::Place>);

/// What the nodes are about.
pub(crate) struct Hardware {
    /// How many processors there are, at most 64.
    pub(crate) processors: usize,
    /// The terminals.
    pub(crate) terminals: Option<Arc<Terminals>>,
    /// The disks that there are at any time.
    pub(crate) devices: Box<Devices>,
    /// The network, with its interfaces.
    pub(crate) network: Arc<Network>,
    /// What has the hardware clock.
    pub(crate) environment: Arc<dyn Environment>,
}

/// The /sys of a system.
pub(crate) struct Sysfs {
    hardware: Hardware,
    /// The present tree, and what it was made of.
    present: SpinLock<(Places, Arc<Nodes>)>,
    device: DeviceNumber,
    made: Timestamp,
}

/// Makes a /sys; returns its root directory.
pub(crate) fn make(mut hardware: Hardware, now: Timestamp) -> VnodeRef {
    hardware.processors = hardware.processors.clamp(1, MOST_PROCESSORS);
    let places = Places::default();
    let nodes = Arc::new(tree(&hardware, &[], &places.1));
    let (present, device) = (SpinLock::new((places, nodes.clone())), DeviceNumber::unnamed());
    let system = Arc::new(Sysfs { hardware, present, device, made: now });
    Arc::new(Node { system, nodes, path: String::new() })
}

impl Sysfs {
    /// The tree with the disks and interfaces that there are now.
    fn nodes(&self) -> Arc<Nodes> {
        let devices = (self.hardware.devices)();
        let places: Places =
            (devices.iter().map(disks::place).collect(), network::places(&self.hardware.network));
        {
            let present = self.present.lock();
            if present.0 == places {
                return present.1.clone();
            }
        }
        let nodes = Arc::new(tree(&self.hardware, &devices, &places.1));
        *self.present.lock() = (places, nodes.clone());
        nodes
    }
}

/// All nodes, with these disks and these interfaces.
fn tree(hardware: &Hardware, devices: &[Device], interfaces: &[network::Place]) -> Nodes {
    let processors = hardware.processors;
    let mut nodes = BTreeMap::from([(String::new(), Content::Directory(0))]);
    let mut add = |path: &str, content: Option<Content>| {
        make_directories(&mut nodes, path);
        if let Some(content) = content {
            nodes.insert(path.to_string(), content);
        }
    };
    for directory in ["block/", "class/block/", "class/net/", "dev/block/"] {
        add(directory, None);
    }
    devices.iter().for_each(|device| disks::add(device, &mut add));
    interfaces.iter().for_each(|interface| network::add(&hardware.network, interface, &mut add));
    let mut add = |path: &str, content| add(path, Some(content));
    for (name, text) in texts(processors) {
        add(&format!("devices/system/{name}"), Content::File(text + "\n"));
    }
    for kind in ["cpu", "node"] {
        let count = if kind == "cpu" { processors } else { 1 };
        for index in 0..count {
            let target = format!("../../../devices/system/{kind}/{kind}{index}");
            add(&format!("bus/{kind}/devices/{kind}{index}"), Content::Link(target));
        }
    }
    for (path, content) in
        hardware.terminals.iter().flat_map(terminals::nodes).chain(rtc::nodes(&hardware.environment))
    {
        add(&path, content);
    }
    let numbered = nodes.into_iter().enumerate();
    numbered.map(|(index, (path, content))| (path, (index as u64 + 1, content))).collect()
}

/// Adds the directories that lead to `path`, unless they exist.
fn make_directories(nodes: &mut BTreeMap<String, Content>, path: &str) {
    let Some((directory, _)) = path.rsplit_once('/') else { return };
    if !nodes.contains_key(directory) {
        make_directories(nodes, directory);
        nodes.insert(directory.to_string(), Content::Directory(0));
        let above = directory.rsplit_once('/').map_or("", |(above, _)| above);
        if let Some(Content::Directory(inside)) = nodes.get_mut(above) {
            *inside += 1;
        }
    }
}

/// The files below `devices/system`, with their texts.
fn texts(count: usize) -> Vec<(String, String)> {
    let all = list(count);
    let mut texts: Vec<(String, String)> = Vec::new();
    let mut add = |name: String, text: &str| texts.push((name, text.to_string()));
    for (name, text) in [
        ("online", &*all),
        ("possible", &all),
        ("present", &all),
        ("offline", ""),
        ("isolated", ""),
        ("kernel_max", "63"),
    ] {
        add(format!("cpu/{name}"), text);
    }
    for index in 0..count {
        // No file allows taking a processor offline. Linux has none for its first processor either.
        for (name, text) in [
            ("core_id", &*format!("{index}")),
            ("physical_package_id", "0"),
            ("die_id", "0"),
            ("cluster_id", "65535"),
        ] {
            add(format!("cpu/cpu{index}/topology/{name}"), text);
        }
        let (own, own_list) = (mask(1 << index, count), format!("{index}"));
        let (whole, whole_list) = (mask(u64::MAX >> (MOST_PROCESSORS - count), count), &*all);
        for (name, mask, list) in [
            ("core_cpus", &own, &*own_list),
            ("thread_siblings", &own, &own_list),
            ("cluster_cpus", &own, &own_list),
            ("die_cpus", &whole, whole_list),
            ("package_cpus", &whole, whole_list),
            ("core_siblings", &whole, whole_list),
        ] {
            add(format!("cpu/cpu{index}/topology/{name}"), mask);
            add(format!("cpu/cpu{index}/topology/{name}_list"), list);
        }
    }
    for name in ["online", "possible", "has_cpu", "has_memory", "has_normal_memory"] {
        add(format!("node/{name}"), "0");
    }
    for (name, text) in [
        ("cpulist", &*all),
        ("cpumap", &mask(u64::MAX >> (MOST_PROCESSORS - count), count)),
        ("distance", "10"),
    ] {
        add(format!("node/node0/{name}"), text);
    }
    texts
}

/// The processors below `count`, as a list of ranges (`0-3`).
fn list(count: usize) -> String {
    if count == 1 { "0".to_string() } else { format!("0-{}", count - 1) }
}

/// A set of processors as a hexadecimal number: one digit for each four of `count` processors, and
/// a comma between words of 32 bits.
fn mask(bits: u64, count: usize) -> String {
    let mut text = String::new();
    let digits = count.div_ceil(4);
    for digit in (0..digits).rev() {
        let _ = write!(text, "{:x}", bits >> (4 * digit) & 0xf);
        if digit % 8 == 0 && digit > 0 {
            text.push(',');
        }
    }
    text
}

struct Node {
    system: Arc<Sysfs>,
    nodes: Arc<Nodes>,
    path: String,
}

impl FileSystem for Sysfs {
    fn status(&self) -> FileSystemStatus {
        FileSystemStatus::without_store("sysfs", 0)
    }
}

impl Node {
    fn content(&self) -> &Content {
        &self.nodes[&self.path].1
    }

    fn at(&self, path: String) -> Option<VnodeRef> {
        self.present().at(path)
    }

    /// The root directory with the disks and interfaces that there are now; another node is as it
    /// was found.
    fn present(&self) -> Tree<'_> {
        let nodes = if self.path.is_empty() { self.system.nodes() } else { self.nodes.clone() };
        Tree { system: &self.system, nodes }
    }

    /// The prefix of the paths of this directory's entries.
    fn prefix(&self) -> String {
        if self.path.is_empty() { String::new() } else { format!("{}/", self.path) }
    }

    /// The entries of the directory whose entries' paths begin with `prefix`: name, inode number,
    /// content of each.
    fn entries<'a>(nodes: &'a Nodes, prefix: &'a str) -> impl Iterator<Item = (&'a str, u64, &'a Content)> {
        let below = nodes.range(prefix.to_string()..);
        below.take_while(move |(path, _)| path.starts_with(prefix)).filter_map(
            move |(path, (number, content))| {
                let name = &path[prefix.len()..];
                (!name.is_empty() && !name.contains('/')).then_some((name, *number, content))
            },
        )
    }

    /// The path of the directory that has this node, and the node's name in it; `None` for the
    /// root.
    fn split(&self) -> Option<(&str, &str)> {
        match self.path.rsplit_once('/') {
            Some(parts) => Some(parts),
            None if self.path.is_empty() => None,
            None => Some(("", &self.path)),
        }
    }

    fn read_text(&self, offset: u64, to: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        let live;
        let text = match self.content() {
            Content::File(text) => text,
            Content::Live(text) => {
                live = text();
                &live
            }
            Content::Directory(_) => return Err(Error::EISDIR.into()),
            Content::Link(_) => return Err(Error::EINVAL.into()),
        };
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(text.len());
        let rest = &text.as_bytes()[from..];
        let part = &rest[..rest.len().min(to.remaining())];
        to.copy_out(part).map_err(|error: CopyError| error.into())
    }

    fn link(&self) -> Result<Vec<u8>> {
        match self.content() {
            Content::Link(target) => Ok(target.clone().into_bytes()),
            _ => Err(Error::EINVAL),
        }
    }
}

/// A tree in which nodes are looked up.
struct Tree<'a> {
    system: &'a Arc<Sysfs>,
    nodes: Arc<Nodes>,
}

impl Tree<'_> {
    fn at(self, path: String) -> Option<VnodeRef> {
        let Tree { system, nodes } = self;
        nodes
            .contains_key(&path)
            .then(|| -> VnodeRef { Arc::new(Node { system: system.clone(), nodes, path }) })
    }
}

impl Content {
    fn file_type(&self) -> FileType {
        match self {
            Content::Directory(_) => FileType::Directory,
            Content::File(_) | Content::Live(_) => FileType::Regular,
            Content::Link(_) => FileType::SymbolicLink,
        }
    }
}

impl Vnode for Node {
    fn file_system(&self) -> Arc<dyn FileSystem> {
        self.system.clone()
    }

    fn metadata(&self) -> Metadata {
        let (mode, links, size) = match self.content() {
            // The link count is the number of names that lead to the directory: the one in its
            // parent, its own `.`, and the `..` of each directory in it. find(1) relies on it.
            Content::Directory(inside) => (0o755, 2 + inside, 0),
            Content::File(_) | Content::Live(_) => (0o444, 1, PAGE_SIZE as u64),
            Content::Link(_) => (0o777, 1, 0),
        };
        Metadata {
            device: self.system.device,
            number: self.number(),
            file_type: self.file_type(),
            mode: Mode::new(mode),
            links,
            user: 0,
            group: 0,
            represents: DeviceNumber::default(),
            size,
            blocks: 0,
            block_size: PAGE_SIZE as u32,
            accessed: self.system.made,
            modified: self.system.made,
            changed: self.system.made,
            created: self.system.made,
        }
    }

    fn file_type(&self) -> FileType {
        self.content().file_type()
    }

    fn number(&self) -> u64 {
        self.nodes[&self.path].0
    }

    fn parent(&self) -> Option<VnodeRef> {
        self.at(self.split()?.0.to_string())
    }

    fn place(&self) -> Option<(VnodeRef, Vec<u8>)> {
        let name = self.split()?.1.as_bytes().to_vec();
        Some((self.parent()?, name))
    }

    fn lookup<'a>(&'a self, name: &'a [u8]) -> MaybeReady<'a, Result<VnodeRef>> {
        if self.file_type() != FileType::Directory {
            return MaybeReady::ready(Err(Error::ENOTDIR));
        }
        let path = core::str::from_utf8(name).ok().map(|name| self.prefix() + name);
        MaybeReady::ready(path.and_then(|path| self.at(path)).ok_or(Error::ENOENT))
    }

    fn create<'a>(
        &'a self,
        _name: &'a [u8],
        what: NewNode<'a>,
        _attributes: NewAttributes,
    ) -> MaybeReady<'a, Result<VnodeRef>> {
        MaybeReady::ready(Err(if matches!(what, NewNode::Regular) { Error::EACCES } else { Error::EPERM }))
    }

    fn read_directory<'a>(
        &'a self,
        position: u64,
        accept: &'a mut (dyn FnMut(DirectoryEntry<'_>) -> bool + Send),
    ) -> MaybeReady<'a, Result<()>> {
        if self.file_type() != FileType::Directory {
            return MaybeReady::ready(Err(Error::ENOTDIR));
        }
        let prefix = self.prefix();
        let nodes = self.present().nodes;
        for (name, number, content) in
            Node::entries(&nodes, &prefix).filter(|(_, number, _)| *number >= position)
        {
            let (name, file_type) = (name.as_bytes(), content.file_type());
            if !accept(DirectoryEntry { name, number, file_type, next: number + 1 }) {
                break;
            }
        }
        MaybeReady::ready(Ok(()))
    }

    /// `EACCES` for opening to write, even for the superuser, which the mode does not restrict.
    fn open(&self, context: &OpenContext) -> MaybeReady<'_, Result<Opened>> {
        let writes = context.flags.contains(OpenFlags::WRITE);
        MaybeReady::ready(if writes { Err(Error::EACCES) } else { Ok(Opened::Data) })
    }

    fn follow(&self) -> MaybeReady<'_, Result<Link>> {
        MaybeReady::ready(self.link().map(Link::Path))
    }

    fn link_text(&self) -> MaybeReady<'_, Result<Vec<u8>>> {
        MaybeReady::ready(self.link())
    }

    fn read<'a>(
        &'a self,
        offset: u64,
        to: &'a mut dyn UserBuffer,
    ) -> MaybeReady<'a, Result<usize, AttemptError>> {
        MaybeReady::ready(self.read_text(offset, to))
    }
}
