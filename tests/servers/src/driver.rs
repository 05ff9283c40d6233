//! A driver that ends in the middle of its work, and its client. The devices are a serial port that
//! sends back what it is sent (ports and an interrupt) and the emulator's configuration device
//! (direct memory access).

use crate::report::Report;
use console::uart::{Line, Registers, Uart};
use l4::ipc::{self, Message};
use l4::x2::{IpcErrorKind, ThreadId};
use l4::{port, utcb};
use rt::root::{Status, device, memory, names, servers, share};

/// Request: sends a byte through the port; the answer is what came back.
const ECHO: u64 = 1;
/// Request: lets the device write. The answer is what was in memory before, what the device wrote,
/// and the physical address.
const SIGNATURE: u64 = 2;
/// Request: maps a share and writes a word there.
const SHARE: u64 = 3;
/// Request: the driver faults.
const FAULT: u64 = 4;
/// Request: sends wrong requests for DMA memory to root. The answer says whether they were refused.
const REFUSALS: u64 = 5;

/// The addresses at which the driver maps memory for the device, and the client's share.
const DMA: u64 = 0x4000_0000;
const AREA: u64 = 0x5000_0000;
/// Bits of a physical address.
const BITS: u32 = 32;
/// How often root starts a server again.
const RESTARTS: u64 = 5;

/// The I/O port of the configuration device that takes the address of a command (high half, then
/// low half), and the bits of a command.
const COMMAND: u16 = 0x514;
const READ_AND_SELECT: u32 = 2 | 8;
/// Item 0 of the configuration device.
const SIGNATURE_BYTES: [u8; 4] = *b"QEMU";
/// The offset of the device's buffer in the DMA memory.
const BUFFER: u64 = 64;

struct Ports(u16);

impl Registers for Ports {
    fn read(&mut self, register: u8) -> u8 {
        // SAFETY: the registers of a serial port do not affect memory.
        unsafe { port::read8(self.0 + u16::from(register)) }
    }

    fn write(&mut self, register: u8, value: u8) {
        // SAFETY: the registers of a serial port do not affect memory.
        unsafe { port::write8(self.0 + u16::from(register), value) }
    }
}

/// The byte that the port has received.
#[derive(Default)]
struct Back(Option<u8>);

impl Line for Back {
    fn can_receive(&mut self) -> bool {
        true
    }

    fn receive(&mut self, byte: u8) {
        self.0 = Some(byte);
    }

    fn send(&mut self, _most: usize, _send: &mut dyn FnMut(u8)) -> usize {
        0
    }

    fn has_more(&self) -> bool {
        false
    }
}

/// The main function of the driver.
pub(crate) fn drive() -> ! {
    let me = utcb::my_global_id();
    let ports = device::ports(0).expect("the configuration gives it ports");
    let line = device::interrupt(0).expect("the configuration gives it an interrupt");
    let first = *ports.start();
    let mut uart = Uart::new(Ports(first), true).expect("there is a serial port");
    device::attach_interrupt(line, me).expect("the line is free");
    let physical =
        memory::allocate_dma(DMA, 4096, BITS).expect("the configuration gives it memory for devices");
    names::register(me).expect("it is a thread of this server");
    let mut received = ipc::wait();
    loop {
        let Ok(message) = received else {
            received = ipc::wait();
            continue;
        };
        let argument = if message.tag.untyped() > 0 { message.word(0) } else { 0 };
        if message.from == ThreadId::interrupt(line) {
            // This is an interrupt for a byte that has been read already.
            uart.serve(&mut Back::default());
            received = ipc::reply_wait(message.from, Message::new(0));
            continue;
        }
        let answer = match message.tag.label() {
            ECHO => [echo(&mut uart, first, ThreadId::interrupt(line), argument as u8).into(), 0, 0],
            SIGNATURE => signature(physical),
            SHARE => [write_to_share(argument).into(), 0, 0],
            REFUSALS => refusals(),
            _ => crate::fault(),
        };
        received = ipc::reply_wait(message.from, Message::with_words(0, &answer));
    }
}

/// Sends a byte and waits for the interrupt of its reception; the port is not polled before.
fn echo(uart: &mut Uart<Ports>, port: u16, interrupt: ThreadId, byte: u8) -> u8 {
    Ports(port).write(0, byte);
    let mut line = Back::default();
    loop {
        let _ = ipc::receive(interrupt);
        uart.serve(&mut line);
        let _ = ipc::reply(interrupt, Message::new(0));
        uart.serve(&mut line);
        if let Some(back) = line.0 {
            return back;
        }
    }
}

fn word(address: u64) -> *mut u32 {
    address as *mut u32
}

/// Lets the device write its signature. Returns the word in memory before and after, and the
/// physical address.
fn signature(physical: u64) -> [u64; 3] {
    let target = physical + BUFFER;
    let command = [READ_AND_SELECT, SIGNATURE_BYTES.len() as u32, (target >> 32) as u32, target as u32];
    // SAFETY: root has mapped the memory only for this program and its device, and there are no
    // references to it. The device writes only where it is told to, within that memory.
    unsafe {
        let before = word(DMA + BUFFER).read_volatile();
        for (index, part) in (0u64..).zip(command) {
            word(DMA + 4 * index).write_volatile(part.to_be());
        }
        port::write32(COMMAND, ((physical >> 32) as u32).to_be());
        port::write32(COMMAND + 4, (physical as u32).to_be());
        while u32::from_be(word(DMA).read_volatile()) & !1 != 0 {
            core::hint::spin_loop();
        }
        [before.into(), word(DMA + BUFFER).read_volatile().into(), physical]
    }
}

fn write_to_share(share: u64) -> bool {
    let mapped = share::map(share::Share::from_word(share), AREA).is_ok();
    if mapped {
        // SAFETY: root has just mapped the memory there. The client reads it only after this
        // request was answered.
        unsafe { word(AREA).write_volatile(77) };
    }
    mapped
}

/// Whether wrong requests for DMA memory are refused, and requests beyond the quota, and whether
/// freed memory can be allocated again.
fn refusals() -> [u64; 3] {
    let far = DMA + 0x10_0000;
    let wrong =
        [(far, 4097, 32), (far, 2048, 32), (far, 4096, 11), (far, 4096, 65), (DMA, 4096, 32), (1, 4096, 32)];
    let refused = wrong.iter().all(|&(address, size, bits)| {
        memory::allocate_dma(address, size, bits) == Err(Status::InvalidArgument)
    });
    let low = memory::allocate_dma(far, 4096, 13) == Err(Status::NoMemory);
    let second = memory::allocate_dma(far, 4096, BITS);
    let third = memory::allocate_dma(far + 4096, 4096, BITS) == Err(Status::QuotaExceeded);
    // SAFETY: there are no references to the memory.
    let freed = unsafe { memory::free(far, 4096) };
    let again = memory::allocate_dma(far, 4096, BITS);
    [refused.into(), (low && third).into(), (freed == Ok(()) && second.is_ok() && again == second).into()]
}

fn ask(driver: ThreadId, label: u64, argument: u64) -> Result<[u64; 3], IpcErrorKind> {
    let answer = ipc::call(driver, Message::with_words(label, &[argument])).map_err(|error| error.kind)?;
    Ok([answer.word(0), answer.word(1), answer.word(2)])
}

/// The main function of the client.
pub(crate) fn test() -> ! {
    let mut report = Report::plan(12);
    let first = names::lookup_wait("driver").unwrap_or(ThreadId::NIL);
    let signature = u64::from(u32::from_le_bytes(SIGNATURE_BYTES));
    let works = |driver, byte: u64| ask(driver, ECHO, byte) == Ok([byte, 0, 0]);
    report.test(works(first, 0x5a), "DRIV0001", "a driver has its ports and its interrupt");
    let written = ask(first, SIGNATURE, 0);
    let physical = written.map_or(0, |[.., physical]| physical);
    report.test(
        written == Ok([0, signature, physical]) && physical != 0 && physical.is_multiple_of(4096),
        "DRIV0002",
        "a device writes to memory from root, where root says that it is",
    );
    let none = memory::allocate_dma(AREA, 4096, 32) == Err(Status::NotFound);
    report.test(
        none && ask(first, REFUSALS, 0) == Ok([1; 3]),
        "DRIV0003",
        "wrong and too large requests for it are refused, and what is given back is there again",
    );
    let shared = share::create(AREA, 4096, first);
    let share = shared.map_or(0, share::Share::word);
    report.test(
        ask(first, SHARE, share) == Ok([1, 0, 0]),
        "DRIV0004",
        "a driver and its client share memory",
    );
    let used = servers::describe(0).map(|driver| driver.used);
    report.test(
        ask(first, FAULT, 0) == Err(IpcErrorKind::NonExistingPartner),
        "DRIV0005",
        "a client whose driver faults gets an error",
    );
    let end = servers::describe(0).map(|driver| driver.end);
    report.test(
        matches!(end, Ok(Some(servers::End::Fault { address: 0x1234_5000, ip })) if ip != 0)
            && servers::describe(1).is_ok_and(|client| client.end.is_none()),
        "DRIV0012",
        "and can learn why it has ended",
    );
    report.test(
        ask(first, ECHO, 1) == Err(IpcErrorKind::NonExistingPartner),
        "DRIV0006",
        "and so does the next request to it",
    );
    let second = names::lookup_wait("driver").unwrap_or(ThreadId::NIL);
    report.test(
        second != first && works(second, 0xa5),
        "DRIV0007",
        "it is started again, with its ports and its interrupt, under the same name",
    );
    report.test(
        ask(second, SIGNATURE, 0) == Ok([0, signature, physical]),
        "DRIV0008",
        "with the same memory for devices, zeroed",
    );
    let now = servers::describe(0);
    let same = now.as_ref().is_ok_and(|now| used == Ok(now.used) && now.restarts == 1 && now.runs);
    report.test(same, "DRIV0009", "and with as much memory as before");
    // SAFETY: root has mapped the memory there, and the driver that wrote to it has ended.
    let kept = shared.is_ok() && unsafe { word(AREA).read_volatile() } == 77;
    report.test(kept, "DRIV0010", "what it shared with its client is still there");
    let rest = (1..RESTARTS).all(|_| end_and_find_again(&works));
    let last = names::lookup("driver").map(|driver| ask(driver, FAULT, 0));
    let given_up = last == Ok(Err(IpcErrorKind::NonExistingPartner))
        && names::lookup_wait("driver") == Err(Status::NotFound)
        && servers::describe(0).is_ok_and(|driver| !driver.runs && driver.restarts == RESTARTS);
    report.test(rest && given_up, "DRIV0011", "a driver that faults again and again is given up");
    l4::start::halt()
}

fn end_and_find_again(works: &impl Fn(ThreadId, u64) -> bool) -> bool {
    let ended = names::lookup_wait("driver").map(|driver| ask(driver, FAULT, 0).is_err());
    ended == Ok(true) && names::lookup_wait("driver").is_ok_and(|driver| works(driver, 7))
}
