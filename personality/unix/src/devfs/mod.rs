//! The devices of every Unix, and /dev: a tmpfs that is filled with their names.

#[cfg(test)]
mod tests;

use crate::file::{DeviceDriver, FileObject, Io, Positions};
use crate::hardware_clock::ClockDriver;
use crate::poll::{PollQueue, Readiness};
use crate::tmpfs::{Tmpfs, TmpfsOptions};
use crate::tty::{CONSOLE_MAJOR, Ptys, Terminal, TerminalFile, VirtualConsoles};
use crate::vfs::{
    AttributeChange, DeviceNumber, FileType, MemoryProvider, Mode, NewAttributes, NewNode, OpenContext, Vfs,
    VnodeRef,
};
use crate::{AttemptError, Environment, Error, Result, Seeding, UserBuffer};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The terminals of a system.
pub struct Terminals {
    /// The terminal that /dev/console opens: a serial line or a virtual console.
    pub console: Option<Arc<Terminal>>,
    /// The terminals of serial lines.
    pub lines: Vec<Arc<Terminal>>,
    /// The virtual consoles, if there is a screen.
    pub virtual_consoles: Option<Arc<VirtualConsoles>>,
    /// The pseudoterminals of the system.
    pub ptys: Arc<Ptys>,
}

impl Terminals {
    /// Pseudoterminals alone.
    pub fn of(ptys: Arc<Ptys>) -> Terminals {
        Terminals { console: None, lines: Vec::new(), virtual_consoles: None, ptys }
    }

    /// The terminals that have device nodes of their own: serial lines and virtual consoles.
    pub fn named(&self) -> impl Iterator<Item = &Arc<Terminal>> {
        let consoles = self.virtual_consoles.iter().flat_map(|consoles| consoles.terminals());
        self.lines.iter().chain(consoles)
    }

    /// The terminal of this name that has a device node of its own.
    pub fn find(&self, name: &str) -> Option<&Arc<Terminal>> {
        self.named().find(|terminal| terminal.name() == name)
    }
}

/// A memory device (null(4), full(4), random(4)): it has no state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    /// /dev/null: a read finds the end of the file, written bytes are discarded.
    Null,
    /// /dev/zero: a read gives zeros, written bytes are discarded.
    Zero,
    /// /dev/full: a read gives zeros, a write fails with `ENOSPC`.
    Full,
    /// /dev/random: a read gives random bytes, after the random source has been seeded; written
    /// bytes are discarded.
    Random,
    /// /dev/urandom: the same without waiting for the seed.
    Urandom,
}

/// What a front end has in /dev in addition to the devices of every Unix.
#[derive(Clone, Copy, Debug)]
pub struct Additions {
    /// Name, mode and number of each device node. Its driver is registered by the front end.
    pub nodes: &'static [(&'static str, u16, DeviceNumber)],
    /// Name and target of each symbolic link.
    pub links: &'static [(&'static str, &'static str)],
}

/// Name, mode, major and minor number of each device node that every Unix has.
const NODES: &[(&str, u16, u32, u32)] = &[
    ("null", 0o666, 1, 3),
    ("zero", 0o666, 1, 5),
    ("full", 0o666, 1, 7),
    ("random", 0o666, 1, 8),
    ("urandom", 0o666, 1, 9),
    ("tty", 0o666, 5, 0),
    ("console", 0o600, 5, 1),
    ("ptmx", 0o666, 5, 2),
];

/// The number of /dev/rtc0, whose first half is the first of those that are given at the start.
pub const HARDWARE_CLOCK: DeviceNumber = DeviceNumber { major: 254, minor: 0 };

/// Registers the drivers and makes the file system for /dev; returns its root directory, which has
/// the directories `pts` and `shm` as mount points.
pub async fn make(
    vfs: &Vfs,
    terminals: Arc<Terminals>,
    memory: Arc<dyn MemoryProvider>,
    memory_pages: u64,
    additions: Additions,
) -> Result<VnodeRef> {
    let environment = vfs.environment.clone();
    for (minor, device) in
        [(3, Memory::Null), (5, Memory::Zero), (7, Memory::Full), (8, Memory::Random), (9, Memory::Urandom)]
    {
        let driver = Arc::new(MemoryDriver { device, environment: environment.clone() });
        vfs.register_device(false, DeviceNumber { major: 1, minor }, driver);
    }
    let ptys = terminals.ptys.clone();
    vfs.register_file_system("devpts", Arc::new(move |_: &[u8]| Ok(ptys.root())));
    for (major, minor, which) in [
        (5, 0, TerminalDevice::Own),
        (5, 1, TerminalDevice::Console),
        (5, 2, TerminalDevice::Master),
        (CONSOLE_MAJOR, 0, TerminalDevice::Visible),
    ] {
        let driver = Arc::new(TerminalDriver { which, terminals: terminals.clone() });
        vfs.register_device(false, DeviceNumber { major, minor }, driver);
    }
    for terminal in terminals.named() {
        vfs.register_device(false, terminal.number(), Arc::new(LineDriver { terminal: terminal.clone() }));
    }
    let has_clock = environment.hardware_clock().is_some();
    if has_clock {
        let driver = ClockDriver { environment: environment.clone(), is_open: Arc::default() };
        vfs.register_device(false, HARDWARE_CLOCK, Arc::new(driver));
    }
    let options =
        TmpfsOptions { kind: "devtmpfs", mode: Mode::new(0o755), ..TmpfsOptions::for_memory(memory_pages) };
    let root = Tmpfs::new(&options, memory, environment)?;
    fill(&root, &terminals, has_clock, additions).await?;
    vfs.disks.set_directory(root.clone()).await?;
    let only = root.clone();
    vfs.register_file_system("devtmpfs", Arc::new(move |_: &[u8]| Ok(only.clone())));
    Ok(root)
}

/// The change by which a device of terminals belongs to group tty, as in distributions.
fn to_tty_group() -> AttributeChange {
    AttributeChange { group: Some(5), ..Default::default() }
}

async fn fill(root: &VnodeRef, terminals: &Terminals, has_clock: bool, additions: Additions) -> Result<()> {
    let owned = |mode| NewAttributes { mode: Mode::new(mode), user: 0, group: 0, account: None, lists: None };
    let own = NODES.iter().map(|&(name, mode, major, minor)| (name, mode, DeviceNumber { major, minor }));
    let clock = has_clock.then_some(("rtc0", 0o600, HARDWARE_CLOCK));
    for (name, mode, number) in own.chain(clock).chain(additions.nodes.iter().copied()) {
        let node = NewNode::Special(FileType::CharacterDevice, number);
        let made = root.create(name.as_bytes(), node, owned(mode)).await?;
        if matches!(name, "tty" | "ptmx") {
            made.change(to_tty_group()).await?;
        }
    }
    let visible = (String::from("tty0"), DeviceNumber { major: CONSOLE_MAJOR, minor: 0 });
    let visible = terminals.virtual_consoles.is_some().then_some(visible);
    let named = terminals.named().map(|terminal| (terminal.name(), terminal.number()));
    for (name, number) in visible.into_iter().chain(named) {
        let node = NewNode::Special(FileType::CharacterDevice, number);
        root.create(name.as_bytes(), node, owned(0o620)).await?.change(to_tty_group()).await?;
    }
    for (name, target) in additions.links {
        root.create(name.as_bytes(), NewNode::SymbolicLink(target.as_bytes()), owned(0o777)).await?;
    }
    for (name, mode) in [("pts", 0o755), ("shm", 0o1777)] {
        root.create(name.as_bytes(), NewNode::Directory, owned(mode)).await?;
    }
    Ok(())
}

struct MemoryDriver {
    device: Memory,
    environment: Arc<dyn Environment>,
}

impl DeviceDriver for MemoryDriver {
    fn open(&self, _context: &OpenContext<'_>) -> Result<Arc<dyn FileObject>> {
        Ok(Arc::new(MemoryFile { device: self.device, environment: self.environment.clone() }))
    }
}

pub(crate) struct MemoryFile {
    device: Memory,
    environment: Arc<dyn Environment>,
}

/// How many bytes one attempt to read or write copies at most.
const PIECE: usize = 65536;

impl MemoryFile {
    /// The seeding for which a read has to wait.
    fn unseeded(&self) -> Option<&Seeding> {
        let waits = self.device == Memory::Random;
        self.environment.seeding().filter(|seeding| waits && !seeding.is_seeded())
    }
}

impl FileObject for MemoryFile {
    fn readiness(&self) -> Readiness {
        match self.unseeded() {
            Some(_) => Readiness::WRITE,
            None => Readiness::READ | Readiness::WRITE,
        }
    }

    fn queue(&self) -> Option<&PollQueue> {
        match self.device {
            Memory::Random => self.environment.seeding().map(Seeding::queue),
            _ => None,
        }
    }

    fn maps_zeros(&self) -> bool {
        self.device == Memory::Zero
    }

    fn try_read(&self, _io: &Io<'_>, to: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        const ZEROS: &[u8; 4096] = &[0; 4096];
        if self.device == Memory::Null {
            return Ok(0);
        }
        if self.unseeded().is_some() {
            return Err(AttemptError::WouldBlock);
        }
        let mut bytes = [0; 256];
        let mut done = 0;
        while done < PIECE && to.remaining() > 0 {
            let piece = match self.device {
                Memory::Random | Memory::Urandom => {
                    self.environment.fill_random(&mut bytes);
                    &bytes[..]
                }
                _ => ZEROS,
            };
            let piece = &piece[..piece.len().min(to.remaining())];
            match to.copy_out(piece) {
                Ok(copied) => done += copied,
                Err(_) if done > 0 => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(done)
    }

    fn try_write(&self, _io: &Io<'_>, from: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        if self.device == Memory::Full {
            return Err(Error::ENOSPC.into());
        }
        if !matches!(self.device, Memory::Random | Memory::Urandom) {
            let count = from.remaining();
            from.skip(count);
            return Ok(count);
        }
        // What programs write is mixed in. It does not count as a seed, since others may know it.
        let mut bytes = [0; 256];
        let mut done = 0;
        while done < PIECE && from.remaining() > 0 {
            match from.copy_in(&mut bytes) {
                Ok(count) => {
                    self.environment.stir(&bytes[..count]);
                    done += count;
                }
                Err(_) if done > 0 => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(done)
    }

    fn writes_all(&self) -> bool {
        true
    }

    fn reads_all(&self) -> bool {
        true
    }

    fn positions(&self) -> Positions {
        Positions::Ignored
    }

    fn label(&self) -> &'static str {
        "mem"
    }
}

enum TerminalDevice {
    /// The controlling terminal of the caller's session.
    Own,
    /// The system's console.
    Console,
    /// The master of a new pseudoterminal.
    Master,
    /// The virtual console that is visible.
    Visible,
}

struct TerminalDriver {
    which: TerminalDevice,
    terminals: Arc<Terminals>,
}

impl DeviceDriver for TerminalDriver {
    fn open(&self, context: &OpenContext<'_>) -> Result<Arc<dyn FileObject>> {
        let terminal = match self.which {
            TerminalDevice::Own => context.process.terminal().ok_or(Error::ENXIO)?,
            TerminalDevice::Console => self.terminals.console.clone().ok_or(Error::ENODEV)?,
            TerminalDevice::Visible => {
                let consoles = self.terminals.virtual_consoles.as_ref().ok_or(Error::ENXIO)?;
                consoles.visible_terminal().clone()
            }
            TerminalDevice::Master => return Ok(self.terminals.ptys.create(context.identity)?),
        };
        Ok(TerminalFile::open(&terminal, context.process, Some(context.identity), context.flags)?)
    }
}

/// The driver that makes a terminal available as a device of its own: a serial line or a virtual
/// console.
struct LineDriver {
    terminal: Arc<Terminal>,
}

impl DeviceDriver for LineDriver {
    fn open(&self, context: &OpenContext<'_>) -> Result<Arc<dyn FileObject>> {
        Ok(TerminalFile::open(&self.terminal, context.process, Some(context.identity), context.flags)?)
    }
}
