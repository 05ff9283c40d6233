//! The boot configuration: a text file among the boot modules that says which servers to start and
//! what each may have.
//!
//! ```text
//! # The console's driver.
//! server console
//!     program    console          # name of the module that holds the program
//!     priority   200              # 0..254; default 100
//!     memory     2M               # bytes with K, M or G, or `rest`: all that no other server has
//!     threads    4                # at most so many threads ...
//!     spaces     1                # ... in so many address spaces
//!     kernel-memory 1M            # kernel memory of all its spaces; default no limit
//!     module     image.cpio       # a boot module that it may map; may be given several times
//!     interrupt  4                # a line; may be given several times
//!     ports      0x3f8..0x3ff     # I/O ports; may be given several times
//!     device     0xfed00000 4K    # device memory: base and size; may be given several times
//!     pci        8086:10d3        # a PCI function: vendor and device; may be given several times
//!     pci        class:010802     # a PCI function of this class, whatever its vendor
//!     screen     yes              # it shows what is on the screen; default no
//!     dma        64K              # memory that its devices may read and write themselves; default none
//!     restart    yes              # start it again when it dies: 5 times, or a number, in a row
//!     power      yes              # it may end the whole system; default no
//!     arguments  speed=115200     # the rest of the line, as it is
//! ```
//!
//! There is one setting on each line; `#` starts a comment; white space at the start of a line has
//! no meaning. An unknown key, a repeated one, a value out of range or a missing program is an
//! error that names the line: a system that starts with half its configuration is worse than one
//! that says what is wrong.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;
use x2::extension::Quota;

/// Bytes of the longest name of a server that a message can have (`interfaces/root.defs`).
const LONGEST_NAME: usize = 256;

/// How often a server with `restart yes` is started again, until it has run for a minute. One that
/// ends more often would only end again.
const RESTARTS: u32 = 5;
/// How often a server may be started again at most.
const MOST_RESTARTS: u64 = 1_000_000;

/// How much memory a server may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryLimit {
    /// At most so many bytes; a multiple of 4 KiB.
    Bytes(u64),
    /// All memory that the other servers leave. Only one server may have it.
    Rest,
}

/// How a configuration names a PCI function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionId {
    /// By its vendor and its number among the vendor's devices.
    Device {
        /// The vendor's number.
        vendor: u16,
        /// The device's number.
        device: u16,
    },
    /// By what it is: base class, sub-class and programming interface, each of 8 bits, from the
    /// highest down.
    Class(u32),
}

/// One server of the boot configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The name under which other servers look it up.
    pub name: String,
    /// The name of the boot module that holds the server's program.
    pub program: String,
    /// The server's arguments: one string, as it is in the file.
    pub arguments: String,
    /// The priority of the server's threads, and the highest that it may give to others.
    pub priority: u8,
    /// How much memory the server may have, its program included.
    pub memory: MemoryLimit,
    /// How many threads the server may have in its own and other spaces, its first thread included.
    pub threads: u32,
    /// How many address spaces the server may have, its own included.
    pub spaces: u32,
    /// How many bytes of kernel memory the server's spaces may use together. `None`: no limit.
    pub kernel_memory: Option<Quota>,
    /// The names of the boot modules that the server may map.
    pub modules: Vec<String>,
    /// The interrupt lines that the server may attach to.
    pub interrupts: Vec<u32>,
    /// The ranges of I/O ports that the server may use.
    pub ports: Vec<RangeInclusive<u16>>,
    /// Device memory that the server may map: first address and size in bytes, both multiples of 4
    /// KiB.
    pub devices: Vec<(u64, u64)>,
    /// PCI functions that the server drives. An id that is listed twice stands for two functions.
    pub functions: Vec<FunctionId>,
    /// Whether the server may map the screen's memory.
    pub screen: bool,
    /// How many bytes of memory the server may have that devices read and write, in addition to
    /// [`memory`](Self::memory).
    pub dma: Option<u64>,
    /// How often root starts the server again after it has ended.
    pub restarts: u32,
    /// Whether the server may power off or restart the machine.
    pub power: bool,
}

impl Server {
    fn named(name: &str) -> Server {
        Server {
            name: name.to_string(),
            program: String::new(),
            arguments: String::new(),
            priority: 100,
            memory: MemoryLimit::Bytes(4 << 20),
            threads: 8,
            spaces: 1,
            kernel_memory: None,
            modules: Vec::new(),
            interrupts: Vec::new(),
            ports: Vec::new(),
            devices: Vec::new(),
            functions: Vec::new(),
            screen: false,
            dma: None,
            restarts: 0,
            power: false,
        }
    }
}

/// Why a configuration was refused: the line and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The number of the line, counted from 1; one past the last line if something is missing.
    pub line: usize,
    /// What is wrong and what would be right, as text.
    pub reason: String,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "boot configuration, line {}: {}", self.line, self.reason)
    }
}

/// How many bytes `memory rest` stands for: those of `free` that the other servers leave.
///
/// # Errors
/// A text if the other servers may have more than `free` bytes.
pub fn rest(servers: &[Server], free: u64) -> Result<u64, String> {
    let fixed = servers.iter().fold(0, |sum: u64, server| {
        let memory = match server.memory {
            MemoryLimit::Bytes(bytes) => bytes,
            MemoryLimit::Rest => 0,
        };
        sum.saturating_add(memory).saturating_add(server.dma.unwrap_or(0))
    });
    free.checked_sub(fixed).ok_or_else(|| {
        let (fixed, free) = (fixed >> 10, free >> 10);
        alloc::format!("the servers may have {fixed} KiB together, but the machine has {free} KiB")
    })
}

const KEYS: &str = "program, arguments, priority, memory, threads, spaces, kernel-memory, module, interrupt, ports, \
     device, pci, screen, dma, restart, power";

/// Parses a configuration. Returns the servers in the order in which they are to be started.
///
/// # Errors
/// The first mistake in the text.
pub fn parse(text: &[u8]) -> Result<Vec<Server>, Error> {
    let mut servers: Vec<Server> = Vec::new();
    // The keys that the present server has been given. A key that is repeated is refused.
    let mut given: Vec<&str> = Vec::new();
    let mut last_line = 0;
    for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
        last_line = index + 1;
        let fail = |reason: String| Error { line: index + 1, reason };
        let line = core::str::from_utf8(line).map_err(|_| fail("not UTF-8 text".to_string()))?;
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        let (key, value) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let value = value.trim();
        if value.is_empty() {
            return Err(fail(alloc::format!("`{key}` needs a value")));
        }
        if key == "server" {
            if let Some(server) = servers.last() {
                complete(server).map_err(fail)?;
            }
            if value.contains(char::is_whitespace) {
                return Err(fail(alloc::format!("a server's name is one word, not `{value}`")));
            }
            if value.len() > LONGEST_NAME {
                return Err(fail(alloc::format!("a server's name has at most {LONGEST_NAME} bytes")));
            }
            if servers.iter().any(|server| server.name == value) {
                return Err(fail(alloc::format!("there is a server `{value}` already")));
            }
            servers.push(Server::named(value));
            given.clear();
            continue;
        }
        let rest_taken = servers.iter().rev().skip(1).any(|server| server.memory == MemoryLimit::Rest);
        let Some(server) = servers.last_mut() else {
            return Err(fail(alloc::format!("`{key}` before the first `server NAME`")));
        };
        let repeatable = matches!(key, "module" | "interrupt" | "ports" | "device" | "pci");
        if !repeatable && given.contains(&key) {
            return Err(fail(alloc::format!("server `{}` has `{key}` twice", server.name)));
        }
        given.push(key);
        set(server, key, value).map_err(fail)?;
        if key == "memory" && server.memory == MemoryLimit::Rest && rest_taken {
            return Err(fail("only one server can have the rest of memory".to_string()));
        }
    }
    if let Some(server) = servers.last() {
        complete(server).map_err(|reason| Error { line: last_line + 1, reason })?;
    }
    Ok(servers)
}

fn complete(server: &Server) -> Result<(), String> {
    if server.program.is_empty() {
        return Err(alloc::format!("server `{}` has no `program`", server.name));
    }
    if server.spaces > server.threads {
        return Err(alloc::format!(
            "server `{}` may have {} spaces but only {} threads; each space holds at least one",
            server.name,
            server.spaces,
            server.threads
        ));
    }
    Ok(())
}

fn set(server: &mut Server, key: &str, value: &str) -> Result<(), String> {
    match key {
        "program" => server.program = value.to_string(),
        "arguments" => server.arguments = value.to_string(),
        "priority" => server.priority = number_in(value, 0, 254)? as u8,
        "memory" if value == "rest" => server.memory = MemoryLimit::Rest,
        "memory" => server.memory = MemoryLimit::Bytes(size(value)?),
        "threads" => server.threads = number_in(value, 1, 1 << 18)? as u32,
        "spaces" => server.spaces = number_in(value, 1, 1 << 18)? as u32,
        "kernel-memory" => server.kernel_memory = Some(quota(value)?),
        "module" => server.modules.push(value.to_string()),
        "interrupt" => server.interrupts.push(number_in(value, 0, 255)? as u32),
        "ports" => {
            let (first, last) = value.split_once("..").unwrap_or((value, value));
            let (first, last) = (number_in(first, 0, 0xffff)?, number_in(last, 0, 0xffff)?);
            if first > last {
                return Err(alloc::format!("`{value}` ends before it begins"));
            }
            server.ports.push(first as u16..=last as u16);
        }
        "device" => {
            let Some((base, length)) = value.split_once(char::is_whitespace) else {
                return Err("`device` needs a base address and a size".to_string());
            };
            let (base, length) = (number_in(base, 0, (1 << 52) - 1)?, size(length.trim())?);
            if base % 4096 != 0 || base + length > 1 << 52 {
                return Err(alloc::format!("`{value}` is not whole pages of physical memory"));
            }
            server.devices.push((base, length));
        }
        "pci" => {
            let Some(function) = FunctionId::of(value) else {
                return Err(alloc::format!("`{value}` is no PCI function, like 8086:10d3 or class:010802"));
            };
            server.functions.push(function);
        }
        "screen" => server.screen = yes_or_no(key, value)?,
        "dma" => server.dma = Some(size(value)?),
        "restart" if value.starts_with(|first: char| first.is_ascii_digit()) => {
            server.restarts = number_in(value, 0, MOST_RESTARTS)? as u32;
        }
        "restart" => server.restarts = if yes_or_no(key, value)? { RESTARTS } else { 0 },
        "power" => server.power = yes_or_no(key, value)?,
        _ => return Err(alloc::format!("unknown key `{key}`; a server has {KEYS}")),
    }
    Ok(())
}

impl FunctionId {
    /// The function that a configuration names: `VENDOR:DEVICE` or `class:CLASS`, in hexadecimal.
    fn of(value: &str) -> Option<FunctionId> {
        let (first, second) = value.split_once(':')?;
        if first == "class" {
            return hexadecimal(second, 6).map(FunctionId::Class);
        }
        let part = |digits| hexadecimal(digits, 4).map(|number| number as u16);
        Some(FunctionId::Device { vendor: part(first)?, device: part(second)? })
    }
}

impl fmt::Display for FunctionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FunctionId::Device { vendor, device } => write!(f, "{vendor:04x}:{device:04x}"),
            FunctionId::Class(class) => write!(f, "of class {class:06x}"),
        }
    }
}

/// A number of exactly so many hexadecimal digits.
fn hexadecimal(digits: &str, count: usize) -> Option<u32> {
    let is_number = digits.len() == count && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u32::from_str_radix(digits, 16).ok().filter(|_| is_number)
}

fn yes_or_no(key: &str, value: &str) -> Result<bool, String> {
    match value {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err(alloc::format!("`{key}` is yes or no, not `{value}`")),
    }
}

fn number(value: &str) -> Option<u64> {
    match value.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => value.parse().ok(),
    }
}

fn number_in(value: &str, low: u64, high: u64) -> Result<u64, String> {
    match number(value.trim()) {
        Some(number) if (low..=high).contains(&number) => Ok(number),
        _ => Err(alloc::format!("`{value}` is not a number from {low} to {high}")),
    }
}

/// Parses a size that a quota of kernel memory can have.
fn quota(value: &str) -> Result<Quota, String> {
    let size = size(value)?;
    Quota::from_word(size)
        .ok_or_else(|| alloc::format!("`{value}` is more kernel memory than can be counted"))
}

/// Parses a size in bytes: a number, with K, M or G after it; a multiple of 4 KiB, not 0.
fn size(value: &str) -> Result<u64, String> {
    let (digits, shift) = match value.as_bytes().last() {
        Some(b'K') => (&value[..value.len() - 1], 10),
        Some(b'M') => (&value[..value.len() - 1], 20),
        Some(b'G') => (&value[..value.len() - 1], 30),
        _ => (value, 0),
    };
    number(digits)
        .and_then(|number| number.checked_mul(1 << shift))
        .filter(|&bytes| bytes > 0 && bytes % 4096 == 0 && bytes < 1 << 52)
        .ok_or_else(|| alloc::format!("`{value}` is not a size in whole 4K pages, like 64K, 16M or 1G"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reason(text: &str) -> (usize, String) {
        let error = parse(text.as_bytes()).unwrap_err();
        (error.line, error.reason)
    }

    #[test]
    fn a_whole_configuration() {
        let servers = parse(
            b"# drivers\nserver console\n\tprogram con # the module\n  interrupt 4\n  ports 0x3f8..0x3ff\n ports 0x80\n\
              device 0xfed00000 4K\n pci 1234:11e8\n pci 8086:10D3\n pci class:0C0330\n screen yes\n dma 64K\n restart yes\n arguments speed=115200  colour\n\n\
              server unix\nprogram unix\nmemory rest\nkernel-memory 64M\nmodule image.cpio\nmodule b\npower yes\nthreads 20000\nspaces 4000\npriority 120\n",
        )
        .unwrap();
        assert_eq!(servers.len(), 2);
        let console = &servers[0];
        assert_eq!((console.name.as_str(), console.program.as_str()), ("console", "con"));
        assert_eq!(console.interrupts, [4]);
        assert_eq!(console.ports, [0x3f8..=0x3ff, 0x80..=0x80]);
        assert_eq!(console.devices, [(0xfed0_0000, 4096)]);
        assert_eq!(
            console.functions,
            [
                FunctionId::Device { vendor: 0x1234, device: 0x11e8 },
                FunctionId::Device { vendor: 0x8086, device: 0x10d3 },
                FunctionId::Class(0x0c_0330),
            ]
        );
        assert_eq!((console.dma, servers[1].dma), (Some(64 << 10), None));
        assert_eq!(console.arguments, "speed=115200  colour");
        assert_eq!((console.restarts, servers[1].restarts), (RESTARTS, 0));
        assert!(console.screen && !servers[1].screen);
        assert_eq!(console.memory, MemoryLimit::Bytes(4 << 20));
        assert_eq!(servers[1].memory, MemoryLimit::Rest);
        assert_eq!((servers[1].kernel_memory, console.kernel_memory), (Quota::from_word(64 << 20), None));
        assert_eq!(servers[1].modules, ["image.cpio", "b"]);
        assert!(servers[1].power && !console.power);
        assert_eq!((servers[1].threads, servers[1].spaces, servers[1].priority), (20000, 4000, 120));
    }

    #[test]
    fn the_rest_is_what_other_servers_leave_of_the_memory() {
        let text = b"server a\nprogram p\nmemory 1M\ndma 64K\nserver b\nprogram p\nmemory rest\ndma 4K\n";
        let servers = parse(text).unwrap();
        let fixed = (1 << 20) + (68 << 10);
        assert_eq!(rest(&servers, fixed + 4096), Ok(4096));
        assert_eq!(rest(&servers, fixed), Ok(0));
        let reason = "the servers may have 1092 KiB together, but the machine has 1091 KiB";
        assert_eq!(rest(&servers, fixed - 1).unwrap_err(), reason);
        let all = parse(b"server a\nprogram p\nmemory 0xfffffffffffff000\nserver b\nprogram p\nmemory 8K\n");
        assert!(all.is_err() || rest(&all.unwrap(), u64::MAX - 1).is_err());
    }

    #[test]
    fn an_empty_configuration_starts_nothing() {
        assert_eq!(parse(b"").unwrap(), []);
        assert_eq!(parse(b"\n# nothing\n\n").unwrap(), []);
    }

    #[test]
    fn each_mistake_names_its_line_and_itself() {
        assert_eq!(reason("program x"), (1, "`program` before the first `server NAME`".to_string()));
        assert_eq!(reason("server a\nprogram"), (2, "`program` needs a value".to_string()));
        let (line, unknown) = reason("server a\nprogram a\nmemry 4M\n");
        assert!(line == 3 && unknown.contains("unknown key `memry`") && unknown.contains("memory"));
        assert_eq!(reason("server a\nprogram a\nprogram b").1, "server `a` has `program` twice");
        assert_eq!(reason("server a\nserver b\nprogram b"), (2, "server `a` has no `program`".to_string()));
        assert_eq!(reason("server a\n"), (3, "server `a` has no `program`".to_string()));
        assert_eq!(reason("server a\nprogram a\nserver a").1, "there is a server `a` already");
        assert!(reason("server a b").1.contains("one word"));
        assert!(reason(&alloc::format!("server {}", "a".repeat(257))).1.contains("at most 256"));
        assert!(reason("server a\nprogram a\nspaces 9\nthreads 2").1.contains("each space"));
        let twice = "server a\nprogram a\nmemory rest\nserver b\nprogram b\nmemory rest";
        assert_eq!(reason(twice), (6, "only one server can have the rest of memory".to_string()));
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for wrong in [
            "priority 255",
            "priority -1",
            "memory 0",
            "memory 5000",
            "memory 4T",
            "memory 99999999999G",
            "memory 18446744073709551615K",
            "threads 0",
            "threads 1000000",
            "interrupt 256",
            "ports 9..8",
            "ports 0x10000",
            "device 0x1000",
            "device 0x1001 4K",
            "device 0xfffffffffffff000 4K",
            "pci 8086",
            "pci 8086:10d3:1",
            "pci 808:610d3",
            "pci +086:10d3",
            "pci class:10802",
            "pci class:+10802",
            "pci class",
            "dma 0",
            "screen 1",
            "restart maybe",
            "restart 1000001",
            "restart 5x",
            "power on",
            "kernel-memory 1",
        ] {
            let text = alloc::format!("server a\nprogram a\n{wrong}\n");
            assert_eq!(parse(text.as_bytes()).unwrap_err().line, 3, "{wrong}");
        }
        assert!(parse(b"server a\nprogram a\narguments \xff").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_accepted_or_refused_but_never_stops_root(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&text);
        }

        #[test]
        fn any_line_of_known_words_is_accepted_or_refused(
            words in proptest::collection::vec("(server|program|memory|ports|device|a|0x1000|4K|7..9| |\n|#)", 0..60),
        ) {
            let _ = parse(words.concat().as_bytes());
        }
    }
}
