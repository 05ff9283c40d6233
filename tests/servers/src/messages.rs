//! A driver of devices that interrupt by messages, and its client. One is QEMU's device for
//! teaching (`edu`, one message). The other is a network card (`e1000e`, a table of five messages),
//! which is only made to interrupt.

use crate::raw::{self, is_refused};
use crate::report::Report;
use interfaces::root::id as request;
use l4::ipc::{self, Message};
use l4::utcb;
use l4::x2::{IpcErrorKind, ThreadId, Time};
use rt::root::pci::{self, Function, Region};
use rt::root::{Status, device, names, servers};

/// Request: lets the device compute the factorial of the argument. The answer is the result after
/// the interrupt has come.
const FACTORIAL: u64 = 1;
/// Request: lets the card raise two causes. The answer says whether each came by its own message.
const CAUSES: u64 = 2;
/// Request: sends wrong requests to root, and requests about registers. The answer says whether
/// root refused them.
const REFUSALS: u64 = 3;
const REGISTERS: u64 = 4;
/// Request: attaches and detaches the card's messages.
const AGAIN: u64 = 5;
/// Request: the driver faults.
const FAULT: u64 = 6;

/// The addresses at which the driver maps registers.
const EDU: u64 = 0x4000_0000;
const CARD: u64 = 0x4010_0000;
const ELSEWHERE: u64 = 0x5000_0000;
/// How often root starts a server again.
const RESTARTS: u64 = 5;
/// A time that is long enough to show that a message does not come.
const SHORT: Time = Time::period(20_000);

/// Registers of the first device: the argument, the status with the bit that enables its interrupt,
/// and the register that acknowledges the interrupt.
const NUMBER: u64 = EDU + 8;
const STATUS: u64 = EDU + 0x20;
const INTERRUPTS: u32 = 0x80;
const CAUSE: u64 = EDU + 0x24;
const ACKNOWLEDGE: u64 = EDU + 0x64;

/// Registers of the card: pending causes, causes to raise, enabled causes, and the message of each
/// cause.
const ICR: u64 = CARD + 0xc0;
const ICS: u64 = CARD + 0xc8;
const IMS: u64 = CARD + 0xd0;
const IVAR: u64 = CARD + 0xe4;
/// Two causes. The first raises message 3, the second message 1.
const RECEIVED: u32 = 1 << 20;
const SENT: u32 = 1 << 22;
const MESSAGE_OF_CAUSES: u32 = (8 | 3) | (8 | 1) << 8;

fn read(register: u64) -> u32 {
    // SAFETY: root has mapped the device's registers there; reading them does not affect Rust's
    // memory.
    unsafe { (register as *const u32).read_volatile() }
}

fn write(register: u64, value: u32) {
    // SAFETY: root has mapped the device's registers there; the values do not make the device write
    // memory.
    unsafe { (register as *mut u32).write_volatile(value) }
}

/// Maps `size` bytes of the memory to which a base address register of the function leads.
fn map(function: Function, number: u64, offset: u64, size: u64, address: u64) -> Result<(), Status> {
    match function.region(number)? {
        Region::Memory { base, .. } => device::map_device(base + offset, size, address),
        Region::Ports { .. } => Err(Status::Unsupported),
    }
}

struct Driver {
    edu: Function,
    card: Function,
    done: ThreadId,
    received: ThreadId,
    sent: ThreadId,
}

/// The main function of the driver.
pub(crate) fn drive() -> ! {
    let me = utcb::my_global_id();
    let edu = pci::function(0).expect("the machine has the device");
    let card = pci::function(1).expect("the machine has the card");
    map(edu, 0, 0, 4096, EDU).expect("its registers are there");
    map(card, 0, 0, 4096, CARD).expect("its registers are there");
    let attach = |function: Function, entry| function.attach(entry, me).expect("nobody has the message");
    let driver = Driver { edu, card, done: attach(edu, 0), received: attach(card, 3), sent: attach(card, 1) };
    names::register(me).expect("it is a thread of this server");
    let mut received = ipc::wait();
    loop {
        let Ok(message) = received else {
            received = ipc::wait();
            continue;
        };
        if [driver.done, driver.received, driver.sent].contains(&message.from) {
            received = ipc::reply_wait(message.from, Message::new(0));
            continue;
        }
        let argument = if message.tag.untyped() > 0 { message.word(0) } else { 0 };
        let answer = match message.tag.label() {
            FACTORIAL => driver.factorial(argument),
            CAUSES => driver.causes().into(),
            REFUSALS => driver.refusals().into(),
            REGISTERS => driver.registers(),
            AGAIN => driver.again().into(),
            _ => {
                // The card delays messages by a timer. The emulator fails if messages are switched
                // off before this timer has run out.
                ipc::sleep(SHORT);
                crate::fault()
            }
        };
        received = ipc::reply_wait(message.from, Message::with_words(0, &[answer]));
    }
}

/// Waits for an interrupt until `was_there` is true; that function also acknowledges the interrupt
/// at the device. The card may repeat an interrupt.
fn expect(interrupt: ThreadId, was_there: impl Fn() -> bool) -> bool {
    loop {
        let Ok(message) = ipc::receive(interrupt) else { return false };
        let was_there = was_there();
        if ipc::send(interrupt, Message::new(0)).is_err() || was_there {
            return was_there && message.from == interrupt;
        }
    }
}

impl Driver {
    fn factorial(&self, number: u64) -> u64 {
        write(STATUS, INTERRUPTS);
        write(NUMBER, number as u32);
        let came = expect(self.done, || {
            let cause = read(CAUSE);
            write(ACKNOWLEDGE, cause);
            cause != 0
        });
        if came { read(NUMBER).into() } else { 0 }
    }

    fn causes(&self) -> bool {
        write(IVAR, MESSAGE_OF_CAUSES);
        write(IMS, RECEIVED | SENT);
        [(RECEIVED, self.received), (SENT, self.sent), (RECEIVED, self.received)].iter().all(
            |&(cause, interrupt)| {
                write(ICS, cause);
                expect(interrupt, || {
                    let causes = read(ICR);
                    write(ICR, cause);
                    causes & cause != 0
                })
            },
        )
    }

    fn registers(&self) -> u64 {
        let Driver { edu, card, .. } = *self;
        let Ok(Region::Memory { base, size }) = edu.region(0) else { return 0 };
        let ports = matches!(card.region(2), Ok(Region::Ports { count: 32, .. }));
        // The memory after these registers may belong to the other card.
        let outside = [(base + size - 4096, 8192), (0xfed0_0000, 4096), (0, 4096), (base + 1, 4095)];
        let outside = outside.iter().all(|&(address, size)| {
            let refused = device::map_device(address, size, ELSEWHERE);
            matches!(refused, Err(Status::NotFound | Status::InvalidArgument))
        });
        // The table of messages is at the beginning of the fourth region of registers; the driver
        // may map the third page of that region.
        let table = map(card, 3, 0, 4096, ELSEWHERE) == Err(Status::NotFound)
            && map(card, 3, 0, 16 << 10, ELSEWHERE) == Err(Status::NotFound)
            && map(card, 3, 0x2000, 4096, ELSEWHERE).is_ok();
        // SAFETY: there are no references to the registers.
        let unmapped = unsafe { rt::root::memory::free(ELSEWHERE, 4096) }.is_ok();
        let counts = (edu.messages, card.messages) == (1, 5) && edu.region(1) == Err(Status::NotFound);
        let none = edu.region(6) == Err(Status::NotFound);
        [ports, outside, table, unmapped, counts, none]
            .iter()
            .rev()
            .fold(0, |bits, &bit| bits << 1 | u64::from(bit))
    }

    fn refusals(&self) -> bool {
        let me = utcb::my_global_id();
        let not_there = [self.edu.attach(1, me), self.card.attach(5, me), self.card.attach(u64::MAX, me)];
        let not_there = not_there.iter().all(|&result| result == Err(Status::NotFound));
        let twice = [self.edu.attach(0, me), self.card.attach(3, me)];
        let twice = twice.iter().all(|&result| result == Err(Status::InUse));
        let strangers = [ThreadId::NIL, utcb::pager(), self.done];
        let strangers =
            strangers.iter().all(|&thread| self.card.attach(0, thread) == Err(Status::InvalidArgument));
        // Three of the kernel's four message interrupts are in use.
        let fourth = self.card.attach(0, me);
        let fifth = self.card.attach(2, me) == Err(Status::NoMemory);
        let detached = fourth.and_then(pci::detach) == Ok(())
            && fourth.and_then(pci::detach) == Err(Status::InvalidArgument)
            && pci::detach(ThreadId::interrupt(0)) == Err(Status::InvalidArgument);
        // There is only one such device.
        let second = pci::function(2) == Err(Status::NotFound) && pci::function(3) == Err(Status::NotFound);
        not_there && twice && strangers && fifth && detached && second
    }

    fn again(&self) -> bool {
        let me = utcb::my_global_id();
        (0..20).all(|_| {
            pci::detach(self.done).is_ok() && {
                // A wrong message would arrive now, or when the interrupt is attached again.
                write(STATUS, INTERRUPTS);
                write(NUMBER, 3);
                let none = ipc::receive_timeout(self.done, SHORT).is_err();
                while read(STATUS) & 1 != 0 || read(CAUSE) == 0 {
                    core::hint::spin_loop();
                }
                write(ACKNOWLEDGE, read(CAUSE));
                none && self.edu.attach(0, me) == Ok(self.done) && self.factorial(5) == 120
            }
        })
    }
}

fn ask(driver: ThreadId, label: u64, argument: u64) -> Result<u64, IpcErrorKind> {
    let answer = ipc::call(driver, Message::with_words(label, &[argument])).map_err(|error| error.kind)?;
    Ok(answer.word(0))
}

/// The main function of the client.
pub(crate) fn test() -> ! {
    let mut report = Report::plan(8);
    let first = names::lookup_wait("driver").unwrap_or(ThreadId::NIL);
    report.test(
        ask(first, REGISTERS, 0) == Ok(0x3f),
        "MESS0001",
        "a driver has its functions' registers, and not the table of messages",
    );
    let works = |driver| ask(driver, FACTORIAL, 10) == Ok(3_628_800) && ask(driver, CAUSES, 0) == Ok(1);
    report.test(
        ask(first, FACTORIAL, 7) == Ok(5040),
        "MESS0002",
        "a device with one message interrupts by it",
    );
    report.test(
        ask(first, CAUSES, 0) == Ok(1),
        "MESS0003",
        "a device with a table of messages raises each where it is to go",
    );
    report.test(
        ask(first, REFUSALS, 0) == Ok(1),
        "MESS0004",
        "wrong requests are refused, and more than the kernel has",
    );
    let me = utcb::my_global_id().raw();
    let none = pci::function(0) == Err(Status::NotFound)
        && is_refused(raw::call(request::ROOT_MESSAGE_ATTACH, &[0, 0, me]), Status::NotFound)
        && is_refused(raw::call(request::ROOT_PCI_REGION, &[0, 0]), Status::NotFound);
    report.test(none, "MESS0005", "who has no function gets nothing");
    report.test(
        ask(first, AGAIN, 0) == Ok(1),
        "MESS0006",
        "what comes while a message is detached is lost, and the next one is not",
    );
    let ended = ask(first, FAULT, 0) == Err(IpcErrorKind::NonExistingPartner);
    let second = names::lookup_wait("driver").unwrap_or(ThreadId::NIL);
    report.test(
        ended && second != first && works(second),
        "MESS0007",
        "a driver that is started again has its messages again",
    );
    let rest = (1..RESTARTS).all(|_| {
        let ended = names::lookup_wait("driver").map(|driver| ask(driver, FAULT, 0).is_err());
        ended == Ok(true) && names::lookup_wait("driver").is_ok_and(works)
    });
    let last = names::lookup("driver").map(|driver| ask(driver, FAULT, 0).is_err());
    let given_up = last == Ok(true)
        && names::lookup_wait("driver") == Err(Status::NotFound)
        && servers::describe(0).is_ok_and(|driver| !driver.runs && driver.restarts == RESTARTS);
    report.test(rest && given_up, "MESS0008", "as often as it ends, no interrupt is lost to it");
    l4::start::halt()
}
