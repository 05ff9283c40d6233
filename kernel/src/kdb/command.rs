//! The debugger's commands.
use core::fmt;

use ::trace::EventSet;

use crate::arch::{Breakpoint, Crash, StopAt};

/// A command of the debugger.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Command {
    /// An empty line.
    Nothing,
    /// Lists the commands.
    Help,
    /// All threads, a line each.
    Threads,
    /// One thread, by number.
    Thread(u32),
    /// All spaces.
    Spaces,
    /// Ready threads and running timeouts.
    Queues,
    /// Kernel memory.
    Memory,
    /// Kernel memory by the account that pays for it.
    Accounts,
    /// The pages of a thread's space: number, first address.
    Pages(u32, u64),
    /// The page-table entries for an address in a thread's space.
    Entries(u32, u64),
    /// Which spaces have the memory at a physical address, and from which space.
    Frame(u64),
    /// Interrupts that have handlers.
    Interrupts,
    /// Memory of a thread's space: number, address.
    Read(u32, u64),
    /// Prints the events in the trace buffer.
    Trace,
    /// Chooses the events that are recorded.
    Record(EventSet),
    /// Makes the kernel go wrong, to see that it reports it.
    Crash(Crash),
    /// Lists the breakpoints.
    Breakpoints,
    /// Sets a breakpoint.
    Stop(Breakpoint),
    /// Removes the breakpoint of this number.
    Clear(u64),
    /// Continues for one instruction.
    Step,
    /// Goes on.
    Go,
    /// Ends the emulator.
    Exit,
    /// Restarts the machine.
    Reset,
}

/// Why a line is not a valid command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CommandError<'a> {
    /// There is no such command.
    Unknown(&'a str),
    /// An argument is missing.
    Missing(&'static str),
    /// An argument is no number.
    Number(&'a str),
}

impl fmt::Display for CommandError<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(word) => write!(formatter, "there is no command '{word}'"),
            Self::Missing(what) => write!(formatter, "{what} is missing"),
            Self::Number(word) => write!(formatter, "'{word}' is no number"),
        }
    }
}

/// The letter, word and explanation of each command.
pub(super) const HELP: [(&str, &str, &str); 23] = [
    ("h", "help", "this list"),
    ("t", "threads", "all threads"),
    ("t N", "thread N", "one thread, by number (0x... or decimal)"),
    ("s", "spaces", "all address spaces"),
    ("q", "queues", "ready threads and timeouts"),
    ("m", "memory", "kernel memory"),
    ("a", "accounts", "kernel memory by account"),
    ("p N A", "pages N A", "pages of the space of thread N, from address A on"),
    ("pt N A", "entries N A", "page-table entries for address A in the space of thread N"),
    ("f A", "frame A", "the spaces that have the memory at physical address A"),
    ("i", "interrupts", "interrupts with handlers"),
    ("r N A", "read N A", "64 bytes at address A in the space of thread N"),
    ("", "trace", "dump the trace buffer"),
    ("", "trace EV", "record these events: all, none, or names such as ipc-*,switch"),
    ("b", "breakpoints", "the breakpoints there are"),
    ("b A", "break A", "stop before the instruction at address A, of any space or the kernel"),
    ("w A", "watch A", "stop after a write into the 8 bytes at address A (watch A SIZE: 1, 2, 4, 8)"),
    ("c N", "clear N", "remove breakpoint N"),
    ("n", "step", "execute one instruction of what has stopped"),
    ("", "crash HOW", "make the kernel go wrong: panic fault entry stack code alias data"),
    ("g", "go", "leave the debugger"),
    ("", "reset", "restart the machine"),
    ("e", "exit", "end the emulator"),
];

const CRASHES: [(&str, Crash); 7] = [
    ("panic", Crash::Panic),
    ("fault", Crash::Fault),
    ("entry", Crash::Entry),
    ("stack", Crash::Stack),
    ("code", Crash::Code),
    ("alias", Crash::CodeAlias),
    ("data", Crash::Data),
];

/// Parses a line.
pub(super) fn parse(line: &str) -> Result<Command, CommandError<'_>> {
    let mut words = line.split_ascii_whitespace();
    let Some(name) = words.next() else { return Ok(Command::Nothing) };
    let mut argument = |what| words.next().ok_or(CommandError::Missing(what));
    Ok(match name {
        "h" | "help" | "?" => Command::Help,
        "t" | "thread" | "threads" => match argument("") {
            Ok(word) => Command::Thread(thread_number(word)?),
            Err(_) => Command::Threads,
        },
        "s" | "spaces" => Command::Spaces,
        "q" | "queues" => Command::Queues,
        "m" | "memory" => Command::Memory,
        "a" | "accounts" => Command::Accounts,
        "p" | "pages" => {
            let thread = thread_number(argument("the thread's number")?)?;
            Command::Pages(thread, argument("").map_or(Ok(0), number)?)
        }
        "pt" | "entries" => {
            let thread = thread_number(argument("the thread's number")?)?;
            Command::Entries(thread, number(argument("the address")?)?)
        }
        "f" | "frame" => Command::Frame(number(argument("the address")?)?),
        "i" | "interrupts" => Command::Interrupts,
        "r" | "read" => {
            let thread = thread_number(argument("the thread's number")?)?;
            Command::Read(thread, number(argument("the address")?)?)
        }
        "trace" => match argument("") {
            Ok(word) => Command::Record(EventSet::parse(word).map_err(CommandError::Unknown)?),
            Err(_) => Command::Trace,
        },
        "crash" => {
            let word = argument("how")?;
            let known = CRASHES.iter().find(|(name, _)| *name == word);
            Command::Crash(known.ok_or(CommandError::Unknown(word))?.1)
        }
        "b" | "break" | "breakpoints" => match argument("") {
            Ok(word) => Command::Stop(Breakpoint { address: number(word)?, at: StopAt::Execution }),
            Err(_) => Command::Breakpoints,
        },
        "w" | "watch" => {
            let address = number(argument("the address")?)?;
            let size = argument("").unwrap_or("8");
            let bytes = number(size)?.try_into().map_err(|_| CommandError::Number(size))?;
            Command::Stop(Breakpoint { address, at: StopAt::Write { bytes } })
        }
        "c" | "clear" => Command::Clear(number(argument("the breakpoint's number")?)?),
        "n" | "step" => Command::Step,
        "g" | "go" => Command::Go,
        "e" | "exit" => Command::Exit,
        "reset" => Command::Reset,
        _ => return Err(CommandError::Unknown(name)),
    })
}

/// A thread's number, alone or with its version as the debugger prints ids.
fn thread_number(word: &str) -> Result<u32, CommandError<'_>> {
    let digits = word.split('.').next().unwrap_or(word);
    number(digits).ok().and_then(|value| u32::try_from(value).ok()).ok_or(CommandError::Number(word))
}

fn number(word: &str) -> Result<u64, CommandError<'_>> {
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => word.parse(),
    }
    .map_err(|_| CommandError::Number(word))
}
