//! Chooses calls and their arguments: nearly right ones, about the attackers' own threads, spaces
//! and memory.

use crate::invoke::Registers;
use crate::kind::Kind;
use crate::layout::{self, NUMBERS, UTCBS};
use crate::random::Random;
use l4::{extension, kip, utcb};
use x2::extension::{MapItem, ONE_MAP_ITEM};
use x2::{Fpage, Rights, ThreadId};

/// Chooses calls for an attacker, or for the controller. The controller has all privileges, so the
/// objects of its calls always belong to attackers.
#[derive(Clone, Copy)]
pub(crate) struct Chooser<'a> {
    pub(crate) random: Random<'a>,
    pub(crate) is_controller: bool,
    /// The address of memory for arrays of map items: 512 bytes, of which each item takes 32.
    pub(crate) items: Option<u64>,
    /// The address at which extended state is usually read and written.
    pub(crate) buffer: u64,
}

const ZERO_TIME: u64 = 0x400;
const UNCHANGED: u64 = u64::MAX;

impl Chooser<'_> {
    /// The kind of the next call.
    pub(crate) fn kind(self) -> Kind {
        if self.is_controller {
            return match self.random.below(16) {
                0..=3 => Kind::ThreadControl,
                4 | 5 => Kind::SpaceControl,
                6 | 7 => Kind::SpaceOptions,
                8 => Kind::Schedule,
                9 | 10 => Kind::MapControl,
                11 | 12 => Kind::ThreadState,
                13 => Kind::MemoryControl,
                14 => Kind::ProcessorControl,
                _ => Kind::ExchangeRegisters,
            };
        }
        match self.random.below(96) {
            0..=31 => Kind::Ipc,
            32..=39 => Kind::Lipc,
            // The last six kinds end in a message to the supervisor, and mostly in the attacker's
            // end.
            40 if self.random.one_in(2) => Kind::ALL[Kind::COUNT - 1 - self.random.below(6) as usize],
            _ => Kind::ALL[self.random.below(Kind::COUNT as u64 - 6) as usize],
        }
    }

    /// A thread of the attackers, mostly one that exists.
    fn attacker(self) -> u64 {
        let version = self.random.one_of(&[1, 1, 1, 1, 1, 1, 2, 3]) as u32;
        layout::attacker(self.random.below(NUMBERS), version).raw()
    }

    fn thread(self) -> u64 {
        if self.is_controller {
            return match self.random.below(12) {
                0 => 0,
                1 => ThreadId::ANY.raw(),
                _ => self.attacker(),
            };
        }
        match self.random.below(24) {
            0 => 0,
            1 => ThreadId::ANY.raw(),
            2 => ThreadId::ANY_LOCAL.raw(),
            3 => utcb::my_global_id().raw(),
            4..=6 => own_area() + self.random.below(layout::ATTACKERS + 1) * x2::utcb::SIZE + 512,
            7 => kip().sigma0().raw(),
            8 => kip().root().raw(),
            9 => layout::own_thread(self.random.below(2) as u32).raw(),
            10 => self.random.below(40) << 32 | 1,
            11 => self.random.word(),
            _ => self.attacker(),
        }
    }

    /// Another thread, usually one of the attacker's own space.
    fn sibling(self) -> u64 {
        if self.is_controller || self.random.one_in(3) {
            return self.thread();
        }
        own_area() + self.random.below(layout::ATTACKERS) * x2::utcb::SIZE + 512
    }

    pub(crate) fn pool_page(self) -> u64 {
        layout::pool().start + self.random.below(layout::POOL_PAGES) * 4096
    }

    fn address(self) -> u64 {
        match self.random.below(12) {
            0 if !self.is_controller => self.random.word(),
            1 => self.pool_page() + self.random.below(4096),
            2 => self.pool_page() + 4096 - self.random.below(16) * 8,
            3 => 0xffff_8000_0000_0000 | self.random.word(),
            4 => self.random.below(1 << 47) & !0xfff,
            _ => self.pool_page(),
        }
    }

    /// An fpage within the pool. Those of attackers are sometimes elsewhere.
    fn fpage(self) -> u64 {
        let rights = Rights::from_bits(self.random.below(8));
        let page =
            Fpage::memory(self.pool_page(), 12 + self.random.below(3) as u32).with_rights(rights).raw();
        if self.is_controller {
            return page;
        }
        match self.random.below(12) {
            0 => 0,
            1 => Fpage::COMPLETE.with_rights(rights).raw(),
            2 => self.random.word(),
            3 => 0x20 | self.random.below(17) << 10 | self.random.below(1 << 16) << 16,
            _ => page,
        }
    }

    /// A time of 16 bits: mostly zero or short.
    fn time(self) -> u64 {
        match self.random.below(16) {
            0 => self.random.below(1 << 16),
            1 if self.random.one_in(4) => 0,
            2..=7 => 1 + self.random.below(1000),
            _ => ZERO_TIME,
        }
    }

    /// A transfer timeout, which is often never. If both sides choose that, a transfer may last for
    /// ever.
    fn transfer_time(self) -> u64 {
        if self.random.one_in(2) { 0 } else { self.time() }
    }

    /// A random word, for fields without a better choice.
    pub(crate) fn field(self) -> u64 {
        match self.random.below(8) {
            0 => 0,
            1 => self.random.word(),
            2 => 1 << self.random.below(64),
            3 => self.address(),
            4 => self.thread(),
            5 => UNCHANGED,
            6 => self.fpage(),
            _ => self.random.below(256),
        }
    }

    /// An instruction pointer at which a thread may continue.
    fn ip(self) -> u64 {
        match self.random.below(8) {
            0 => self.address(),
            1 => layout::image().start + self.random.below(layout::image().end - layout::image().start),
            _ => crate::attacker::entry as *const () as u64,
        }
    }

    /// Writes a typed item of two words, or more.
    fn item(self, at: usize) {
        let words = match self.random.below(6) {
            0 => [self.field(), self.field()],
            1 => [self.pool_page() | 0xa, self.fpage()],
            2 | 3 => [self.pool_page() | 8, self.fpage()],
            _ => [self.random.below(1 << self.random.below(16)) << 10, self.address()],
        };
        for (index, word) in words.into_iter().enumerate() {
            if at + index < 64 {
                utcb::set_message_register(at + index, word);
            }
        }
    }

    /// Writes into the UTCB what the thread accepts, its transfer timeouts, and sometimes any other
    /// word.
    fn buffers(self) {
        let acceptor = match self.random.below(8) {
            0 => 0,
            1 => self.random.word(),
            2 => Fpage::COMPLETE.raw() | self.random.below(8),
            3 => 1,
            _ => self.fpage() & !0xf | self.random.below(6),
        };
        self.set(-16, acceptor);
        for buffer in 0..2 {
            let more = u64::from(buffer == 0 && self.random.one_in(2));
            self.set(-17 - 2 * buffer, self.random.below(1 << self.random.below(15)) << 10 | more);
            self.set(-18 - 2 * buffer, self.address());
        }
        self.set(x2::utcb::XFER_TIMEOUTS, self.transfer_time() << 16 | self.transfer_time());
        if self.random.one_in(8) {
            // Any word but those at the beginning of the block, which the kernel does not use.
            self.set(self.random.below(112) as isize - 48, self.field());
        }
    }

    fn set(self, word: isize, value: u64) {
        // SAFETY: the word lies in this thread's UTCB; neither the kernel nor this program relies
        // on it.
        unsafe { (utcb::pointer() as *mut u64).offset(word).write_volatile(value) }
    }

    fn message(self) -> Registers {
        self.buffers();
        let untyped = self.random.below(1 << self.random.below(7)).min(63);
        let items = self.random.below(4).min((63 - untyped) / 2);
        for item in 0..items {
            self.item((1 + untyped + 2 * item) as usize);
        }
        let mut tag = self.random.below(1 << 16) << 16 | items << 7 | untyped;
        if self.random.one_in(16) {
            tag ^= 1 << self.random.below(64);
        }
        // Attackers do not send their supervisor or handler messages that look like faults.
        let from = if self.random.one_in(2) { ThreadId::ANY.raw() } else { self.thread() };
        let to = if self.random.one_in(3) { 0 } else { self.thread() };
        self.set(x2::utcb::VIRTUAL_SENDER, self.thread());
        Registers {
            rsi: to,
            rdx: if self.random.one_in(4) { 0 } else { from },
            r8: self.time() << 16 | self.time(),
            rdi: utcb::pointer(),
            ..self.message_registers(tag)
        }
    }

    /// The registers of a message with this tag: MR0 to MR7 are passed in registers.
    fn message_registers(self, tag: u64) -> Registers {
        let mr = utcb::message_register;
        Registers {
            r9: tag,
            rax: mr(1),
            rbx: mr(2),
            r10: mr(3),
            r12: mr(4),
            r13: mr(5),
            r14: mr(6),
            r15: mr(7),
            ..Default::default()
        }
    }

    fn fpages(self, control: u64) -> Registers {
        for index in 0..8 {
            utcb::set_message_register(index, self.fpage());
        }
        let tag = utcb::message_register(0);
        Registers { rdx: control, rdi: utcb::pointer(), ..self.message_registers(tag) }
    }

    fn exchange_registers(self) -> Registers {
        let control = match self.random.below(6) {
            0 => self.random.below(1 << 14),
            1 => 0x11e,
            2 => 6,
            3 => self.random.one_of(&[2, 4, 6]),
            4 => 0x301,
            _ => self.random.one_of(&[0x100, 0x200, 0x18, 0]),
        };
        Registers {
            rax: self.sibling(),
            rsi: control,
            rdx: self.address(),
            r8: self.ip(),
            r9: self.field(),
            r10: self.field(),
            rdi: self.thread(),
            ..Default::default()
        }
    }

    fn thread_control(self) -> Registers {
        let dest = match self.random.below(12) {
            0 => u64::from(kip().thread_info().system_base) << 32 | 1,
            1 => self.random.below(20) << 32 | 1,
            2 if !self.is_controller => self.field(),
            _ => self.attacker(),
        };
        let space = match self.random.below(8) {
            0 => 0,
            1 | 2 => dest,
            _ => self.attacker(),
        };
        let area = layout::utcb_area(self.random.below(layout::SPACES));
        let utcb = match self.random.below(6) {
            0 | 1 => UNCHANGED,
            2 => self.address(),
            _ => area + self.random.below(UTCBS + 1) * 1024,
        };
        // The handler of an interrupt is always an attacker.
        let pager = if dest >> 32 < 24 {
            self.attacker()
        } else {
            self.random.one_of(&[0, kip().root().raw(), self.thread()])
        };
        let scheduler = if self.random.one_in(2) { kip().root().raw() } else { self.thread() };
        Registers { rdi: dest, r8: space, rdx: scheduler, rsi: pager, r9: utcb, ..Default::default() }
    }

    fn space_control(self) -> Registers {
        let area = layout::utcb_area(3);
        let kip_area = match self.random.below(6) {
            0 => self.fpage(),
            1 => Fpage::memory(area, 12).raw(),
            2 => Fpage::memory(1 << 63, 12).raw(),
            _ => layout::kip_area().raw(),
        };
        let utcb_area = match self.random.below(6) {
            0 => self.field(),
            1 => 0x10,
            _ => Fpage::memory(area, (UTCBS * x2::utcb::SIZE).ilog2()).raw(),
        };
        Registers {
            rdi: self.thread(),
            rsi: self.field(),
            rdx: kip_area,
            r8: utcb_area,
            r9: if self.random.one_in(8) { self.thread() } else { ThreadId::ANY.raw() },
            ..Default::default()
        }
    }

    fn schedule(self) -> Registers {
        let word = |value: u64| if self.random.one_in(2) { UNCHANGED } else { value };
        Registers {
            rdi: self.thread(),
            rsi: word(self.random.below(150)),
            rdx: word(self.time() << 16 | self.time()),
            r8: word(self.random.below(3)),
            r9: word(self.random.below(100) << 16 | self.random.below(1000)),
            ..Default::default()
        }
    }

    fn space_options(self) -> Registers {
        let (option, space) = (self.random.below(9), self.thread());
        let (first, second) = match option {
            1 => (self.random.one_of(&[0, kip().root().raw(), self.attacker()]), 0),
            2 => (self.quota(space), 0),
            3 => (self.random.below(4), 0),
            4 => (self.ip(), 0),
            5 => (self.attacker(), self.random.below(3)),
            6 => (self.random.below(3), 0),
            _ => (self.field(), self.field()),
        };
        Registers { rdi: space, rsi: option, rdx: first, r8: second, ..Default::default() }
    }

    /// A quota for a space: mostly none, otherwise one that leaves the space almost no memory.
    fn quota(self, space: u64) -> u64 {
        match self.random.below(8) {
            0 => self.random.below(1 << 18),
            1 => 1 << self.random.below(64),
            2..=4 => {
                let used = extension::kernel_memory(ThreadId::from_raw(space)).unwrap_or_default();
                used + self.random.below(8) * 512
            }
            _ => UNCHANGED,
        }
    }

    /// The four words of a map item, and its answer.
    fn map_item(self) -> [u64; 4] {
        let size = self.random.one_of(&[12, 12, 12, 12, 13, 14, 21, 30]) as u32;
        let target = match self.random.below(12) {
            0 => self.field(),
            1 => Fpage::memory(layout::utcb_area(self.random.below(4)), size).raw() | 7,
            _ => Fpage::memory(self.pool_page(), size).raw() | self.random.below(8),
        };
        let control = self.random.below(16) | self.random.below(4) << 16;
        let control = if self.random.one_in(16) { control ^ 1 << self.random.below(64) } else { control };
        let item = MapItem { target, control, source: self.pool_page(), answer: 0 };
        let MapItem { target, control, source, answer } =
            if self.is_controller { within_pool(item) } else { item };
        [target, control, source, answer]
    }

    fn map_control(self) -> Registers {
        // The controller's own space has no mappings from other spaces, so only its pool is named.
        let space = self.thread();
        let Some(items) = self.items.filter(|_| self.random.one_in(2)) else {
            let [target, control, source, _] = self.map_item();
            return Registers {
                rdi: space,
                rsi: target,
                rdx: control | ONE_MAP_ITEM,
                r8: source,
                ..Default::default()
            };
        };
        for index in 0..16 {
            for (word, value) in self.map_item().into_iter().enumerate() {
                // SAFETY: the address is that of the caller's memory for items.
                unsafe { ((items + index * 32) as *mut u64).add(word).write_volatile(value) }
            }
        }
        let number = if self.random.one_in(8) { self.random.below(600) } else { self.random.below(17) };
        let number = if self.is_controller { number.min(16) } else { number };
        // The controller's items stay where attackers cannot write.
        let wrong = !self.is_controller && self.random.one_in(16);
        let items = if wrong { items ^ 1 << self.random.below(64) } else { items };
        Registers {
            rdi: space,
            rsi: items,
            rdx: number,
            r8: self.random.one_of(&[0, 0, 0, 1, 20]),
            ..Default::default()
        }
    }

    fn thread_state(self) -> Registers {
        let control = if self.random.one_in(8) { self.random.word() } else { self.random.below(1 << 9) };
        // Writes the words for the registers that the call sets.
        for index in 1..=20 {
            let value = match index {
                1 => self.ip(),
                17 => self.address(),
                19 | 20 if self.random.one_in(2) => 0,
                _ => self.field(),
            };
            utcb::set_message_register(index, value);
        }
        utcb::set_message_register(21, self.thread());
        utcb::set_message_register(22, self.thread());
        for index in 23..=26 {
            utcb::set_message_register(index, self.address());
        }
        // Conditions for writes and accesses of a byte, mostly.
        let breakpoints = if self.random.one_in(8) { self.random.word() } else { 0x3131_00ff };
        utcb::set_message_register(27, breakpoints & self.random.one_of(&[0, 0xff, 0xf0f, u64::MAX]));
        let size = self.random.one_of(&[576, 832, 832, 4096, self.random.below(1000)]);
        // The state that is read overwrites the buffer, which is memory of the pool.
        let buffer = match self.random.below(4) {
            0 => self.pool_page(),
            1 if !self.is_controller => self.address(),
            _ => self.buffer,
        };
        let size = if self.is_controller { size.min(4096) } else { size };
        Registers { rdi: self.thread(), rsi: control, rdx: buffer, r8: size, ..Default::default() }
    }

    fn memory_control(self) -> Registers {
        let control = self.random.one_of(&[0, 1, 3, 7, self.random.below(64), self.random.word()]);
        let control = if self.is_controller { control & 7 } else { control };
        let attribute = || self.random.one_of(&[0, 1, 2, 3, 4, 5, 8, self.field()]);
        Registers {
            rcx: attribute(),
            rsi: attribute(),
            r8: attribute(),
            r11: attribute(),
            ..self.fpages(control)
        }
    }

    /// The registers of a call of this kind. Arguments in memory are written, too. Attackers'
    /// choices follow no rules.
    pub(crate) fn prepare(self, kind: Kind) -> Registers {
        let mut registers = match kind {
            Kind::Ipc | Kind::Lipc => self.message(),
            Kind::ExchangeRegisters => self.exchange_registers(),
            Kind::ThreadControl => self.thread_control(),
            Kind::Schedule => self.schedule(),
            Kind::Unmap => self.fpages(self.random.below(16) | self.random.below(2) << 6),
            Kind::SpaceControl => self.space_control(),
            Kind::SpaceOptions => self.space_options(),
            Kind::MapControl => self.map_control(),
            Kind::ThreadState => self.thread_state(),
            Kind::MemoryControl => self.memory_control(),
            Kind::Notify => Registers { rdi: self.thread(), rsi: self.field(), ..Default::default() },
            Kind::ThreadSwitch => Registers { rdi: self.thread(), ..Default::default() },
            Kind::ProcessorControl => Registers {
                rdi: self.random.below(4),
                rsi: self.field(),
                rdx: self.field(),
                r8: self.field(),
                ..Default::default()
            },
            _ => Registers {
                rax: self.field(),
                rdi: self.field(),
                rsi: self.field(),
                rdx: self.field(),
                ..Default::default()
            },
        };
        if !self.is_controller && self.random.one_in(32) {
            let wrong = self.field();
            match self.random.below(6) {
                0 => registers.rdi = wrong,
                1 => registers.rsi = wrong,
                2 => registers.rdx = wrong,
                3 => registers.r8 = wrong,
                4 => registers.r9 = wrong,
                _ => registers.rax = wrong,
            }
        }
        registers
    }
}

/// The item, or only its first page if its source ends beyond the pool: the rest would give
/// attackers memory of the controller.
fn within_pool(item: MapItem) -> MapItem {
    let Some(page) = Fpage::from_raw(item.target).region() else { return item };
    let size = u128::from(item.count()) << page.size_log2;
    if u128::from(item.source) + size <= u128::from(layout::pool().end) {
        return item;
    }
    let target = Fpage::memory(page.base, 12).with_rights(Fpage::from_raw(item.target).rights());
    MapItem::new(item.operation(), target, 1, item.source)
}

/// The address of the UTCB area of the caller's space.
fn own_area() -> u64 {
    utcb::pointer() & !(UTCBS * x2::utcb::SIZE - 1)
}
