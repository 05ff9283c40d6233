//! Boot options: the kernel's command line.
//!
//! Words separated by spaces; `name` or `name=value`. Sizes take the suffixes K, M and G. A word
//! that is not an option is reported and ignored; so is the kernel's file name, which some loaders
//! put first.
//!
//! | option | meaning |
//! |---|---|
//! | `log=error\|warn\|info\|debug\|trace` | what the kernel prints; default `info` |
//! | `kmem=SIZE` | kernel memory; default an eighth of the memory, at least 16 MiB |
//! | `maxmem=SIZE` | ignore memory above this address |
//! | `module=NAME,START,SIZE` | this memory holds a module that the boot loader did not report |
//! | `processors=N` | use at most this many processors; default: all that the firmware reports, at most 64 |
//! | `apic-ids=ID,ID` | use the processors with these local APIC ids, instead of those that the firmware's tables name |
//! | `msi=N` | the maximum number of message-signalled interrupts; default 32 |
//! | `interrupt-remapping` | a table by which a device raises only its own interrupts |
//! | `delays=SEED` | random delays where processors race, for tests; 0: none |
//! | `legacy-io` | the first serial port's I/O ports are open to every space |
//! | `kdb=user` | every space may use the kernel debugger's console operations (ABI 15) |
//! | `kdb=break` | a break on the first serial line, or Escape, enters the kernel debugger, which takes the line's interrupt |
//! | `kdb=off` | nothing enters the debugger, not even a kernel that stops; INT3 is an exception |
//! | `exception-error-code` | exception messages carry the error code as a 20th word |
//! | `quota=SIZE` | kernel memory that each space other than the initial servers' may use; default: no limit |
//! | `sigma0=open` | passed on to sigma0, which then serves every thread (K13); not by kickstart |
//! | `kdb` | programs that may use the kernel debugger enter it by INT3 (otherwise their message is printed) |
//! | `trace=EVENTS` | record these events from the start: names separated by commas, `ipc-*`, `all` |
//! | `fastpath=off` | every IPC takes the general path; `fastpath=portable`: only the one in assembly is off |
//! | `tsc=reliable` | the rate of the time-stamp counter is constant, whatever the processor says |
//! | `exit` | on a panic, end the emulator through its debug-exit port |
use core::fmt;

use ::trace::EventSet;
use x2::extension::Quota;

use crate::boot::option_modules;
use crate::boot_cell::BootCell;
use crate::kip::MAX_PROCESSORS;
use crate::log::{self, Level};
use crate::panic;
use crate::sync::delay;

/// The fast paths of IPC (K10), which give the same answers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FastPath {
    /// No fast path, to compare with the others.
    Off,
    /// The fast path in Rust, without the one in assembly.
    Portable,
    /// The one in assembly first, then the one in Rust.
    Assembly,
}

/// A list of local APIC ids.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ApicIds {
    ids: [u32; MAX_PROCESSORS],
    count: usize,
}

impl ApicIds {
    /// Parses decimal numbers that are separated by commas.
    fn parse(text: &str) -> Option<Self> {
        let mut parsed = Self { ids: [0; MAX_PROCESSORS], count: 0 };
        for id in text.split(',') {
            *parsed.ids.get_mut(parsed.count)? = id.parse().ok()?;
            parsed.count += 1;
        }
        Some(parsed)
    }

    /// The ids, in the order of the command line.
    pub fn get(&self) -> &[u32] {
        &self.ids[..self.count]
    }
}

/// The parsed options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// The importance from which on log lines are printed.
    pub log: Level,
    /// Bytes of kernel memory, if the command line says so.
    pub kernel_memory: Option<u64>,
    /// Memory from this address on is ignored.
    pub memory_limit: Option<u64>,
    /// The most processors to use.
    pub processors: u32,
    /// Which processors to use in addition to the first, if not those that the firmware reports.
    pub apic_ids: Option<ApicIds>,
    /// How many message-signalled interrupts there are, if there are vectors for them.
    pub messages: u32,
    /// There is a table of interrupts for units between devices and memory.
    pub interrupt_remapping: bool,
    /// Seed of random delays; 0 = none.
    pub delays: u64,
    /// The first serial port is open to every space.
    pub legacy_io: bool,
    /// Unprivileged spaces may use the kernel debugger's console operations.
    pub user_kdb: bool,
    /// Privileged spaces may count what the kernel has in use and make allocations fail: for tests.
    pub test_kdb: bool,
    /// The enter operation of INT3 enters the kernel debugger.
    pub enter_kdb: bool,
    /// The first serial line's interrupt is the kernel debugger's break key.
    pub break_key: bool,
    /// The kernel debugger cannot be entered.
    pub no_kdb: bool,
    /// Exception messages carry the processor's error code as word 20.
    pub exception_error_code: bool,
    /// Bytes of kernel memory that a space may use, if limited.
    pub space_quota: Option<Quota>,
    /// sigma0 is to serve every thread, not only the initial servers.
    pub sigma0_open: bool,
    /// Events to record.
    pub trace: EventSet,
    /// Which fast paths IPC may take.
    pub fast_path: FastPath,
    /// The rate of the time-stamp counter is constant, whatever the processor says.
    pub steady_tsc: bool,
    /// End the emulator on a panic.
    pub exit_on_panic: bool,
}

/// A word of the command line that was not understood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unknown<'a>(pub &'a str);

impl fmt::Display for Unknown<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "boot option '{}' is not understood: ignored", self.0)
    }
}

impl Config {
    /// The values of options that the command line does not give.
    pub const DEFAULT: Self = Self {
        log: Level::Info,
        kernel_memory: None,
        memory_limit: None,
        processors: u32::MAX,
        apic_ids: None,
        messages: 32,
        interrupt_remapping: false,
        delays: 0,
        legacy_io: false,
        user_kdb: false,
        test_kdb: false,
        enter_kdb: false,
        break_key: false,
        no_kdb: false,
        exception_error_code: false,
        space_quota: None,
        sigma0_open: false,
        trace: EventSet::NONE,
        fast_path: FastPath::Assembly,
        steady_tsc: false,
        exit_on_panic: false,
    };

    /// Parses a command line; every word that is not understood goes to `unknown`.
    pub fn parse<'a>(command_line: &'a str, mut unknown: impl FnMut(Unknown<'a>)) -> Self {
        let mut config = Self::DEFAULT;
        for (index, word) in command_line.split_ascii_whitespace().enumerate() {
            if config.apply(word).is_none() && index > 0 {
                unknown(Unknown(word));
            }
        }
        config
    }

    fn apply(&mut self, word: &str) -> Option<()> {
        match word.split_once('=') {
            Some(("log", level)) => self.log = Level::from_name(level)?,
            Some(("kmem", size)) => self.kernel_memory = Some(parse_size(size)?),
            Some(("quota", size)) => self.space_quota = Some(Quota::from_word(parse_size(size)?)?),
            Some(("maxmem", size)) => self.memory_limit = Some(parse_size(size)?),
            // Its value is checked where modules are added.
            Some((option_modules::NAME, _)) => {}
            Some(("processors", count)) => {
                self.processors = count.parse().ok().filter(|&count: &u32| count > 0)?;
            }
            Some(("apic-ids", ids)) => self.apic_ids = Some(ApicIds::parse(ids)?),
            Some(("msi", count)) => self.messages = count.parse().ok()?,
            Some(("delays", seed)) => self.delays = seed.parse().ok()?,
            Some(("trace", events)) => self.trace = EventSet::parse(events).ok()?,
            Some(("fastpath", "off")) => self.fast_path = FastPath::Off,
            Some(("fastpath", "portable")) => self.fast_path = FastPath::Portable,
            Some(("tsc", "reliable")) => self.steady_tsc = true,
            Some(("sigma0", "open")) => self.sigma0_open = true,
            Some(("kdb", "user")) => self.user_kdb = true,
            Some(("kdb", "off")) => self.no_kdb = true,
            Some(("kdb", "break")) => self.break_key = true,
            Some(("kdb", "test")) => self.test_kdb = true,
            None if word == "legacy-io" => self.legacy_io = true,
            None if word == "interrupt-remapping" => self.interrupt_remapping = true,
            None if word == "kdb" => self.enter_kdb = true,
            None if word == "exception-error-code" => self.exception_error_code = true,
            None if word == "exit" => self.exit_on_panic = true,
            _ => return None,
        }
        Some(())
    }
}

/// A number of bytes, decimal, with an optional suffix K, M or G.
pub(crate) fn parse_size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.as_bytes().last()?.to_ascii_uppercase() {
        b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        b'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number: u64 = digits.parse().ok()?;
    number.checked_mul(1 << shift)
}

/// The options of this boot, set once by [`init`].
static CURRENT: BootCell<Config> = BootCell::new(Config::DEFAULT);

/// The options of this boot.
pub fn get() -> &'static Config {
    CURRENT.get()
}

/// Takes the kernel's command line into use.
///
/// # Safety
/// Called once, by the boot processor, before anything else runs.
pub unsafe fn init(command_line: &str) {
    let config = Config::parse(command_line, |word| log::warning!("{word}"));
    log::set_level(config.log);
    panic::set_exit(config.exit_on_panic);
    delay::enable(config.delays);
    // SAFETY: the caller keeps this function's contract.
    unsafe { *CURRENT.get_mut() = config }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> (Config, Vec<&str>) {
        let mut unknown = Vec::new();
        let config = Config::parse(line, |Unknown(word)| unknown.push(word));
        (config, unknown)
    }

    #[test]
    fn options_are_words() {
        let (config, unknown) =
            parse("kernel log=debug kmem=24M processors=4 msi=0  legacy-io kdb trace=ipc-*,switch exit");
        assert_eq!(unknown, [""; 0]);
        assert_eq!(config.log, Level::Debug);
        assert_eq!(config.kernel_memory, Some(24 << 20));
        assert_eq!((config.processors, config.messages, config.apic_ids), (4, 0, None));
        assert!(!config.steady_tsc && parse("kernel tsc=reliable").0.steady_tsc);
        assert_eq!(parse("apic-ids=0,77,1").0.apic_ids.unwrap().get(), [0, 77, 1]);
        assert!(!config.interrupt_remapping && parse("kernel interrupt-remapping").0.interrupt_remapping);
        assert!(config.legacy_io && config.enter_kdb && config.exit_on_panic && !config.user_kdb);
        assert!(
            config.trace.contains(::trace::Event::Switch) && !config.trace.contains(::trace::Event::Idle)
        );
        assert_eq!(parse(""), (Config::DEFAULT, vec![]));
    }

    /// Some loaders put the kernel's file name first; any other word that is not understood is
    /// named in a warning.
    #[test]
    fn unknown_words_are_told() {
        let (config, unknown) = parse(
            "/boot/kernel bogus log=loud processors=0 msi=all kmem= kmem=12X trace=bogus kdb=on legacy-io=1 apic-ids=1,,2",
        );
        assert_eq!(
            unknown,
            [
                "bogus",
                "log=loud",
                "processors=0",
                "msi=all",
                "kmem=",
                "kmem=12X",
                "trace=bogus",
                "kdb=on",
                "legacy-io=1",
                "apic-ids=1,,2"
            ]
        );
        assert_eq!(config, Config::DEFAULT);
        assert!(parse("log=error").0.log == Level::Error, "the first word can be an option");
    }

    #[test]
    fn sizes() {
        assert_eq!(parse_size("4096"), Some(4096));
        assert_eq!(parse_size("3k"), Some(3 << 10));
        assert_eq!(parse_size("2G"), Some(2 << 30));
        for wrong in ["", "K", "-1", "1.5M", "99999999999G", "18446744073709551616"] {
            assert_eq!(parse_size(wrong), None, "{wrong}");
        }
    }
}
