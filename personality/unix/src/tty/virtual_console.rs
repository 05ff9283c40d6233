//! Virtual consoles: terminals that share a screen and a keyboard. One of them is visible, and gets
//! what is typed (console_ioctl(4)).

use super::{Terminal, WindowSize};
use crate::poll::{PollQueue, Readiness, until_ready};
use crate::process_context::SessionHost;
use crate::vfs::DeviceNumber;
use crate::{AttemptError, Error, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU8, Ordering};

/// The major number of virtual consoles. The minor number is that of the console, from 1 on.
pub const MAJOR: u32 = 4;

/// The screen and the keyboard of virtual consoles. No function blocks.
pub trait Screen: Send + Sync {
    /// Asks the screen to show a console. [`VirtualConsoles::shown`] says later that it does.
    fn show(&self, number: u8);

    /// The locks of the keyboard that are on.
    fn locks(&self) -> Locks;
}

bitflags::bitflags! {
    /// Locks of a keyboard.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Locks: u8 {
        /// Scroll Lock is on.
        const SCROLL = 1;
        /// Num Lock is on.
        const NUM = 2;
        /// Caps Lock is on.
        const CAPS = 4;
    }
}

/// The virtual consoles of a system. They have the numbers from 1 on.
pub struct VirtualConsoles {
    terminals: Vec<Arc<Terminal>>,
    visible: AtomicU8,
    screen: Arc<dyn Screen>,
    /// The processes that wait for a console to become visible, and the readers of its name.
    queue: PollQueue,
}

impl VirtualConsoles {
    /// Makes `count` consoles of this size, of which the first is visible. There is at least one.
    pub fn new(
        count: u8,
        size: WindowSize,
        host: &Arc<dyn SessionHost>,
        screen: Arc<dyn Screen>,
    ) -> Arc<VirtualConsoles> {
        let make = |minor: u8| {
            let number = DeviceNumber { major: MAJOR, minor: minor.into() };
            let terminal = Terminal::new(number, host.clone());
            terminal.set_window_size(size);
            terminal
        };
        let terminals = (1..=count.max(1)).map(make).collect();
        Arc::new(VirtualConsoles { terminals, visible: AtomicU8::new(1), screen, queue: PollQueue::new() })
    }

    /// All consoles, that of number 1 first.
    pub fn terminals(&self) -> &[Arc<Terminal>] {
        &self.terminals
    }

    /// The console of this number.
    pub fn terminal(&self, number: u8) -> Option<&Arc<Terminal>> {
        self.terminals.get(usize::from(number).checked_sub(1)?)
    }

    /// The number of the console that is visible.
    pub fn visible(&self) -> u8 {
        self.visible.load(Ordering::Relaxed)
    }

    /// The console that is visible.
    pub fn visible_terminal(&self) -> &Arc<Terminal> {
        self.terminal(self.visible()).unwrap_or(&self.terminals[0])
    }

    /// The number of the console that this terminal is, if it is one.
    pub fn number_of(&self, terminal: &Arc<Terminal>) -> Option<u8> {
        let place = self.terminals.iter().position(|console| Arc::ptr_eq(console, terminal))?;
        u8::try_from(place + 1).ok()
    }

    /// The locks of the keyboard that are on.
    pub fn locks(&self) -> Locks {
        self.screen.locks()
    }

    /// To be called when the screen shows another console. A number of no console is ignored.
    pub fn shown(&self, number: u8) {
        if self.terminal(number).is_some() {
            self.visible.store(number, Ordering::Relaxed);
            self.queue.wake(Readiness::ALL);
        }
    }

    /// Asks the screen to show a console (VT_ACTIVATE). `ENXIO`: there is none of this number.
    pub fn show(&self, number: u64) -> Result<()> {
        self.screen.show(self.check(number)?);
        Ok(())
    }

    /// Waits until the console is visible (VT_WAITACTIVE). `ENXIO`: there is none of this number.
    pub async fn wait(&self, number: u64) -> Result<()> {
        let number = self.check(number)?;
        let visible = until_ready(&self.queue, Readiness::ALL, || {
            if self.visible() == number { Ok(()) } else { Err(AttemptError::WouldBlock) }
        });
        // Waiting cannot fail.
        visible.await.map_err(|_| Error::EIO)
    }

    fn check(&self, number: u64) -> Result<u8> {
        let number = u8::try_from(number).map_err(|_| Error::ENXIO)?;
        self.terminal(number).map(|_| number).ok_or(Error::ENXIO)
    }

    /// The numbers of the consoles that no process has open.
    fn free(&self) -> impl Iterator<Item = u8> {
        let numbered = (1..).zip(&self.terminals);
        numbered.filter(|(_, terminal)| !terminal.is_open()).map(|(number, _)| number)
    }

    /// The first console that no process has open (VT_OPENQRY).
    pub fn first_free(&self) -> Option<u8> {
        self.free().next()
    }

    /// The consoles that processes have open, a bit for each number (VT_GETSTATE). Bit 0 stands for
    /// the visible one, and is always set.
    pub fn open(&self) -> u16 {
        let free = self.free().filter(|&number| number < 16).fold(0, |bits, number| bits | 1u16 << number);
        let all = (1..16u8).zip(&self.terminals).fold(1, |bits, (number, _)| bits | 1u16 << number);
        all & !free
    }

    /// Clears a console that no process has open, or all of these if `number` is 0
    /// (VT_DISALLOCATE). `EBUSY`: a process has it open, or it is visible. `ENXIO`: there is none
    /// of this number.
    pub fn clear(&self, number: u64) -> Result<()> {
        let wanted = if number == 0 { None } else { Some(self.check(number)?) };
        let is_free = |&number: &u8| number != self.visible() && wanted.is_none_or(|wanted| wanted == number);
        let mut cleared = false;
        for number in self.free().filter(is_free) {
            if let Some(terminal) = self.terminal(number) {
                terminal.reset_screen();
                cleared = true;
            }
        }
        if cleared || wanted.is_none() { Ok(()) } else { Err(Error::EBUSY) }
    }
}
