//! [`Terminal`]: a line discipline with two sides, its session and its settings.

use super::discipline::Discipline;
use super::settings::{InputModes, LocalModes, Settings, WindowSize};
use super::virtual_console::MAJOR as CONSOLE_MAJOR;
use crate::poll::{PollQueue, Readiness, until_ready};
use crate::process_context::{FileSignal, ProcessContext, ProcessId, SessionHost};
use crate::sync::SpinLock;
use crate::user_buffer::copy_out_all;
use crate::vfs::DeviceNumber;
use crate::{AttemptError, Error, Result, UserBuffer};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use bitflags::bitflags;
use core::time::Duration;

/// The first minor number of serial lines. Smaller ones are those of virtual consoles.
const FIRST_LINE: u32 = 64;

/// A terminal: its line discipline, settings and session.
pub struct Terminal {
    number: DeviceNumber,
    pub(super) host: Arc<dyn SessionHost>,
    pub(super) state: SpinLock<State>,
    /// Queue of the programs that wait for input or for room.
    pub(super) programs: PollQueue,
    /// Queue of the driver or master, which waits for output or for room.
    pub(super) driver: PollQueue,
}

pub(super) struct State {
    pub(super) discipline: Discipline,
    pub(super) window: WindowSize,
    /// The session whose controlling terminal this is.
    pub(super) session: Option<ProcessId>,
    /// The foreground process group.
    pub(super) foreground: Option<ProcessId>,
    /// How often the terminal was hung up. A file that was opened before the last hang-up is dead:
    /// it has recorded a smaller count.
    pub(super) hangups: u64,
    /// How many open files the slave side has.
    pub(super) opens: u32,
    /// Whether the slave side was opened at least once.
    pub(super) was_opened: bool,
    /// Whether further opens are refused (TIOCEXCL).
    pub(super) exclusive: bool,
    /// In packet mode (TIOCPKT), the events that the master has not read yet.
    pub(super) packets: Option<Packet>,
    /// When the last input arrived, for VTIME.
    last_input: Duration,
}

bitflags! {
    /// The events that the master of a pseudoterminal in packet mode reads (tty_ioctl(4), TIOCPKT).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Packet: u8 {
        /// Input was discarded (TIOCPKT_FLUSHREAD).
        const INPUT_FLUSHED = 1;
        /// Output was discarded (TIOCPKT_FLUSHWRITE).
        const OUTPUT_FLUSHED = 2;
        /// Output was stopped (TIOCPKT_STOP).
        const STOPPED = 4;
        /// Output was started again (TIOCPKT_START).
        const STARTED = 8;
        /// Start and stop characters are not special any more.
        const NO_FLOW_CONTROL = 0x10;
        /// Start and stop characters control the output again.
        const FLOW_CONTROL = 0x20;
    }
}

impl State {
    /// Records an event for the master, and removes the opposite event if that is recorded.
    fn note(&mut self, packet: Packet) {
        const OPPOSITES: [(Packet, Packet); 2] =
            [(Packet::STOPPED, Packet::STARTED), (Packet::NO_FLOW_CONTROL, Packet::FLOW_CONTROL)];
        let Some(packets) = &mut self.packets else { return };
        for (one, other) in OPPOSITES {
            packets.remove(if packet.contains(one) { other } else { Packet::empty() });
            packets.remove(if packet.contains(other) { one } else { Packet::empty() });
        }
        packets.insert(packet);
    }
}

/// Whether ^S and ^Q stop and start output.
fn has_flow_control(settings: &Settings) -> bool {
    let c = &settings.characters;
    settings.input.contains(InputModes::OUTPUT_CONTROL) && (c.start, c.stop) == (0x11, 0x13)
}

/// When new settings take effect (tcsetattr(3)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetWhen {
    /// The settings take effect immediately (TCSANOW).
    Now,
    /// The settings take effect when all output has been taken (TCSADRAIN).
    Drained,
    /// The settings take effect when all output has been taken, and unread input is discarded
    /// (TCSAFLUSH).
    Flushed,
}

/// What tcflush(3) discards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// Input that was not read is discarded.
    Input,
    /// Output that was not taken is discarded.
    Output,
    /// Unread input and untaken output are discarded.
    Both,
}

/// What tcflow(3) stops or starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The terminal's output stops (TCOOFF).
    StopOutput,
    /// The terminal's output starts again (TCOON).
    StartOutput,
    /// The terminal sends a stop character to stop the input (TCIOFF).
    StopInput,
    /// The terminal sends a start character to start the input (TCION).
    StartInput,
}

impl Terminal {
    /// Makes a terminal with default settings.
    pub fn new(number: DeviceNumber, host: Arc<dyn SessionHost>) -> Arc<Terminal> {
        Arc::new(Terminal {
            number,
            host,
            state: SpinLock::new(State {
                discipline: Discipline::new(Settings::default()),
                window: WindowSize::default(),
                session: None,
                foreground: None,
                hangups: 0,
                opens: 0,
                was_opened: false,
                exclusive: false,
                packets: None,
                last_input: Duration::ZERO,
            }),
            programs: PollQueue::new(),
            driver: PollQueue::new(),
        })
    }

    /// The device number of the terminal.
    pub fn number(&self) -> DeviceNumber {
        self.number
    }

    /// The name of the terminal's device in /dev.
    pub fn name(&self) -> String {
        match self.number {
            DeviceNumber { major: CONSOLE_MAJOR, minor: minor @ FIRST_LINE.. } => {
                format!("ttyS{}", minor - FIRST_LINE)
            }
            DeviceNumber { major: CONSOLE_MAJOR, minor } => format!("tty{minor}"),
            DeviceNumber { minor, .. } => format!("pts/{minor}"),
        }
    }

    /// Whether a process has the terminal open.
    pub(super) fn is_open(&self) -> bool {
        self.state.lock().opens > 0
    }

    /// Sends the sequence that resets a screen (RIS), if there is room for it.
    pub(super) fn reset_screen(&self) {
        // An error is ignored: the output for which there is no room is more than a screen full.
        let _ = self.state.lock().discipline.output.write_raw(b"\x1bc");
        self.driver.wake(Readiness::READ);
    }

    // The methods of the driver's side.

    /// Receives bytes that were typed, at `now` ([`crate::Environment::monotonic`]). Returns how
    /// many were taken; the rest has to wait until [`Terminal::driver_queue`] announces room
    /// ([`Readiness::WRITE`]).
    pub fn receive(&self, bytes: &[u8], now: Duration) -> usize {
        let mut taken = 0;
        let mut signal = None;
        while taken < bytes.len() && signal.is_none() {
            let mut state = self.state.lock();
            state.last_input = now;
            while taken < bytes.len() && state.discipline.can_receive() && signal.is_none() {
                signal = state.discipline.receive(bytes[taken]).signal;
                taken += 1;
            }
            let foreground = state.foreground;
            drop(state);
            match (signal.take(), foreground) {
                (Some(signal), Some(group)) => self.host.signal_group(group, signal),
                (Some(_), None) => {}
                (None, _) => break,
            }
        }
        self.changed();
        taken
    }

    /// Receives a break condition of the line.
    pub fn receive_break(&self) {
        let mut state = self.state.lock();
        let effect = state.discipline.receive_break();
        let foreground = state.foreground;
        drop(state);
        if let (Some(signal), Some(group)) = (effect.signal, foreground) {
            self.host.signal_group(group, signal);
        }
        self.changed();
    }

    /// Whether [`Terminal::receive`] would take a byte.
    pub fn can_receive(&self) -> bool {
        self.state.lock().discipline.can_receive()
    }

    /// Takes bytes of output, in order; returns how many: 0 if there are none or output is stopped.
    pub fn take_output(&self, to: &mut [u8]) -> usize {
        let mut state = self.state.lock();
        if state.discipline.stopped {
            return 0;
        }
        let bytes = &mut state.discipline.output.bytes;
        let (front, back) = bytes.contents();
        let first = front.len().min(to.len());
        let second = back.len().min(to.len() - first);
        to[..first].copy_from_slice(&front[..first]);
        to[first..first + second].copy_from_slice(&back[..second]);
        bytes.consume(first + second);
        drop(state);
        self.programs.wake(Readiness::WRITE);
        first + second
    }

    /// Copies output to a program that reads the master.
    pub(super) fn copy_output(&self, to: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        let mut state = self.state.lock();
        if let Some(packets) = state.packets.filter(|packets| !packets.is_empty()) {
            copy_out_all(to, &[packets.bits()])?;
            state.packets = Some(Packet::empty());
            return Ok(1);
        }
        if state.discipline.stopped || state.discipline.output.bytes.is_empty() {
            return Err(AttemptError::WouldBlock);
        }
        let mut head = 0;
        if state.packets.is_some() {
            copy_out_all(to, &[0])?;
            head = 1;
        }
        let count = match state.discipline.output.bytes.drain(usize::MAX, to) {
            Ok(count) => head + count,
            Err(error) => {
                to.retreat(head);
                return Err(error);
            }
        };
        drop(state);
        self.programs.wake(Readiness::WRITE);
        Ok(count)
    }

    /// Begins or ends packet mode of the master.
    pub(super) fn set_packets(&self, on: bool) {
        let mut state = self.state.lock();
        state.packets = if on { state.packets.or(Some(Packet::empty())) } else { None };
    }

    /// Whether the terminal is in packet mode, and whether there is an event for the master.
    pub(super) fn packets(&self) -> (bool, bool) {
        let packets = self.state.lock().packets;
        (packets.is_some(), packets.is_some_and(|packets| !packets.is_empty()))
    }

    /// Whether there is output that can be taken now.
    pub fn has_output(&self) -> bool {
        let state = self.state.lock();
        !state.discipline.stopped && !state.discipline.output.bytes.is_empty()
    }

    /// The queue that announces output ([`Readiness::READ`]) and room for input
    /// ([`Readiness::WRITE`]) to the driver.
    pub fn driver_queue(&self) -> &PollQueue {
        &self.driver
    }

    /// Wakes all waiters of both sides, because the state has changed.
    pub(super) fn changed(&self) {
        self.programs.wake(Readiness::READ | Readiness::WRITE);
        self.driver.wake(Readiness::READ | Readiness::WRITE);
    }

    // The methods of the slave side.

    /// Copies input to a program that reads. `expired` says whether the read's deadline has passed.
    pub(super) fn read(&self, to: &mut dyn UserBuffer, expired: bool) -> Result<usize, AttemptError> {
        let mut state = self.state.lock();
        let settings = state.discipline.settings;
        if !settings.local.contains(LocalModes::CANONICAL) {
            let (minimum, time) = (settings.characters.minimum, settings.characters.time);
            let available = state.discipline.readable();
            let wanted = usize::from(minimum.max(1)).min(to.remaining());
            if available < wanted && !expired {
                if minimum == 0 && time == 0 {
                    return Ok(0);
                }
                return Err(AttemptError::WouldBlock);
            }
        }
        let count = state.discipline.read(to)?;
        drop(state);
        self.changed();
        Ok(count)
    }

    /// When a read that began at `started` ends for lack of bytes (VTIME).
    pub(super) fn read_deadline(&self, started: Duration) -> Option<Duration> {
        let state = self.state.lock();
        let settings = &state.discipline.settings;
        let time = settings.characters.time;
        if settings.local.contains(LocalModes::CANONICAL) || time == 0 {
            return None;
        }
        let patience = Duration::from_millis(100 * u64::from(time));
        match (settings.characters.minimum, state.discipline.readable()) {
            (0, _) => Some(started + patience),
            (_, 0) => None,
            // The time limit is between two bytes. A read that begins long after the last byte
            // still waits for this time.
            _ => Some(state.last_input.max(started) + patience),
        }
    }

    /// Takes output that a program writes.
    pub(super) fn write(&self, from: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        let mut piece = [0; 256];
        let mut written = 0;
        let mut state = self.state.lock();
        let outcome = loop {
            let discipline = &mut state.discipline;
            let room = discipline.output.room(&discipline.settings);
            let count = from.remaining().min(room).min(piece.len());
            if count == 0 {
                break if from.remaining() > 0 { Err(AttemptError::WouldBlock) } else { Ok(()) };
            }
            let copied = match from.copy_in(&mut piece[..count]) {
                Ok(copied) => copied,
                Err(error) => break Err(error.into()),
            };
            if let Err(error) = discipline.output.write(&discipline.settings, &piece[..copied]) {
                from.retreat(copied);
                break Err(error.into());
            }
            written += copied;
        };
        drop(state);
        if written > 0 {
            self.driver.wake(Readiness::READ);
            return Ok(written);
        }
        outcome.map(|()| 0)
    }

    /// What a program that has the terminal open can do without blocking.
    pub(super) fn readiness(&self) -> Readiness {
        let state = self.state.lock();
        let discipline = &state.discipline;
        let settings = &discipline.settings;
        let readable = if settings.local.contains(LocalModes::CANONICAL) {
            discipline.has_line()
        } else {
            let c = &settings.characters;
            let wanted = if c.time == 0 { c.minimum.max(1) } else { 1 };
            discipline.readable() >= usize::from(wanted)
        };
        let mut ready = Readiness::empty();
        ready.set(Readiness::READ, readable);
        ready.set(Readiness::WRITE, discipline.output.room(settings) > 0);
        ready
    }

    /// How many bytes can be read (FIONREAD).
    pub fn readable_bytes(&self) -> usize {
        self.state.lock().discipline.readable()
    }

    /// How many bytes of output the driver's side has not taken yet (TIOCOUTQ).
    pub fn pending_output(&self) -> usize {
        self.state.lock().discipline.output.bytes.len()
    }

    /// The settings of the terminal.
    pub fn settings(&self) -> Settings {
        self.state.lock().discipline.settings
    }

    /// Changes the settings. A background process is stopped before (SIGTTOU).
    pub async fn set_settings(
        &self,
        process: &dyn ProcessContext,
        settings: Settings,
        when: SetWhen,
    ) -> Result<()> {
        self.to_foreground(process).await?;
        if when != SetWhen::Now {
            self.drain().await?;
        }
        let mut state = self.state.lock();
        if when == SetWhen::Flushed {
            state.discipline.flush_input();
            state.note(Packet::INPUT_FLUSHED);
        }
        let had = has_flow_control(&state.discipline.settings);
        state.discipline.set(settings);
        let has = has_flow_control(&state.discipline.settings);
        if had != has {
            state.note(if has { Packet::FLOW_CONTROL } else { Packet::NO_FLOW_CONTROL });
        }
        drop(state);
        self.changed();
        Ok(())
    }

    /// Waits until all output is taken, or the terminal is hung up (`EIO`).
    pub async fn drain(&self) -> Result<()> {
        let hangups = self.state.lock().hangups;
        let drained = until_ready(&self.programs, Readiness::WRITE, || {
            let state = self.state.lock();
            match state.discipline.output.bytes.is_empty() {
                _ if state.hangups != hangups => Err(Error::EIO.into()),
                true => Ok(()),
                false => Err(AttemptError::WouldBlock),
            }
        });
        match drained.await {
            Ok(()) => Ok(()),
            Err(AttemptError::Failed(error)) => Err(error),
            Err(_) => Err(Error::EIO),
        }
    }

    /// Discards input or output (tcflush(3)).
    pub async fn flush(&self, process: &dyn ProcessContext, which: Flush) -> Result<()> {
        self.to_foreground(process).await?;
        let mut state = self.state.lock();
        if which != Flush::Output {
            state.discipline.flush_input();
            state.note(Packet::INPUT_FLUSHED);
        }
        if which != Flush::Input {
            state.discipline.output.bytes.clear();
            state.note(Packet::OUTPUT_FLUSHED);
        }
        drop(state);
        self.changed();
        Ok(())
    }

    /// Stops or starts output or input (tcflow(3)).
    pub async fn flow(&self, process: &dyn ProcessContext, action: Flow) -> Result<()> {
        self.to_foreground(process).await?;
        let mut state = self.state.lock();
        let characters = state.discipline.settings.characters;
        match action {
            Flow::StopOutput => {
                state.discipline.stopped = true;
                state.note(Packet::STOPPED);
            }
            Flow::StartOutput => {
                state.discipline.stopped = false;
                state.note(Packet::STARTED);
            }
            Flow::StopInput => state.discipline.output.write_raw(&[characters.stop])?,
            Flow::StartInput => state.discipline.output.write_raw(&[characters.start])?,
        }
        drop(state);
        self.changed();
        Ok(())
    }

    /// The size of the terminal's window.
    pub fn window_size(&self) -> WindowSize {
        self.state.lock().window
    }

    /// Changes the size of the window; the foreground process group gets SIGWINCH.
    pub fn set_window_size(&self, window: WindowSize) {
        let mut state = self.state.lock();
        if core::mem::replace(&mut state.window, window) == window {
            return;
        }
        let foreground = state.foreground;
        drop(state);
        if let Some(group) = foreground {
            self.host.signal_group(group, FileSignal::WindowChange);
        }
    }

    /// Whether further opens are refused (TIOCGEXCL).
    pub fn is_exclusive(&self) -> bool {
        self.state.lock().exclusive
    }

    /// Sets whether further opens are refused (TIOCEXCL, TIOCNXCL).
    pub fn set_exclusive(&self, exclusive: bool) {
        self.state.lock().exclusive = exclusive;
    }
}
