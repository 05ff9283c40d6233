//! The shared object that programs find in their memory (AT_SYSINFO_EHDR, the vDSO of Linux): a
//! page of code, and after it a page with the clock, at an address where programs cannot map
//! anything. By its functions C libraries read the clocks and the processor's number without a
//! system call.
//!
//! A program gets the pages when it touches one of them for the first time, and cannot write to
//! them. A program that sets its own GS base (no C library does) must use the system call getcpu
//! instead of the function.

use alloc::vec::Vec;
use core::arch::naked_asm;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;
use l4::x2::utcb;
use mach::Machine;
use mach::machine::{Frame, PAGE_SHIFT, PAGE_SIZE, PhysicalPage, PmapChange, Protection};
use mach_l4::L4Machine;
use unix::memory::Memory;
use unix::thread::SystemPage;
use unix::{Error, Result};
use unix_server::elf_object::{self, Function};

use crate::environment::TimeScale;

/// The address of the shared object: between the addresses that programs may use and the UTCBs,
/// after the page of bounce mode.
pub(crate) const ADDRESS: u64 = 0x7fff_8000_2000;
/// The address of the page with the clock.
const CLOCK: u64 = ADDRESS + PAGE_SIZE;

/// What every program finds there.
pub(crate) const PAGES: [SystemPage; 2] = [
    SystemPage { name: "[vdso]", address: ADDRESS, execute: true },
    SystemPage { name: "[vvar]", address: CLOCK, execute: false },
];

/// Byte offsets in the page with the clock. The sequence is odd while the words of the monotonic
/// clock change. In mode 1 its nanoseconds are the time-stamp counter minus the base, times the
/// multiplier, shifted down; in mode 0 only a system call tells the time. The clock of the day is
/// later by the nanoseconds of one more word, which changes atomically.
const SEQUENCE: usize = 0;
const MODE: usize = 4;
const BASE: usize = 8;
const MULTIPLIER: usize = 16;
const SHIFT: usize = 24;
const DAY: usize = 32;
const CLOCK_SIZE: usize = 40;

/// How often a reader looks at the clock while it changes, before it makes the system call.
const TRIES: usize = 64;

/// The offset from a thread's GS base at which the number of its processor is.
const NUMBER: usize = (utcb::PROCESSOR_NUMBER - utcb::SELF_POINTER) as usize * 8;

/// The pages that are mapped into programs.
pub(crate) struct SharedObject {
    code: Frame,
    clock: Clock,
}

/// The page with the clock. Both the functions and the server get from it how much later the clock
/// of the day is than the monotonic one, so that they tell the same time.
#[derive(Clone, Copy)]
pub(crate) struct Clock(Frame);

impl Clock {
    /// The time at which the monotonic clock was 0, in nanoseconds since 1970: before the year
    /// 2263, so that a time that is later by years is less than 2^64.
    pub(crate) fn start(self, machine: &L4Machine) -> u64 {
        // The word alone is read, so that no order matters.
        machine.frame_word(self.0, DAY).load(Relaxed)
    }

    /// Sets the time at which the monotonic clock was 0, since 1970, unless it is later already.
    pub(crate) fn advance_start(self, machine: &L4Machine, start: Duration) {
        machine.frame_word(self.0, DAY).fetch_max(nanoseconds(start), Relaxed);
    }

    /// Sets the time at which the monotonic clock was 0, since 1970.
    pub(crate) fn set_start(self, machine: &L4Machine, start: Duration) {
        machine.frame_word(self.0, DAY).store(nanoseconds(start), Relaxed);
    }
}

/// The nanoseconds of a time since 1970; after the year 2262, those of its end.
fn nanoseconds(time: Duration) -> u64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX).cast_unsigned()
}

impl SharedObject {
    /// Makes the pages. `scale` says how the clock follows from the time-stamp counter, if it does;
    /// `started` is the time of the day when the clock was 0, in seconds since 1970. Fails with
    /// `ENOMEM` if memory is short.
    pub(crate) fn new(machine: &L4Machine, scale: Option<TimeScale>, started: u64) -> Result<SharedObject> {
        let page = |bytes: &[u8]| {
            let frame = machine.allocate_frames(0).ok_or(Error::ENOMEM)?;
            machine.zero_frame(frame);
            machine.write_frame(frame, 0, bytes);
            Ok::<_, Error>(frame)
        };
        let (functions, code) = code();
        let object = elf_object::build(&functions, &code);
        assert!(object.len() <= PAGE_SIZE as usize, "the object is one page");
        let code = page(&object)?;
        let clock = Clock(page(&clock(scale, nanoseconds(Duration::from_secs(started))))?);
        Ok(SharedObject { code, clock })
    }

    /// The page with the clock.
    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// Maps the pages into the memory of a program that has accessed `address`, if that is in one
    /// of them. False: it is not, or the access is not allowed. Fails with `ENOMEM` if memory is
    /// short.
    pub(crate) fn provide(
        &self,
        machine: &L4Machine,
        memory: &Memory<L4Machine>,
        address: u64,
        access: Protection,
    ) -> Result<bool> {
        let allowed = match address & !(PAGE_SIZE - 1) {
            ADDRESS => Protection::READ | Protection::EXECUTE,
            CLOCK => Protection::READ,
            _ => return Ok(false),
        };
        if !allowed.contains(access) {
            return Ok(false);
        }
        install(
            machine,
            memory,
            &[
                (ADDRESS, self.code, Protection::READ | Protection::EXECUTE),
                (CLOCK, self.clock.0, Protection::READ),
            ],
        )?;
        Ok(true)
    }
}

/// Maps pages of the server's into a program's memory, each at an address where programs cannot map
/// anything. Fails with `ENOMEM` if memory is short.
pub(crate) fn install(
    machine: &L4Machine,
    memory: &Memory<L4Machine>,
    pages: &[(u64, Frame, Protection)],
) -> Result<()> {
    let enter = |&(address, frame, protection)| PmapChange::Enter {
        address,
        page: PhysicalPage::Frame(frame),
        shift: PAGE_SHIFT,
        protection,
    };
    let changes: Vec<PmapChange> = pages.iter().map(enter).collect();
    let entered = memory.map().with_pmap(|pmap| machine.pmap_change(pmap, &changes));
    entered.ok_or(Error::ESRCH)?.map_err(|_| Error::ENOMEM)
}

/// The contents of the page with the clock, of which that of the day is later by `start`
/// nanoseconds.
fn clock(scale: Option<TimeScale>, start: u64) -> [u8; CLOCK_SIZE] {
    let mut page = [0; CLOCK_SIZE];
    let mut put = |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
    if let Some(scale) = scale {
        put(MODE, &1u32.to_le_bytes());
        put(MULTIPLIER, &scale.multiplier.to_le_bytes());
        put(SHIFT, &scale.shift.to_le_bytes());
    }
    put(DAY, &start.to_le_bytes());
    page
}

/// The bytes of code that are copied for each function: more than any of them has.
const FUNCTION_SIZE: usize = 192;

/// The functions, by the names under which C libraries look for them.
const FUNCTIONS: [(&str, extern "C" fn() -> !); 5] = [
    ("__vdso_clock_gettime", clock_gettime),
    ("__vdso_gettimeofday", gettimeofday),
    ("__vdso_time", time),
    ("__vdso_clock_getres", clock_getres),
    ("__vdso_getcpu", getcpu),
];

/// Where the functions are in the code of the object, and the code. It is position-independent, and
/// finds the page with the clock after its own.
fn code() -> ([Function; FUNCTIONS.len()], Vec<u8>) {
    let mut code = Vec::new();
    let functions = FUNCTIONS.map(|(name, function)| {
        let start = code.len();
        // SAFETY: the program's code is readable. The function is followed by more code of this
        // program, so that this many bytes can be read.
        #[allow(unsafe_code, reason = "a function's code as bytes")]
        code.extend_from_slice(unsafe { core::slice::from_raw_parts(function as *const u8, FUNCTION_SIZE) });
        Function { name, start, size: FUNCTION_SIZE }
    });
    (functions, code)
}

/// Code that reads a clock: RAX gets the seconds, RDX the nanoseconds. `$later` may add to RAX by
/// how many nanoseconds the clock is later than the monotonic one; R8 is the address of the page
/// with the clock then. The code changes RCX, R9 and R10, and goes to the label 90 if only a system
/// call tells the time.
macro_rules! read_clock {
    ($($later:literal),*) => {
        concat!(
            "lea r8, [rip]\n",
            "and r8, -4096\n",
            "add r8, 4096\n",
            "mov r9d, {tries}\n",
            "80:\n",
            "mov r10d, [r8 + {sequence}]\n",
            "test r10d, 1\n",
            "jnz 81f\n",
            "cmp dword ptr [r8 + {mode}], 1\n",
            "jne 90f\n",
            "lfence\n",
            "rdtsc\n",
            "shl rdx, 32\n",
            "or rax, rdx\n",
            "sub rax, [r8 + {base}]\n",
            "mov ecx, [r8 + {shift}]\n",
            "mul qword ptr [r8 + {multiplier}]\n",
            "shrd rax, rdx, cl\n",
            "cmp r10d, [r8 + {sequence}]\n",
            "je 82f\n",
            "81:\n",
            "pause\n",
            "dec r9d\n",
            "jnz 80b\n",
            "jmp 90f\n",
            "82:\n",
            $($later, "\n",)*
            "mov ecx, 1000000000\n",
            "xor edx, edx\n",
            "div rcx\n",
        )
    };
}

/// The naked function `$name`, whose code is copied into the page and never called here.
macro_rules! function {
    ($(#[$documentation:meta])* $name:ident: $($code:expr),*; $($key:ident = $value:expr),*) => {
        $(#[$documentation])*
        #[unsafe(naked)]
        #[allow(unsafe_code, reason = "code of programs")]
        extern "C" fn $name() -> ! {
            naked_asm!($($code,)* $($key = const $value,)*)
        }
    };
}

function! {
    /// `int clock_gettime(int clock, struct timespec *)`. The clocks of the day are 0, 5, 8 and 11,
    /// those of the time since the start 1, 4, 6, 7 and 9; all others need the system call.
    clock_gettime:
    "cmp edi, 11",
    "ja 90f",
    "mov eax, 0xbf3",
    "bt eax, edi",
    "jnc 90f",
    read_clock!("mov ecx, 0x921", "bt ecx, edi", "jnc 2f", "add rax, [r8 + {day}]", "2:"),
    "mov [rsi], rax",
    "mov [rsi + 8], rdx",
    "xor eax, eax",
    "ret",
    "90:",
    "mov eax, 228",
    "syscall",
    "ret";
    tries = TRIES, sequence = SEQUENCE, mode = MODE, base = BASE, shift = SHIFT, multiplier = MULTIPLIER,
    day = DAY
}

function! {
    /// `int gettimeofday(struct timeval *, struct timezone *)`.
    gettimeofday:
    "test rdi, rdi",
    "jz 2f",
    read_clock!("add rax, [r8 + {day}]"),
    "mov [rdi], rax",
    "mov eax, edx",
    "xor edx, edx",
    "mov ecx, 1000",
    "div ecx",
    "mov [rdi + 8], rax",
    "2:",
    "test rsi, rsi",
    "jz 3f",
    "mov qword ptr [rsi], 0",
    "3:",
    "xor eax, eax",
    "ret",
    "90:",
    "mov eax, 96",
    "syscall",
    "ret";
    tries = TRIES, sequence = SEQUENCE, mode = MODE, base = BASE, shift = SHIFT, multiplier = MULTIPLIER,
    day = DAY
}

function! {
    /// `time_t time(time_t *)`.
    time:
    read_clock!("add rax, [r8 + {day}]"),
    "test rdi, rdi",
    "jz 2f",
    "mov [rdi], rax",
    "2:",
    "ret",
    "90:",
    "mov eax, 201",
    "syscall",
    "ret";
    tries = TRIES, sequence = SEQUENCE, mode = MODE, base = BASE, shift = SHIFT, multiplier = MULTIPLIER,
    day = DAY
}

function! {
    /// `int clock_getres(int clock, struct timespec *)`: a nanosecond for each clock that needs no
    /// system call.
    clock_getres:
    "cmp edi, 11",
    "ja 90f",
    "mov eax, {clocks}",
    "bt eax, edi",
    "jnc 90f",
    "test rsi, rsi",
    "jz 2f",
    "mov qword ptr [rsi], 0",
    "mov qword ptr [rsi + 8], 1",
    "2:",
    "xor eax, eax",
    "ret",
    "90:",
    "mov eax, 229",
    "syscall",
    "ret";
    clocks = 0xbf3
}

function! {
    /// `int getcpu(unsigned *processor, unsigned *node)`.
    getcpu:
    "mov eax, gs:[{number}]",
    "test rdi, rdi",
    "jz 2f",
    "mov [rdi], eax",
    "2:",
    "xor eax, eax",
    "test rsi, rsi",
    "jz 3f",
    "mov [rsi], eax",
    "3:",
    "ret";
    number = NUMBER
}
