//! Output of the debugger's commands.
use core::fmt::{self, Write};
use core::ptr::eq;

use ::trace::EventSet;
use x2::{ThreadId, utcb};

use super::breakpoints;
use super::command::{Command, HELP};
use crate::mapping::inspect;
use crate::memory::{Account, OutOfMemory, PAGE_SIZE, PhysAddr, Use, VirtAddr, frame, node};
use crate::scheduler::timeouts::NEVER;
use crate::space::Space;
use crate::thread::table::threads;
use crate::thread::{Continuation, Found, IpcKind, ThreadRef, flag, user_memory};
use crate::{arch, interrupt, processor, trace};

/// The most threads in an overview, which has to fit on the screen.
const OVERVIEW: usize = 24;
/// The most links that are followed in one queue, which may be corrupt.
const LONGEST_QUEUE: usize = 64;

/// All threads: the other processors stand still while the debugger looks, so it may read what
/// belongs to them.
fn all_threads() -> impl Iterator<Item = ThreadRef> {
    threads().iter().map(Found::anywhere)
}

/// Carries out a command that only looks.
pub(super) fn execute(command: Command, out: &mut impl Write) {
    // The console takes everything; a formatting error would only cut the output off.
    let _ = match command {
        Command::Help => help(out),
        Command::Threads => thread_list(out, usize::MAX),
        Command::Thread(number) => thread(out, number),
        Command::Spaces => spaces(out),
        Command::Queues => queues(out),
        Command::Memory => memory(out),
        Command::Accounts => accounts(out),
        Command::Pages(number, address) => pages(out, number, address),
        Command::Entries(number, address) => entries(out, number, address),
        Command::Frame(address) => frame_holders(out, address),
        Command::Interrupts => interrupts(out),
        Command::Read(number, address) => read(out, number, address),
        Command::Trace => trace::dump(out),
        Command::Record(set) => record(out, set),
        Command::Breakpoints => breakpoints::list(out),
        Command::Nothing
        | Command::Stop(_)
        | Command::Clear(_)
        | Command::Step
        | Command::Crash(_)
        | Command::Go
        | Command::Exit
        | Command::Reset => Ok(()),
    };
}

/// Prints the current thread, the first threads, and kernel memory.
pub(super) fn overview(out: &mut impl Write) {
    let _ = thread_list(out, OVERVIEW).and_then(|()| queues(out)).and_then(|()| summary(out));
}

fn help(out: &mut impl Write) -> fmt::Result {
    HELP.iter().try_for_each(|(letter, word, what)| writeln!(out, "{letter:6} {word:11} {what}"))
}

fn thread_list(out: &mut impl Write, most: usize) -> fmt::Result {
    writeln!(out, "thread        space               pri  ip                  state")?;
    for thread in all_threads().take(most) {
        writeln!(
            out,
            "{:12}  {}  {:3}  {:#018x}  {}",
            Id(thread.id()),
            SpaceName(thread.space.get()),
            thread.priority.get(),
            thread.registers.rip.get(),
            State(thread)
        )?;
    }
    match all_threads().skip(most).count() {
        0 => Ok(()),
        more => writeln!(out, "... and {more} more"),
    }
}

fn thread(out: &mut impl Write, number: u32) -> fmt::Result {
    let Some(thread) = threads().by_number(number).map(Found::anywhere) else {
        return writeln!(out, "there is no thread {number}");
    };
    let registers = &thread.registers;
    writeln!(out, "{}: {}", Id(thread.id()), State(thread))?;
    writeln!(
        out,
        "space {}  local id {:#x}  scheduler {}",
        SpaceName(thread.space.get()),
        thread.local_id.get(),
        Id(thread.scheduler.get())
    )?;
    writeln!(
        out,
        "priority {}  timeslice {} of {}  timeout {}",
        thread.priority.get(),
        Span(thread.timeslice_left.get()),
        Span(thread.timeslice.get()),
        Span(left(thread))
    )?;
    if let Some(block) = thread.utcb.get() {
        writeln!(
            out,
            "pager {}  exception handler {}  error {:#x}  acceptor {:#x}",
            Id(block.read_id(utcb::PAGER)),
            Id(block.read_id(utcb::EXCEPTION_HANDLER)),
            block.read(utcb::ERROR_CODE),
            block.read(utcb::buffer_register(0))
        )?;
    }
    writeln!(out, "fault words {:#x} {:#x}", thread.fault[0].get(), thread.fault[1].get())?;
    writeln!(
        out,
        "rip {:#018x}  rsp {:#018x}  rbp {:#018x}  rflags {:#x}",
        registers.rip.get(),
        registers.rsp.get(),
        registers.rbp.get(),
        registers.rflags.get()
    )?;
    writeln!(
        out,
        "rax {:#018x}  rbx {:#018x}  rcx {:#018x}  rdx {:#018x}",
        registers.rax().get(),
        registers.rbx().get(),
        registers.rcx.get(),
        registers.rdx.get()
    )?;
    writeln!(
        out,
        "rsi {:#018x}  rdi {:#018x}  r8  {:#018x}  r9  {:#018x}",
        registers.rsi.get(),
        registers.rdi.get(),
        registers.r8.get(),
        registers.r9().get()
    )?;
    writeln!(
        out,
        "r10 {:#018x}  r11 {:#018x}  r12 {:#018x}  r13 {:#018x}",
        registers.r10().get(),
        registers.r11.get(),
        registers.message[4].get(),
        registers.message[5].get()
    )?;
    writeln!(out, "r14 {:#018x}  r15 {:#018x}", registers.message[6].get(), registers.message[7].get())
}

fn spaces(out: &mut impl Write) -> fmt::Result {
    writeln!(out, "space               root          memory used / limit        threads")?;
    for thread in all_threads() {
        let Some(space) = thread.space.get() else { continue };
        let lives_here = |other: &ThreadRef| other.space.get().is_some_and(|others| eq(others, space));
        // A space is printed at its first thread in the list.
        if !all_threads().find(lives_here).is_some_and(|first| eq(first, thread)) {
            continue;
        }
        writeln!(
            out,
            "{}  {:#012x}  {:10} / {:12}  {} from {}{}",
            SpaceName(Some(space)),
            space.memory.page_table_root(),
            space.account().used(),
            Bytes(space.account().limit().word()),
            all_threads().filter(lives_here).count(),
            Id(thread.id()),
            if space.is_privileged() { ", privileged" } else { "" }
        )?;
        if let (Some(kip), Some(utcbs)) = (space.kip_area(), space.utcb_area()) {
            writeln!(out, "    kip {:#x}  utcbs {:#x} + 2^{}", kip.base, utcbs.base, utcbs.size_log2)?;
        }
    }
    Ok(())
}

fn queues(out: &mut impl Write) -> fmt::Result {
    let this = processor::this();
    match this.current.get() {
        Some(thread) => writeln!(out, "running: {}", Id(thread.id()))?,
        None => writeln!(out, "running: none")?,
    }
    for priority in (0..=u8::MAX).rev() {
        let mut waiting = this.scheduler.ready.threads(priority).take(LONGEST_QUEUE).peekable();
        if waiting.peek().is_some() {
            write!(out, "ready at {priority}:")?;
            waiting.try_for_each(|thread| write!(out, " {}", Id(thread.id())))?;
            writeln!(out)?;
        }
    }
    for thread in all_threads() {
        if thread.waits_until() != NEVER {
            writeln!(out, "timeout of {}: in {}", Id(thread.id()), Span(left(thread)))?;
        }
    }
    Ok(())
}

/// How long `thread` waits at most from now on, in microseconds.
fn left(thread: ThreadRef) -> u64 {
    match thread.waits_until() {
        NEVER => NEVER,
        end => end.saturating_sub(arch::clock()),
    }
}

const USES: [(Use, &str); 10] = [
    (Use::Free, "free"),
    (Use::Records, "frame records"),
    (Use::Accounts, "accounts"),
    (Use::Threads, "threads"),
    (Use::Spaces, "spaces"),
    (Use::MapNodes, "mapping nodes"),
    (Use::MapArrays, "mapping arrays"),
    (Use::ExtendedState, "extended state"),
    (Use::PageTables, "page tables"),
    (Use::UserVisible, "UTCBs and the like"),
];

fn memory(out: &mut impl Write) -> fmt::Result {
    summary(out)?;
    let Some(statistics) = frame::try_statistics() else { return Ok(()) };
    let nodes = || (0..node::layout().nodes as u8).filter(|_| node::are_several());
    let of_nodes = || nodes().map(frame::statistics_of);
    for (usage, name) in USES {
        write!(out, "{:10} KiB  {name}", u64::from(statistics.of(usage)) * PAGE_SIZE / 1024)?;
        for (number, of_node) in of_nodes().enumerate() {
            write!(out, ", {} on node {number}", u64::from(of_node.of(usage)) * PAGE_SIZE / 1024)?;
        }
        writeln!(out)?;
    }
    writeln!(out, "the kernel's own account: {} bytes", Account::KERNEL.used())
}

fn accounts(out: &mut impl Write) -> fmt::Result {
    writeln!(out, "account  bytes used        limit  references  spaces of threads")?;
    for (number, used, limit, references) in Account::all().take(LONGEST_QUEUE) {
        write!(out, "{number:7}  {used:10}  {:>11}  {references:10} ", Bytes(limit.word()))?;
        for thread in all_threads() {
            let pays = thread.space.get().is_some_and(|space| space.account().number() == number);
            if pays {
                write!(out, " {}", Id(thread.id()))?;
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The most lines that a command prints.
const LINES: usize = 40;

fn space_of(out: &mut impl Write, number: u32) -> Result<&'static Space, fmt::Error> {
    let space = threads().by_number(number).and_then(Found::space);
    if space.is_none() {
        writeln!(out, "there is no thread {number}")?;
    }
    space.ok_or(fmt::Error)
}

fn pages(out: &mut impl Write, number: u32, from: u64) -> fmt::Result {
    let space = space_of(out, number)?;
    for (line, (address, page)) in inspect::pages(space.memory, VirtAddr::new(from)).enumerate() {
        if line == LINES {
            return writeln!(out, "... more from {:#x} on", address.value());
        }
        let physical = page.address.align_down(page.page_bits).value();
        writeln!(
            out,
            "{:#018x}  {:?}  {:#014x}  2^{}",
            address.value(),
            page.rights,
            physical,
            page.page_bits
        )?;
    }
    writeln!(out, "no more pages")
}

fn entries(out: &mut impl Write, number: u32, address: u64) -> fmt::Result {
    let space = space_of(out, number)?;
    if !arch::is_canonical(address) {
        return writeln!(out, "no processor has the address {address:#x}");
    }
    for (level, entry) in inspect::entries(space.memory, VirtAddr::new(address)) {
        writeln!(out, "level {level}: {entry:#018x}")?;
    }
    Ok(())
}

fn frame_holders(out: &mut impl Write, address: u64) -> fmt::Result {
    let mut lines = 0;
    for holding in inspect::tree(PhysAddr::new(address)).take(LINES) {
        lines += 1;
        write!(out, "{:width$}", "", width = 2 * holding.depth.min(20))?;
        match holding.page {
            Some((root, at, rights)) => {
                let lives = |thread: &ThreadRef| {
                    thread.space.get().is_some_and(|space| space.memory.page_table_root() == root)
                };
                let owner = all_threads().find(lives).map_or(ThreadId::NIL, |thread| thread.id());
                write!(out, "space of {} at {:#x} {rights:?}", Id(owner), at.value())?;
            }
            None if holding.depth == 0 => write!(out, "sigma0")?,
            None => write!(out, "not mapped as a whole")?,
        }
        writeln!(out, "  2^{}{}", holding.bits, if holding.is_part { ", a part" } else { "" })?;
    }
    if lines == 0 { writeln!(out, "no space has it from sigma0") } else { writeln!(out, "{lines} nodes") }
}

fn summary(out: &mut impl Write) -> fmt::Result {
    let Some(statistics) = frame::try_statistics() else {
        return writeln!(out, "the pool of frames is locked");
    };
    let kib = |frames: u32| u64::from(frames) * PAGE_SIZE / 1024;
    writeln!(out, "kernel memory: {} of {} KiB free", kib(statistics.of(Use::Free)), kib(statistics.total))
}

fn interrupts(out: &mut impl Write) -> fmt::Result {
    for line in 0..interrupt::system_base() {
        let Some(source) = interrupt::find(ThreadId::interrupt(line)) else { continue };
        if let Some(handler) = source.handler() {
            writeln!(out, "{line}: to {}", Id(handler.id()))?;
        }
    }
    let (all, messages) = (interrupt::system_base(), interrupt::messages());
    writeln!(out, "{} lines, then {messages} message-signalled", all - messages)
}

fn record(out: &mut impl Write, set: EventSet) -> fmt::Result {
    match trace::select(set) {
        Ok(()) => Ok(()),
        Err(OutOfMemory) => writeln!(out, "no memory for the trace buffer"),
    }
}

/// How many bytes of memory one command shows.
const SHOWN: usize = 64;

fn read(out: &mut impl Write, number: u32, address: u64) -> fmt::Result {
    let space = threads().by_number(number).and_then(Found::space);
    let Some(space) = space else { return writeln!(out, "there is no thread {number}") };
    let mut bytes = [0; SHOWN];
    let length = user_memory::read(space, address, &mut bytes);
    for (index, line) in bytes[..length].chunks(16).enumerate() {
        write!(out, "{:#018x} ", address + index as u64 * 16)?;
        line.iter().try_for_each(|byte| write!(out, " {byte:02x}"))?;
        writeln!(out)?;
    }
    if length < SHOWN {
        writeln!(out, "{:#018x}  not mapped", address.wrapping_add(length as u64))?;
    }
    Ok(())
}

/// An id in a column: number.version.
pub(super) struct Id(pub(super) ThreadId);

impl fmt::Display for Id {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Text { bytes: [0; 24], length: 0 };
        write!(text, "{:?}", self.0)?;
        formatter.pad(core::str::from_utf8(&text.bytes[..text.length]).unwrap_or("?"))
    }
}

/// A short text, for padding.
struct Text {
    bytes: [u8; 24],
    length: usize,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

/// A space is named by the address of its object.
struct SpaceName(Option<&'static Space>);

impl fmt::Display for SpaceName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.0.map_or(0, |space| core::ptr::from_ref(space) as u64);
        write!(formatter, "{address:#018x}")
    }
}

/// Microseconds.
struct Span(u64);

impl fmt::Display for Span {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == NEVER { formatter.write_str("never") } else { write!(formatter, "{} us", self.0) }
    }
}

/// A limit of memory in bytes, to be printed.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == u64::MAX { formatter.pad("none") } else { self.0.fmt(formatter) }
    }
}

/// What a thread does or waits for.
struct State(ThreadRef);

impl fmt::Display for State {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let thread = self.0;
        let partner = Id(thread.partner());
        match thread.continuation() {
            Continuation::Inactive => formatter.write_str("inactive")?,
            Continuation::ReturnToUser => formatter.write_str("user")?,
            Continuation::Send(kind) | Continuation::SendAgain(kind) => {
                write!(formatter, "{} to {partner}", Purpose(kind, "sends"))?
            }
            Continuation::Receive(kind) => write!(formatter, "{} from {partner}", Purpose(kind, "receives"))?,
            Continuation::SendTransfer(_) => write!(formatter, "transfers to {partner}")?,
            Continuation::ReceiveTransfer(_) => write!(formatter, "gets a transfer from {partner}")?,
            Continuation::RaiseFault => {
                write!(formatter, "faults in a transfer at {:#x}", thread.fault[0].get())?
            }
            Continuation::ResumeTransfer => write!(formatter, "goes on with a transfer")?,
            Continuation::RaiseException => write!(formatter, "raises exception {}", thread.fault[0].get())?,
            Continuation::SystemCall => formatter.write_str("in a long system call")?,
            Continuation::Call(call) => write!(formatter, "goes to another processor: {call:?}")?,
        }
        if thread.has(flag::HALTED) {
            formatter.write_str(", halted")?;
        }
        if thread.location.processor() != 0 || thread.home() != 0 {
            write!(formatter, ", at {} of {}", thread.location.processor(), thread.home())?;
        }
        if thread.ready.is_queued() {
            formatter.write_str(", ready")?;
        }
        Ok(())
    }
}

/// The purpose of an IPC, to be printed.
struct Purpose(IpcKind, &'static str);

impl fmt::Display for Purpose {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.0 {
            IpcKind::User => "",
            IpcKind::PageFault => " (page fault)",
            IpcKind::PortFault => " (port fault)",
            IpcKind::Exception => " (exception)",
            IpcKind::SystemCall => " (foreign system call)",
            IpcKind::Quantum => " (total quantum)",
            IpcKind::Preemption => " (preemption)",
            IpcKind::Start => " (start)",
        };
        write!(formatter, "{}{why}", self.1)
    }
}
