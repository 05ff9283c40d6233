//! The supervisor: makes attackers, serves their page faults and exceptions, deletes them at random
//! moments and makes them again.

use crate::layout::{self, ATTACKERS, NUMBERS};
use crate::random::Random;
use crate::{attacker, controller};
use core::ops::Range;
use l4::ipc::{self, Message, Received};
use l4::syscall::ExchangedRegisters;
use l4::thread::{self, ThreadControl};
use l4::{extension, kip, space};
use x2::control::{ExchangeControl, UNCHANGED};
use x2::extension::{MapAnswer, MapItem as ControlItem, MapOperation};
use x2::protocol;
use x2::{ErrorCode, Fpage, MapItem, MessageTag, Region, Rights, ThreadId, Time, Timeouts};

/// How many spaces the supervisor makes. The first owns the last.
const MADE_SPACES: u64 = 3;
const MADE: u64 = MADE_SPACES * ATTACKERS;
/// The first thread number that the supervisor does not use: the controller's.
pub(crate) const FREE_NUMBERS: u64 = MADE + MADE_SPACES;
/// The supervisor checks the attackers after this number of messages, or after this time.
const MESSAGES: u32 = 256;
const LOOK: Time = Time::period(1000);
/// After how many checks without a call an attacker is deleted, and after how many its whole space
/// is made again.
const PATIENCE: u32 = 6;
const SPACE_PATIENCE: u32 = 10;
/// The controller makes one of so many calls.
const CONTROLLERS: u64 = 8;
/// How many page faults are kept to be answered after a later check.
const HELD: usize = 8;
/// The priority of attackers, which is below those of the controller and the heartbeat.
const PRIORITY: u64 = 100;

pub(crate) struct Supervisor<'a> {
    random: Random<'a>,
    processors: u64,
    /// How many calls each record had counted at the last check.
    last: [u64; layout::RECORDS],
    quiet: [u32; MADE as usize],
    space_quiet: [u32; MADE_SPACES as usize],
    held: [Option<(ThreadId, u64)>; HELD],
    /// How many calls the attackers have made.
    pub(crate) attackers: u64,
    /// How many calls have been made.
    pub(crate) calls: u64,
    /// How many attackers were made, and how many messages were answered.
    pub(crate) made: u64,
    pub(crate) messages: u64,
}

impl<'a> Supervisor<'a> {
    pub(crate) fn new(random: Random<'a>) -> Self {
        for slot in layout::slots() {
            slot.state.store(random.word(), core::sync::atomic::Ordering::Relaxed);
        }
        let processors = u64::from(kip().processor_info().processors);
        Self {
            random,
            processors,
            last: [0; layout::RECORDS],
            quiet: [0; MADE as usize],
            space_quiet: [0; MADE_SPACES as usize],
            held: [None; HELD],
            attackers: 0,
            calls: 0,
            made: 0,
            messages: 0,
        }
    }

    /// Makes attackers and lets them make `calls` calls. Then deletes all of them.
    pub(crate) fn round(&mut self, calls: u64) -> Result<(), &'static str> {
        let wanted = self.calls + calls;
        for space in 0..MADE_SPACES {
            self.make_space(space);
        }
        controller::start();
        let mut answer = None;
        let mut since_look = 0;
        while self.calls < wanted {
            let received = match answer.take() {
                Some((to, tag)) => ipc::ipc(to, ThreadId::ANY, Timeouts::new(Time::ZERO, LOOK), tag),
                None => ipc::receive_timeout(ThreadId::ANY, LOOK),
            };
            match received {
                Ok(request) => {
                    self.messages += 1;
                    since_look += 1;
                    answer = self.serve(request).map(|tag| (request.from, tag));
                }
                Err(error) if error.phase == x2::IpcPhase::Send => {}
                Err(_) => since_look = MESSAGES,
            }
            if since_look >= MESSAGES {
                since_look = 0;
                // The answer is sent first, because its words are in the message registers.
                if let Some((to, tag)) = answer.take() {
                    let _ = ipc::ipc(to, ThreadId::NIL, Timeouts::new(Time::ZERO, Time::NEVER), tag);
                }
                self.look();
            }
        }
        if !controller::stop() {
            return Err("the controller does not come back from a call");
        }
        if layout::own().into_iter().any(is_written_by_others) {
            return Err("an attacker has written to memory that is not the attackers'");
        }
        // The thread is deleted twice. If another thread was deleting it, it has ended before the
        // second call.
        for _ in 0..2 {
            for number in 0..NUMBERS {
                if !delete(number) {
                    return Err("an attacker cannot be deleted");
                }
            }
        }
        self.held = [None; HELD];
        self.count();
        Ok(())
    }

    /// Answers a message, which may be any message from any thread.
    fn serve(&mut self, request: Received) -> Option<MessageTag> {
        match protocol::of(request.tag) {
            protocol::PAGE_FAULT if request.tag.untyped() == 2 => {
                let (address, access) = (request.word(0), protocol::fault_access(request.tag));
                if layout::pool().contains(&address)
                    && self.random.one_in(6)
                    && self.hold(request.from, address)
                {
                    return None;
                }
                if let Some(item) = own_page(address, access) {
                    return Some(Message::new(0).map_item(item).tag());
                }
                // Sometimes the attacker gets a page at the address that it accessed.
                if self.random.one_in(2) && address < 1 << 47 && !layout::image().contains(&address) {
                    let given = Fpage::memory(layout::pool().start, 12).with_rights(Rights::ALL);
                    return Some(Message::new(0).map_item(MapItem::map(given, address & !0xfff)).tag());
                }
                restart(request.from);
                None
            }
            protocol::ARCHITECTURE_EXCEPTION if request.tag.untyped() == protocol::exception::WORDS => {
                l4::utcb::set_message_register(protocol::exception::RIP, attacker::entry as *const () as u64);
                Some(MessageTag::new(0, protocol::exception::WORDS, 0))
            }
            _ if request.tag.untyped() > 0 => {
                restart(request.from);
                Some(MessageTag::EMPTY)
            }
            _ => Some(MessageTag::EMPTY),
        }
    }

    /// Counts the calls that were made since the last check.
    fn count(&mut self) {
        let records = layout::slots().iter().chain([&layout::CONTROLLER]);
        for (index, (last, record)) in self.last.iter_mut().zip(records).enumerate() {
            let Some(progress) = record.progress() else { continue };
            // A count that an attacker has written to has begun again.
            let made = progress.checked_sub(*last).unwrap_or(progress);
            self.calls += made;
            self.attackers += if index + 1 < layout::RECORDS { made } else { 0 };
            *last = progress;
        }
        controller::allow(self.attackers / (CONTROLLERS - 1));
    }

    /// Keeps a page fault for a later check, if there is room. Meanwhile a transfer that waits for
    /// the page can be cancelled, and can time out.
    fn hold(&mut self, thread: ThreadId, address: u64) -> bool {
        let free = self.held.iter_mut().find(|held| held.is_none());
        free.map(|held| *held = Some((thread, address))).is_some()
    }

    /// Answers some of the page faults that were kept.
    fn release(&mut self) {
        for held in &mut self.held {
            let Some((thread, address)) = *held else { continue };
            if let Some(item) = own_page(address, Rights::ALL).filter(|_| self.random.one_in(3)) {
                let _ = ipc::reply(thread, Message::new(0).map_item(item));
                *held = None;
            }
        }
    }

    fn look(&mut self) {
        self.release();
        let mut active = [false; MADE_SPACES as usize];
        for number in 0..MADE {
            let slot = (number / ATTACKERS * layout::UTCBS + number % ATTACKERS) as usize;
            let is_quiet = layout::slots()[slot].progress() == Some(self.last[slot]);
            active[(number / ATTACKERS) as usize] |= !is_quiet;
            let quiet = &mut self.quiet[number as usize];
            *quiet = if is_quiet { *quiet + 1 } else { 0 };
            if *quiet > PATIENCE || self.random.one_in(256) {
                *quiet = 0;
                self.make(number);
            }
        }
        // Changes that the controller makes to a space, and its threads to it, persist until the
        // space is made again.
        for (space, active) in active.into_iter().enumerate() {
            let quiet = &mut self.space_quiet[space];
            *quiet = if active { 0 } else { *quiet + 1 };
            if *quiet > SPACE_PATIENCE || self.random.one_in(256) {
                *quiet = 0;
                self.make_space(space as u64);
            }
        }
        self.count();
        // A space that the controller has made is deleted, because its threads may only take time
        // from the others.
        let number = MADE + self.random.below(NUMBERS - MADE);
        if self.random.one_in(4) {
            delete(number);
        } else {
            let _ = ipc::reply(layout::attacker(number, 1), start_message());
        }
    }

    /// Deletes an attacker and makes it again, together with its space if that has changed.
    fn make(&mut self, number: u64) {
        if delete(number) && self.activate(number).is_err() {
            self.make_space(number / ATTACKERS);
        }
    }

    fn make_space(&mut self, index: u64) {
        let numbers = index * ATTACKERS..(index + 1) * ATTACKERS;
        let anchor = layout::attacker(MADE + index, 1);
        if !numbers.clone().chain([MADE + index]).all(delete) {
            return;
        }
        let arguments =
            ThreadControl { space: anchor, scheduler: kip().root(), pager: ThreadId::NIL, utcb: None };
        // A failure is repaired after a later check: an attacker without a space makes no calls.
        if thread::control(anchor, arguments).is_err() {
            return;
        }
        let area = Fpage::memory(layout::utcb_area(index), (layout::UTCBS * x2::utcb::SIZE).ilog2());
        let _ = space::control(anchor, 0, layout::kip_area(), area, ThreadId::ANY);
        for number in numbers {
            let _ = self.activate(number);
        }
        if index == MADE_SPACES - 1 {
            let _ = extension::set_owner(anchor, layout::attacker(MADE, 1));
        }
    }

    fn activate(&mut self, number: u64) -> thread::Result<()> {
        let (index, place) = (number / ATTACKERS, number % ATTACKERS);
        let (id, root) = (layout::attacker(number, 1), kip().root());
        let arguments = ThreadControl {
            space: layout::attacker(MADE + index, 1),
            scheduler: root,
            pager: root,
            utcb: Some(layout::utcb_area(index) + place * x2::utcb::SIZE),
        };
        thread::control(id, arguments)?;
        self.made += 1;
        let processor = (number + self.random.below(2)) % self.processors;
        let _ = thread::schedule(id, UNCHANGED, processor, PRIORITY, UNCHANGED);
        let _ = ipc::reply(id, start_message());
        Ok(())
    }
}

/// The map item by which the supervisor answers a fault on the program, if such an access is
/// allowed. It has more than a page, except in the pool, whose pages should be missing at times.
fn own_page(address: u64, access: Rights) -> Option<MapItem> {
    let mapped = |region: Region, rights| MapItem::map(Fpage::from_region(region, rights), region.base);
    if layout::pool().contains(&address) {
        return Some(mapped(Region::containing(address, 12), Rights::ALL));
    }
    // Only the code is executable. QEMU is slow if a page is written from which instructions were
    // executed, and random addresses lead to all parts of the program.
    let [stacks, records] = layout::writable();
    let parts = [
        (stacks, Rights::READ_WRITE),
        (records, Rights::READ_WRITE),
        (layout::code(), Rights::READ_EXECUTE),
        (layout::image(), Rights::READ),
    ];
    let (range, rights) = parts.into_iter().find(|(range, _)| range.contains(&address))?;
    if !rights.contains(access) {
        return None;
    }
    let around = (12..=16).rev().map(|size| Region::containing(address, size));
    let largest = { around }.find(|region| range.start <= region.base && region.last() < range.end);
    largest.map(|region| mapped(region, rights))
}

/// Whether pages of the root task were written through mappings that other spaces have of them.
fn is_written_by_others(range: Range<u64>) -> bool {
    if range.is_empty() {
        return false;
    }
    let pages = (range.end - range.start) / 4096;
    let item = ControlItem::new(MapOperation::Query, Fpage::memory(range.start, 12), pages as u32, 0);
    let answer = extension::map_control_one(kip().root(), &item).expect("the pages are the caller's");
    MapAnswer(answer).is_dirty()
}

fn start_message() -> Message {
    Message::with_words(0, &[attacker::entry as *const () as u64, layout::stack_top(0)])
}

/// Deletes the thread with this number, if there is one. If another thread is deleting it, nothing
/// has to be done.
fn delete(number: u64) -> bool {
    (0..2000).any(|_| match thread::delete(layout::attacker(number, 1)) {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error, Some(ErrorCode::InvalidThread), "deletion fails only beside another");
            ipc::sleep(Time::period(500));
            false
        }
    })
}

/// Starts a thread of which this thread is the pager again, whatever it is waiting for.
fn restart(thread: ThreadId) {
    let values =
        ExchangedRegisters { ip: attacker::entry as *const () as u64, ..ExchangedRegisters::default() };
    let control = ExchangeControl::START;
    // SAFETY: `begin` is where attackers start. No thread of the root task's space is meant,
    // because none of them sends such requests.
    let _ = unsafe { thread::exchange_registers(thread, control, values) };
}
