//! What each call's registers mean (ABI 5 and the extensions): its arguments and results by name.
//!
//! A view reads a register of the calling thread when it is asked, and writes one when it is told:
//! a result may lie where an argument was, so a handler reads what it needs first. Only views know
//! which register it is; entry code has its own list (`short_calls.S`).

use x2::control::{
    ExchangeControl, PreemptionControl, TimeControl, UnmapControl, priority_control, processor_control,
};
use x2::extension::SpaceOption;
use x2::{Fpage, MessageTag, ThreadId, Timeouts};

use crate::thread::{Registers, Tcb};

macro_rules! register {
    ($registers:expr, rax) => {
        $registers.rax()
    };
    ($registers:expr, r9) => {
        $registers.r9()
    };
    ($registers:expr, r10) => {
        $registers.r10()
    };
    ($registers:expr, $name:ident) => {
        &$registers.$name
    };
}

macro_rules! calls {
    ($(
        $(#[$about:meta])*
        $call:ident {
            $($argument:ident: $type:ty = $conversion:path, $from:ident;)*
        } -> {
            $($set:ident = $to:ident;)*
        }
    )*) => {$(
        $(#[$about])*
        #[derive(Clone, Copy)]
        pub struct $call<'a>(&'a Registers);

        impl<'a> $call<'a> {
            /// The view of the registers of `thread`, which makes the call.
            #[inline(always)]
            pub fn of(thread: &'a Tcb) -> Self {
                Self(&thread.registers)
            }

            $(
                #[doc = concat!("The argument in ", stringify!($from), ".")]
                #[inline(always)]
                pub fn $argument(self) -> $type {
                    $conversion(register!(self.0, $from).get())
                }
            )*

            $(
                #[doc = concat!("Sets the result in ", stringify!($to), ".")]
                #[inline(always)]
                pub fn $set(self, value: u64) {
                    register!(self.0, $to).set(value);
                }
            )*
        }
    )*};
}

calls! {
    /// Ipc and Lipc: MR0 is the tag, for the message and for what is received.
    Ipc {
        to: ThreadId = ThreadId::from_raw, rsi;
        from: ThreadId = ThreadId::from_raw, rdx;
        timeouts: Timeouts = Timeouts::from_raw, r8;
        tag: MessageTag = MessageTag::from_raw, r9;
    } -> {
        set_tag = r9;
        set_from = rsi;
        set_local_id = rdi;
    }

    /// Arguments of ExchangeRegisters.
    ExchangeRegisters {
        thread: ThreadId = ThreadId::from_raw, rax;
        control: ExchangeControl = ExchangeControl::from_raw, rsi;
        sp: u64 = u64::from, rdx;
        ip: u64 = u64::from, r8;
        flags: u64 = u64::from, r9;
        handle: u64 = u64::from, r10;
        pager: ThreadId = ThreadId::from_raw, rdi;
    } -> {
        set_thread = rax;
        set_control = rsi;
        set_sp = rdx;
        set_ip = r8;
        set_flags = r9;
        set_handle = r10;
        set_pager = rdi;
    }

    /// Arguments of ThreadControl. The call returns its result in RAX.
    ThreadControl {
        thread: ThreadId = ThreadId::from_raw, rdi;
        space: ThreadId = ThreadId::from_raw, r8;
        scheduler: ThreadId = ThreadId::from_raw, rdx;
        pager: ThreadId = ThreadId::from_raw, rsi;
        utcb: u64 = u64::from, r9;
    } -> {}

    /// SystemClock: microseconds.
    SystemClock {} -> {
        set_clock = rax;
    }

    /// Arguments of ThreadSwitch.
    ThreadSwitch {
        thread: ThreadId = ThreadId::from_raw, rdi;
    } -> {}

    /// Arguments of Schedule.
    Schedule {
        thread: ThreadId = ThreadId::from_raw, rdi;
        times: TimeControl = TimeControl::from_raw, rdx;
        processor: Option<u16> = processor_control, r8;
        priority: Option<u8> = priority_control, rsi;
        preemption: Option<PreemptionControl> = PreemptionControl::from_raw, r9;
    } -> {
        set_state = rax;
        set_times = rdx;
    }

    /// Unmap. The fpages and what becomes of them are in message registers.
    Unmap {
        control: UnmapControl = UnmapControl::from_raw, rdx;
    } -> {
        set_local_id = rdi;
    }

    /// Arguments of SpaceControl. The call returns its result in RAX. No bit of the control word
    /// has a meaning.
    SpaceControl {
        space: ThreadId = ThreadId::from_raw, rdi;
        kip_area: Fpage = Fpage::from_raw, rdx;
        utcb_area: Fpage = Fpage::from_raw, r8;
        redirector: ThreadId = ThreadId::from_raw, r9;
    } -> {
        set_control = rdx;
    }

    /// Arguments of ProcessorControl. The call returns its result in RAX.
    ProcessorControl {
        processor: u64 = u64::from, rdi;
    } -> {}

    /// MemoryControl, as its stub passes the attributes on. The fpages are in message registers.
    MemoryControl {
        control: u64 = u64::from, rdx;
        attribute_0: u64 = u64::from, rbp;
        attribute_1: u64 = u64::from, rsi;
        attribute_2: u64 = u64::from, r8;
        attribute_3: u64 = u64::from, rdi;
    } -> {
        set_result = rdx;
        set_local_id = rdi;
    }

    /// Arguments of SpaceOptions. The call returns its result in RAX.
    SpaceOptions {
        space: ThreadId = ThreadId::from_raw, rdi;
        option: Option<SpaceOption> = SpaceOption::from_word, rsi;
        value: u64 = u64::from, rdx;
        second_value: u64 = u64::from, r8;
    } -> {
        set_answer = rdx;
        set_second_answer = r8;
    }

    /// Arguments of MapControl with items in memory. The call returns its result in RAX. When it
    /// gives way, the number of the present item is in registers that the call destroys.
    MapControl {
        space: ThreadId = ThreadId::from_raw, rdi;
        items: u64 = u64::from, rsi;
        number: u64 = u64::from, rdx;
        begin: u64 = u64::from, r8;
        kept_target: u64 = u64::from, rax;
        kept_control: u64 = u64::from, rcx;
        kept_source: u64 = u64::from, r11;
    } -> {
        set_done = r8;
        keep_target = rax;
        keep_control = rcx;
        keep_source = r11;
    }

    /// Arguments of MapControl with one item, in registers. The call returns its result in RAX.
    MapControlOfOne {
        target: u64 = u64::from, rsi;
        control: u64 = u64::from, rdx;
        source: u64 = u64::from, r8;
    } -> {
        set_answer = r8;
    }

    /// Arguments of ThreadState. The call returns its result in RAX.
    ThreadState {
        thread: ThreadId = ThreadId::from_raw, rdi;
        control: u64 = u64::from, rsi;
        buffer: u64 = u64::from, rdx;
        size: u64 = u64::from, r8;
    } -> {
        set_state = rsi;
        set_read = r8;
    }

    /// Arguments of Notify. The call returns its result in RAX.
    Notify {
        thread: ThreadId = ThreadId::from_raw, rdi;
        bits: u64 = u64::from, rsi;
    } -> {}
}
