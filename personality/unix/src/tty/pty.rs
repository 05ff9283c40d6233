//! Pseudoterminals, with a master side and a slave side (pty(7)).

use super::devpts::PtsNode;
use super::file::TerminalFile;
use super::terminal::Terminal;
use crate::file::{FileObject, Io, OpenFile};
use crate::poll::{PollQueue, Readiness};
use crate::process_context::{FileSignal, ProcessContext, SessionHost};
use crate::sync::{SpinLock, delay};
use crate::vfs::{DeviceNumber, Location, MountTree, OpenFlags, VnodeRef};
use crate::{AttemptError, Environment, Error, Identity, Result, Timestamp, UserBuffer};
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};

/// The pseudoterminals of a devpts.
pub struct Ptys {
    pub(super) this: Weak<Ptys>,
    pub(super) environment: Arc<dyn Environment>,
    host: Arc<dyn SessionHost>,
    pub(super) options: SpinLock<super::PtsOptions>,
    pub(super) list: SpinLock<BTreeMap<u32, Arc<PtsNode>>>,
    pub(super) device: DeviceNumber,
    pub(super) made: Timestamp,
}

/// How many pseudoterminals there can be.
const MAXIMUM: u32 = 4096;
/// The major device number of the slave sides.
const MAJOR: u32 = 136;

/// The open file of a pseudoterminal's master side. When it is closed, the terminal is hung up and
/// removed.
pub struct PtyMaster {
    ptys: Arc<Ptys>,
    index: u32,
    node: Arc<PtsNode>,
}

impl Ptys {
    /// Makes a devpts without pseudoterminals. The terminals signal processes through `host`.
    pub fn new(
        environment: Arc<dyn Environment>,
        host: Arc<dyn SessionHost>,
        options: super::PtsOptions,
    ) -> Arc<Ptys> {
        let made = environment.realtime();
        Arc::new_cyclic(|this| Ptys {
            made,
            this: this.clone(),
            environment,
            host,
            options: SpinLock::new(options),
            list: SpinLock::new(BTreeMap::new()),
            device: crate::vfs::DeviceNumber::unnamed(),
        })
    }

    /// Makes a pseudoterminal that belongs to `identity`, as an open of /dev/ptmx does. `ENOSPC` if
    /// there are too many.
    pub fn create(self: &Arc<Self>, identity: &Identity) -> Result<Arc<PtyMaster>> {
        let mut list = self.list.lock();
        let index = (0..MAXIMUM).find(|index| !list.contains_key(index)).ok_or(Error::ENOSPC)?;
        let terminal = Terminal::new(DeviceNumber { major: MAJOR, minor: index }, self.host.clone());
        let node = PtsNode::new(self, index, terminal, identity);
        list.insert(index, node.clone());
        Ok(Arc::new(PtyMaster { ptys: self.clone(), index, node }))
    }
}

impl PtyMaster {
    /// The number N of the pseudoterminal's name /dev/pts/N (TIOCGPTN).
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Whether the slave side cannot be opened yet (TIOCGPTLCK).
    pub fn is_locked(&self) -> bool {
        self.node.is_locked()
    }

    /// Sets whether the slave side can be opened (TIOCSPTLCK, unlockpt(3)).
    pub fn set_locked(&self, locked: bool) {
        self.node.set_locked(locked);
    }

    /// Sets packet mode (TIOCPKT): each read of the master then begins with a byte that is 0 before
    /// output, or else says what happened.
    pub fn set_packet_mode(&self, on: bool) {
        self.node.terminal().set_packets(on);
    }

    /// Whether the master is in packet mode (TIOCGPKT).
    pub fn packet_mode(&self) -> bool {
        self.node.terminal().packets().0
    }

    /// Sends a signal to the foreground group (TIOCSIG).
    pub fn signal_foreground(&self, signal: FileSignal) {
        if let Some(group) = self.node.terminal().foreground_group() {
            self.ptys.host.signal_group(group, signal);
        }
    }

    /// Opens the slave side without looking up its name (TIOCGPTPEER). If the devpts is mounted in
    /// `tree`, the file gets its name there, with which ttyname(3) finds it.
    pub fn open_peer(
        &self,
        tree: &MountTree,
        process: &dyn ProcessContext,
        flags: OpenFlags,
    ) -> Result<Arc<OpenFile>> {
        if self.is_locked() {
            return Err(Error::EIO);
        }
        let terminal = TerminalFile::open(self.node.terminal(), process, None, flags)?;
        let is_mine =
            |root: &VnodeRef| core::ptr::addr_eq(Arc::as_ptr(&root.file_system()), Arc::as_ptr(&self.ptys));
        Ok(match tree.find(is_mine) {
            Some(mount) => {
                let location = Location { mount, vnode: self.node.clone() };
                OpenFile::of_vnode(location, None, flags, Some(terminal))
            }
            None => OpenFile::of_object(terminal, flags),
        })
    }

    fn is_abandoned(&self) -> bool {
        let state = self.node.terminal().state.lock();
        state.was_opened && state.opens == 0
    }
}

impl FileObject for PtyMaster {
    fn try_read(&self, _io: &Io<'_>, to: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        if to.remaining() == 0 {
            return Ok(0);
        }
        // This must be asked first: if the last program has closed the terminal, all that it wrote
        // before is there to be read afterwards.
        let abandoned = self.is_abandoned();
        delay("master reads");
        match self.node.terminal().copy_output(to) {
            Err(AttemptError::WouldBlock) if abandoned => Err(Error::EIO.into()),
            done => done,
        }
    }

    fn try_write(&self, io: &Io<'_>, from: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        let terminal = self.node.terminal();
        let mut written = 0;
        while from.remaining() > 0 {
            if !terminal.can_receive() {
                return if written > 0 { Ok(written) } else { Err(AttemptError::WouldBlock) };
            }
            let mut piece = [0; 256];
            let count = piece.len().min(from.remaining());
            let copied = match from.copy_in(&mut piece[..count]) {
                Ok(copied) => copied,
                Err(error) => return if written > 0 { Ok(written) } else { Err(error.into()) },
            };
            let taken = terminal.receive(&piece[..copied], io.started);
            from.retreat(copied - taken);
            written += taken;
        }
        Ok(written)
    }

    fn writes_all(&self) -> bool {
        true
    }

    fn readiness(&self) -> Readiness {
        let mut ready = Readiness::empty();
        let abandoned = self.is_abandoned();
        let (_, told) = self.node.terminal().packets();
        ready.set(Readiness::READ, self.node.terminal().has_output() || told);
        ready.set(Readiness::PRIORITY, told);
        ready.set(Readiness::WRITE, self.node.terminal().can_receive());
        ready.set(Readiness::HANGUP, abandoned);
        ready
    }

    fn queue(&self) -> Option<&PollQueue> {
        Some(&self.node.terminal().driver)
    }

    fn label(&self) -> &'static str {
        "ptmx"
    }

    fn readable_bytes(&self) -> Result<usize> {
        Ok(self.node.terminal().pending_output())
    }

    fn terminal(&self) -> Option<&Arc<Terminal>> {
        Some(self.node.terminal())
    }
}

impl Drop for PtyMaster {
    fn drop(&mut self) {
        let removed = self.ptys.list.lock().remove(&self.index);
        drop(removed);
        self.node.terminal().hang_up();
    }
}
