//! A driver whose device reads and writes memory that the driver may not use, another server that
//! tells where memory is, and the client of both. The device is QEMU's for teaching (`edu`), which
//! copies between its own buffer and any address.

use crate::report::Report;
use l4::ipc::{self, Message};
use l4::utcb;
use l4::x2::protocol::INTERRUPT_TAG;
use l4::x2::{IpcErrorKind, ThreadId, Time};
use rt::root::pci::{self, Function, Region};
use rt::root::pool::{self, Pool};
use rt::root::{device, memory, names};

/// Requests to the driver. The device writes its own memory and reads it back; the answer says
/// whether it did.
const OWN: u64 = 1;
/// The device writes a word to a physical address: the address, the word.
const WRITE: u64 = 2;
/// The device reads the word at a physical address. The answer is what it has got.
const READ: u64 = 3;
/// Requests to both: where the memory of the pool begins that was made for this server.
const PLACE: u64 = 4;
/// The server faults.
const FAULT: u64 = 5;
/// Lets the device reach memory again, after the end of a pool has stopped it.
const AGAIN: u64 = 6;
/// The device interrupts its driver. The answer says whether that gets the message.
const RAISE: u64 = 8;
/// Request to the other server: whether its own device's interrupt has come.
const RAISED_OTHER: u64 = 9;
/// Request to the other server: makes a pool for the driver. The answer is its number.
const LEND: u64 = 7;

const REGISTERS: u64 = 0x4000_0000;
const DMA: u64 = 0x4100_0000;
const VICTIM: u64 = 0x4200_0000;
const LENT: u64 = 0x4300_0000;
const PAGE: u64 = 4096;
/// Registers of the device: the one that raises an interrupt, and the one that clears it.
const RAISED: u64 = 0x60;
const CLEARED: u64 = 0x64;
/// Registers of the device: source, destination and number of the bytes to be copied, and the
/// command.
const SOURCE: u64 = 0x80;
const DESTINATION: u64 = 0x88;
const COUNT: u64 = 0x90;
const COMMAND: u64 = 0x98;
const START: u64 = 1;
const TO_MEMORY: u64 = 2;
/// The address, for the device, of its buffer.
const BUFFER: u64 = 0x4_0000;
/// A tenth of the time that the device takes.
const SHORT: Time = Time::period(10_000);
/// A timeout that ends only if an interrupt never comes.
const LONG: Time = Time::period(20_000_000);
/// Where messages to the first processor go, and the vectors that they can have.
const MESSAGES: u64 = 0xfee0_0000;
const VECTORS: core::ops::Range<u64> = 34..239;
/// What is in memory, and what the device is to write there.
const SECRET: u64 = 0x5ec2_e7b1_7e5e_0001;
const PATTERN: u64 = 0xbad0_bad0_bad0_0002;
/// How often the driver is ended in a test.
const ENDS: u32 = 3;

fn read(address: u64) -> u64 {
    // SAFETY: root has mapped registers or memory there, to which there are no references.
    unsafe { (address as *const u64).read_volatile() }
}

fn write(address: u64, value: u64) {
    // SAFETY: as for `read`. The device writes only memory to which there are no references, and
    // that of others only if the system fails the test.
    unsafe { (address as *mut u64).write_volatile(value) }
}

fn write_half(address: u64, value: u32) {
    // SAFETY: as for `write`.
    unsafe { (address as *mut u32).write_volatile(value) }
}

/// Serves requests for ever: `answer` has the answer to a label and two words.
fn serve(mut answer: impl FnMut(u64, [u64; 2]) -> u64) -> ! {
    let mut received = ipc::wait();
    loop {
        received = match received {
            Ok(message) if message.from.is_global() => {
                let words = [0, 1].map(|at| if at < message.tag.untyped() { message.word(at) } else { 0 });
                let word = answer(message.tag.label(), words);
                ipc::reply_wait(message.from, Message::with_words(0, &[word]))
            }
            _ => ipc::wait(),
        };
    }
}

/// The physical address of a pool whose number is a word of a message.
fn place(number: u64) -> u64 {
    pool::find(Pool::from_word(number), 0).map_or(0, |(physical, _)| physical)
}

/// The main function of the driver.
pub(crate) fn drive() -> ! {
    let me = utcb::my_global_id();
    let edu = pci::function(0).expect("the machine has the device");
    let Ok(Region::Memory { base, .. }) = edu.region(0) else { panic!("its registers are in memory") };
    device::map_device(base, PAGE, REGISTERS).expect("its registers are there");
    let physical = memory::allocate_dma(DMA, PAGE, 28).expect("the configuration gives it");
    let mut interrupt = edu.attach(0, me).expect("it has a message");
    names::register(me).expect("it is a thread of this server");
    serve(|label, [first, second]| match label {
        OWN => {
            write(DMA, SECRET);
            let got = read_by_device(physical, physical + 64);
            (got == SECRET).into()
        }
        WRITE => {
            write(DMA, second);
            copy(physical, BUFFER, START);
            copy(BUFFER, first, START | TO_MEMORY);
            1
        }
        READ => read_by_device(first, physical + 64),
        PLACE => place(first),
        AGAIN => {
            let again = pci::detach(interrupt).and_then(|()| attach_again(edu, &mut interrupt));
            again.is_ok().into()
        }
        RAISE => interrupts(interrupt).into(),
        // One that nothing waits for is answered like a request.
        label if label == INTERRUPT_TAG.label() => 0,
        _ => crate::fault(),
    })
}

fn attach_again(edu: Function, interrupt: &mut ThreadId) -> Result<(), rt::root::Status> {
    *interrupt = edu.attach(0, utcb::my_global_id())?;
    Ok(())
}

/// Whether the device's interrupts are messages to this thread.
fn interrupts(interrupt: ThreadId) -> bool {
    (0..3).all(|_| {
        write_half(REGISTERS + RAISED, 1);
        let comes = ipc::receive_timeout(interrupt, LONG).is_ok();
        write_half(REGISTERS + CLEARED, 1);
        comes && ipc::send(interrupt, Message::new(0)).is_ok()
    })
}

/// Has the device read a word at a physical address, and write what it has got to memory of its
/// driver, whose physical address is `to` and which is at `DMA + 64`.
fn read_by_device(from: u64, to: u64) -> u64 {
    write(DMA + 64, 0);
    copy(from, BUFFER, START);
    copy(BUFFER, to, START | TO_MEMORY);
    read(DMA + 64)
}

/// Has the device copy a word.
fn copy(source: u64, destination: u64, command: u64) {
    for (register, value) in [(SOURCE, source), (DESTINATION, destination), (COUNT, 8), (COMMAND, command)] {
        write(REGISTERS + register, value);
    }
    while read(REGISTERS + COMMAND) & START != 0 {
        ipc::sleep(SHORT);
    }
}

/// The main function of the server that tells where memory is, and lends its own.
pub(crate) fn tell() -> ! {
    let me = utcb::my_global_id();
    let _ = pci::function(0).map(|device| device.attach(0, me));
    let mut is_raised = false;
    names::register(me).expect("it is a thread of this server");
    serve(|label, [first, _]| match label {
        PLACE => place(first),
        RAISED_OTHER => is_raised.into(),
        label if label == INTERRUPT_TAG.label() => {
            is_raised = true;
            0
        }
        LEND => {
            memory::allocate(LENT, PAGE).expect("it may have a page");
            pool::create(LENT, PAGE, ThreadId::from_raw(first)).map_or(0, Pool::word)
        }
        _ => crate::fault(),
    })
}

fn ask(server: &str, label: u64, words: [u64; 2]) -> Result<u64, IpcErrorKind> {
    let server = names::lookup_wait(server).map_err(|_| IpcErrorKind::NonExistingPartner)?;
    let answer = ipc::call(server, Message::with_words(label, &words)).map_err(|error| error.kind)?;
    Ok(answer.word(0))
}

/// Has a page of this server, with a secret in it, and returns its physical address.
fn victim() -> u64 {
    memory::allocate(VICTIM, PAGE).expect("it may have a page");
    write(VICTIM, SECRET);
    let teller = names::lookup_wait("teller").expect("it is started");
    let told = pool::create(VICTIM, PAGE, teller).expect("the teller is a server");
    ask("teller", PLACE, [told.word(), 0]).expect("it answers")
}

/// The main function of the client, on a machine with an IOMMU.
pub(crate) fn test() -> ! {
    let mut report = Report::plan(11);
    let victim = victim();
    let works = || ask("driver", OWN, [0; 2]) == Ok(1);
    let is_safe = || {
        let got = ask("driver", READ, [victim, 0]);
        let written = ask("driver", WRITE, [victim, PATTERN]) == Ok(1);
        written && read(VICTIM) == SECRET && got.is_ok_and(|word| word != SECRET)
    };
    report.test(works(), "IOM0001", "a device reads and writes the memory of its driver");
    ask("driver", WRITE, [victim, PATTERN]).expect("the driver answers");
    report.test(read(VICTIM) == SECRET, "IOM0002", "it does not write the memory of another server");
    write(VICTIM, SECRET);
    let got = ask("driver", READ, [victim, 0]);
    report.test(got.is_ok_and(|word| word != SECRET), "IOM0003", "nor does it read that");
    report.test(works(), "IOM0004", "after that it works as before");
    memory::allocate(LENT, PAGE).expect("it may have a page");
    write(LENT, SECRET);
    let driver = names::lookup_wait("driver").expect("it is started");
    let own = pool::create(LENT, PAGE, driver).map_or(0, Pool::word);
    let at = ask("driver", PLACE, [own, 0]).unwrap_or(0);
    let got = ask("driver", READ, [at, 0]) == Ok(SECRET);
    let written = ask("driver", WRITE, [at, PATTERN]) == Ok(1) && read(LENT) == PATTERN;
    report.test(got && written, "IOM0005", "it reads and writes the pools of its clients");
    let lent = ask("teller", LEND, [driver.raw(), 0]).unwrap_or(0);
    let at_lent = ask("driver", PLACE, [lent, 0]).unwrap_or(0);
    let works_there = at_lent != 0
        && ask("driver", WRITE, [at_lent, PATTERN]) == Ok(1)
        && ask("driver", READ, [at_lent, 0]) == Ok(PATTERN);
    let ended = ask("teller", FAULT, [0; 2]).is_err() && names::lookup_wait("teller").is_err();
    let again = ask("driver", AGAIN, [0; 2]) == Ok(1);
    let own_stays = ask("driver", READ, [at, 0]) == Ok(PATTERN);
    let got = ask("driver", READ, [at_lent, 0]);
    let lost = got.is_ok_and(|word| word != PATTERN);
    report.test(
        works_there && ended && again && lost,
        "IOM0006",
        "the pool of a server that has ended is none",
    );
    report.test(own_stays, "IOM0007", "and those of others are");
    let raise = || ask("driver", RAISE, [0; 2]) == Ok(1);
    report.test(raise(), "IOM0015", "the interrupts of the device are messages to its driver");
    let restarted = (0..ENDS).all(|_| ask("driver", FAULT, [0; 2]).is_err() && works() && is_safe());
    report.test(restarted, "IOM0008", "the same holds for each driver that is started again");
    let storm = (0..20).all(|_| ask("driver", WRITE, [victim, PATTERN]) == Ok(1));
    report.test(storm && read(VICTIM) == SECRET && works(), "IOM0009", "a device that goes on stops nothing");
    report.test(raise(), "IOM0016", "its driver, which was started again, has its interrupts");
    l4::start::halt()
}

/// The main function of the client, on a machine without an IOMMU.
pub(crate) fn test_without() -> ! {
    let mut report = Report::plan(3);
    let victim = victim();
    let got = ask("driver", READ, [victim, 0]);
    report.test(got == Ok(SECRET), "IOM0020", "without an IOMMU a device reads any memory");
    let written = ask("driver", WRITE, [victim, PATTERN]) == Ok(1) && read(VICTIM) == PATTERN;
    report.test(written, "IOM0021", "and writes any");
    let raises = |vector| {
        ask("driver", WRITE, [MESSAGES, vector]) == Ok(1) && ask("teller", RAISED_OTHER, [0; 2]) == Ok(1)
    };
    report.test(VECTORS.into_iter().any(raises), "IOM0023", "and raises the interrupt of another server");
    l4::start::halt()
}
