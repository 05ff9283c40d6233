//! Layouts of siginfo_t, sigaction, stack_t, and the signal frame (asm/ucontext.h,
//! asm/sigcontext.h).

use super::{Fields, Writer};
use alloc::vec::Vec;
use mach::machine::ThreadState;
use unix::signal::{
    Action, ActionFlags, AlternateStack, Cause, ChildEvent, Disposition, Fault, Frame, Signal,
    SignalInformation, SignalSet,
};
use unix::{Error, Result};

const SA_NOCLDSTOP: u64 = 1;
const SA_NOCLDWAIT: u64 = 2;
const SA_SIGINFO: u64 = 4;
const SA_RESTORER: u64 = 0x0400_0000;
const SA_ONSTACK: u64 = 0x0800_0000;
const SA_RESTART: u64 = 0x1000_0000;
const SA_NODEFER: u64 = 0x4000_0000;
const SA_RESETHAND: u64 = 0x8000_0000;

const SS_ONSTACK: u32 = 1;
const SS_DISABLE: u32 = 2;
const SS_AUTODISARM: u32 = 1 << 31;

/// Bytes of the smallest alternate stack (MINSIGSTKSZ).
pub const MINIMUM_STACK: u64 = 2048;

/// The signal with this number; `EINVAL` if there is none.
pub fn signal(number: u64) -> Result<Signal> {
    u32::try_from(number).ok().and_then(Signal::new).ok_or(Error::EINVAL)
}

/// The signal with this number, or `None` for 0; `EINVAL` if there is none.
pub fn optional_signal(number: u64) -> Result<Option<Signal>> {
    if number as u32 == 0 { Ok(None) } else { signal(number & 0xffff_ffff).map(Some) }
}

/// Reads a struct sigaction in the layout of the system call.
pub fn action(bytes: &[u8; 32]) -> Result<Action> {
    let (handler, flags, restorer) = (bytes.u64_at(0)?, bytes.u64_at(8)?, bytes.u64_at(16)?);
    let has = |flag| flags & flag != 0;
    Ok(Action {
        disposition: match handler {
            0 => Disposition::Default,
            1 => Disposition::Ignore,
            address => Disposition::Handler(address),
        },
        mask: SignalSet::from_bits(bytes.u64_at(24)?),
        flags: ActionFlags {
            restart: has(SA_RESTART),
            on_stack: has(SA_ONSTACK),
            no_defer: has(SA_NODEFER),
            reset: has(SA_RESETHAND),
            information: has(SA_SIGINFO),
            no_child_stop: has(SA_NOCLDSTOP),
            no_child_wait: has(SA_NOCLDWAIT),
        },
        restorer: has(SA_RESTORER).then_some(restorer),
    })
}

/// Writes the action as a struct sigaction.
pub fn to_action(action: &Action) -> [u8; 32] {
    let handler = match action.disposition {
        Disposition::Default => 0,
        Disposition::Ignore => 1,
        Disposition::Handler(address) => address,
    };
    let flags = [
        (action.flags.restart, SA_RESTART),
        (action.flags.on_stack, SA_ONSTACK),
        (action.flags.no_defer, SA_NODEFER),
        (action.flags.reset, SA_RESETHAND),
        (action.flags.information, SA_SIGINFO),
        (action.flags.no_child_stop, SA_NOCLDSTOP),
        (action.flags.no_child_wait, SA_NOCLDWAIT),
        (action.restorer.is_some(), SA_RESTORER),
    ];
    let flags = flags.iter().filter(|(on, _)| *on).fold(0, |all, (_, flag)| all | flag);
    let restorer = action.restorer.unwrap_or(0);
    Writer::new().u64(0, handler).u64(8, flags).u64(16, restorer).u64(24, action.mask.bits()).done()
}

/// Reads a stack_t; `EINVAL` for unknown flags.
pub fn stack(bytes: &[u8]) -> Result<AlternateStack> {
    let (base, flags, size) = (bytes.u64_at(0)?, bytes.u32_at(8)?, bytes.u64_at(16)?);
    let auto_disarm = flags & SS_AUTODISARM != 0;
    match flags & !SS_AUTODISARM {
        SS_DISABLE => Ok(AlternateStack { base: 0, size: 0, auto_disarm }),
        0 | SS_ONSTACK => Ok(AlternateStack { base, size, auto_disarm }),
        _ => Err(Error::EINVAL),
    }
}

/// Writes the alternate stack as a stack_t, for a thread with this stack pointer.
pub fn to_stack(stack: &AlternateStack, stack_pointer: u64) -> [u8; 24] {
    let state = match () {
        () if !stack.is_set() => SS_DISABLE,
        () if stack.contains(stack_pointer) => SS_ONSTACK,
        () => 0,
    };
    let disarm = if stack.auto_disarm { SS_AUTODISARM } else { 0 };
    Writer::new().u64(0, stack.base).u32(8, state | disarm).u64(16, stack.size).done()
}

/// The status with which wait4 reports a change of a child.
pub fn wait_status(event: ChildEvent) -> u32 {
    match event {
        ChildEvent::Exited(status) => u32::from(status) << 8,
        ChildEvent::Killed(signal) => signal.number().into(),
        ChildEvent::Dumped(signal) => u32::from(signal.number()) | 0x80,
        ChildEvent::Stopped(signal) => u32::from(signal.number()) << 8 | 0x7f,
        ChildEvent::Continued => 0xffff,
        ChildEvent::Traced { signal, event, is_call } => stop_code(signal, event, is_call) << 8 | 0x7f,
    }
}

/// The code of a tracee's stop: a signal with a mark for system calls, and an event.
pub fn stop_code(signal: Signal, event: u8, is_call: bool) -> u32 {
    let mark = if is_call { 0x80 } else { 0 };
    u32::from(signal.number()) | mark | u32::from(event) << 8
}

/// The fields si_code and si_status for a change of a child.
pub fn child_code(event: ChildEvent) -> (i32, i32) {
    match event {
        ChildEvent::Exited(status) => (1, status.into()),
        ChildEvent::Killed(signal) => (2, signal.number().into()),
        ChildEvent::Dumped(signal) => (3, signal.number().into()),
        ChildEvent::Stopped(signal) => (5, signal.number().into()),
        ChildEvent::Continued => (6, Signal::CONT.number().into()),
        ChildEvent::Traced { signal, event, is_call } => (4, stop_code(signal, event, is_call) as i32),
    }
}

fn fault_code(fault: Fault) -> i32 {
    match fault {
        Fault::NotMapped | Fault::Alignment | Fault::IntegerDivide | Fault::StepOfCall => 1,
        Fault::NotPermitted
        | Fault::NoObject
        | Fault::IntegerOverflow
        | Fault::Step
        | Fault::IllegalInstruction => 2,
        Fault::Watchpoint => 4,
        Fault::FloatInvalid => 7,
        Fault::NotCanonical | Fault::Breakpoint => SI_KERNEL,
    }
}

const SI_KERNEL: i32 = 0x80;
const SI_TIMER: i32 = -2;
const SI_TKILL: i32 = -6;

/// Writes the information of a signal as a siginfo_t.
pub fn to_information(information: &SignalInformation) -> [u8; 128] {
    let writer = Writer::<128>::new().i32(0, information.signal.number().into()).i32(4, information.error);
    match information.cause {
        Cause::System => writer.i32(8, SI_KERNEL),
        Cause::Kill { process, user } => writer.i32(8, 0).u32(16, process).u32(20, user),
        Cause::ThreadKill { process, user } => writer.i32(8, SI_TKILL).u32(16, process).u32(20, user),
        Cause::Queue { code, process, user, value } => {
            writer.i32(8, code).u32(16, process).u32(20, user).u64(24, value)
        }
        Cause::Timer { timer, overrun, value } => {
            writer.i32(8, SI_TIMER).u32(16, timer).u32(20, overrun).u64(24, value)
        }
        Cause::Child { process, user, event, user_time, system_time } => {
            let (code, status) = child_code(event);
            let (user_ticks, system_ticks) = (super::time::ticks(user_time), super::time::ticks(system_time));
            let writer = writer.i32(8, code).u32(16, process).u32(20, user).i32(24, status);
            writer.u64(32, user_ticks).u64(40, system_ticks)
        }
        Cause::File { code, events, descriptor } => {
            writer.i32(8, code).u64(16, events.into()).i32(24, descriptor)
        }
        Cause::Filter { address, call, architecture } => {
            writer.i32(8, 1).u64(16, address).u32(24, call).u32(28, architecture)
        }
        Cause::Fault { fault, address } => {
            let has_none = matches!(fault, Fault::NotCanonical | Fault::Breakpoint);
            let address = if has_none { 0 } else { address };
            writer.i32(8, fault_code(fault)).u64(16, address)
        }
    }
    .done()
}

/// Writes the information of a signal as a signalfd_siginfo.
pub fn to_descriptor_information(information: &SignalInformation) -> [u8; 128] {
    let plain = to_information(information);
    let word = |at: usize| plain.u32_at(at).unwrap_or(0);
    let double = |at: usize| plain.u64_at(at).unwrap_or(0);
    let writer = Writer::<128>::new().bytes(0, &plain[..12]);
    match information.cause {
        Cause::System => writer,
        Cause::Kill { .. } | Cause::ThreadKill { .. } => writer.u32(12, word(16)).u32(16, word(20)),
        Cause::Queue { value, .. } => {
            writer.u32(12, word(16)).u32(16, word(20)).u32(44, value as u32).u64(48, value)
        }
        Cause::Timer { timer, overrun, value } => {
            writer.u32(24, timer).u32(32, overrun).u32(44, value as u32).u64(48, value)
        }
        Cause::Child { .. } => {
            let writer = writer.u32(12, word(16)).u32(16, word(20)).u32(40, word(24));
            writer.u64(56, double(32)).u64(64, double(40))
        }
        Cause::Fault { .. } => writer.u64(72, double(16)),
        Cause::File { events, descriptor, .. } => writer.u32(28, events).i32(20, descriptor),
        Cause::Filter { .. } => {
            let writer = writer.u64(88, double(16)).u32(84, word(24));
            writer.u32(96, word(28))
        }
    }
    .done()
}

/// Reads a siginfo_t that a program made, for rt_sigqueueinfo. `EPERM` if it says that the system
/// sent the signal, or that kill did for another process.
pub fn information(signal: Signal, bytes: &[u8; 128], to_self: bool) -> Result<SignalInformation> {
    let code = bytes.i32_at(8)?;
    if (code >= 0 || code == SI_TKILL) && !to_self {
        return Err(Error::EPERM);
    }
    let cause =
        Cause::Queue { code, process: bytes.u32_at(16)?, user: bytes.u32_at(20)?, value: bytes.u64_at(24)? };
    Ok(SignalInformation { signal, error: bytes.i32_at(4)?, cause })
}

const UCONTEXT_SIZE: usize = 304;
/// Bytes of the frame without extended state: return address, ucontext, siginfo.
pub const FRAME_SIZE: usize = 8 + UCONTEXT_SIZE + 128;
const RED_ZONE: u64 = 128;
const MAGIC_START: u32 = 0x4650_5853;
const MAGIC_END: u32 = 0x4650_5845;
/// Offset in the first 512 bytes of the extended state (legacy area) of its description.
const SOFTWARE_AREA: usize = 464;
const LEGACY_SIZE: usize = 512;
const CODE_SEGMENT: u16 = 0x33;
const STACK_SEGMENT: u16 = 0x2b;
/// The flags of RFLAGS that a program may set: arithmetic, direction, trap, resume and alignment
/// check.
const USER_FLAGS: u64 = 0x0005_0dd5;

/// A signal frame, ready to be written, and the registers with which its handler starts.
pub struct BuiltFrame {
    /// Address of the signal frame.
    pub address: u64,
    /// The bytes of the signal frame, with the extended state.
    pub bytes: Vec<u8>,
    /// The registers with which the handler starts.
    pub state: ThreadState,
}

/// Lays out the signal frame `frame` on the stack of a thread in `state`, with extended state
/// `extended` in XSAVE's standard format. `EFAULT` if there is no room or no restorer.
pub fn build_frame(
    frame: &Frame,
    state: &ThreadState,
    extended: &[u8],
    fault: (u64, u64, u64),
) -> Result<BuiltFrame> {
    let restorer = frame.action.restorer.ok_or(Error::EFAULT)?;
    let top = frame.stack.top_for(state.rsp, frame.on_stack);
    let red_zone = if top == state.rsp { RED_ZONE } else { 0 };
    let floor = (FRAME_SIZE + extended.len() + 4 + 256) as u64;
    let below = top.checked_sub(red_zone).filter(|below| *below > floor).ok_or(Error::EFAULT)?;
    let extended_at = (below - (extended.len() as u64 + 4)) & !63;
    let address = ((extended_at - FRAME_SIZE as u64) & !15) - 8;
    if !frame.stack.admits(top, address) {
        return Err(Error::EFAULT);
    }

    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact((extended_at - address) as usize + extended.len() + 4)
        .map_err(|_| Error::ENOMEM)?;
    bytes.extend_from_slice(&restorer.to_le_bytes());
    bytes.extend_from_slice(&context(frame, state, extended_at, fault));
    bytes.extend_from_slice(&to_information(&frame.information));
    bytes.resize((extended_at - address) as usize, 0);
    append_extended(&mut bytes, extended);

    let handler_state = ThreadState {
        rdi: frame.signal.number().into(),
        rsi: address + (8 + UCONTEXT_SIZE) as u64,
        rdx: address + 8,
        rax: 0,
        rsp: address,
        rip: frame.handler,
        // The direction, trap and resume flags are clear at the start of a handler.
        rflags: state.rflags & !0x1_0500,
        ..*state
    };
    Ok(BuiltFrame { address, bytes, state: handler_state })
}

fn context(
    frame: &Frame,
    state: &ThreadState,
    extended_at: u64,
    fault: (u64, u64, u64),
) -> [u8; UCONTEXT_SIZE] {
    const FP_XSTATE: u64 = 1;
    const SIGCONTEXT_SS: u64 = 2;
    const STRICT_RESTORE_SS: u64 = 4;
    let registers = [
        state.r8,
        state.r9,
        state.r10,
        state.r11,
        state.r12,
        state.r13,
        state.r14,
        state.r15,
        state.rdi,
        state.rsi,
        state.rbp,
        state.rbx,
        state.rdx,
        state.rax,
        state.rcx,
        state.rsp,
        state.rip,
        state.rflags,
    ];
    let (error, trap, address) = fault;
    let mut writer = Writer::new()
        .u64(0, FP_XSTATE | SIGCONTEXT_SS | STRICT_RESTORE_SS)
        .bytes(16, &to_stack(&frame.stack, state.rsp));
    for (index, register) in registers.into_iter().enumerate() {
        writer.put(40 + 8 * index, &register.to_le_bytes());
    }
    writer
        .u16(184, CODE_SEGMENT)
        .u16(190, STACK_SEGMENT)
        .u64(192, error)
        .u64(200, trap)
        .u64(208, frame.saved_mask.bits())
        .u64(216, address)
        .u64(224, extended_at)
        .u64(296, frame.saved_mask.bits())
        .done()
}

fn append_extended(bytes: &mut Vec<u8>, extended: &[u8]) {
    let start = bytes.len();
    bytes.extend_from_slice(extended);
    if extended.len() >= LEGACY_SIZE {
        let features = extended.u64_at(LEGACY_SIZE).unwrap_or(3) | 3;
        let size = extended.len() as u32;
        let area =
            Writer::<48>::new().u32(0, MAGIC_START).u32(4, size + 4).u64(8, features).u32(16, size).done();
        bytes[start + SOFTWARE_AREA..start + LEGACY_SIZE].copy_from_slice(&area);
        bytes.extend_from_slice(&MAGIC_END.to_le_bytes());
    }
}

/// What rt_sigreturn reads from a signal frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedContext {
    /// The registers with which the program goes on; the bases of FS and GS stay the thread's.
    pub state: ThreadState,
    /// The signal mask to be restored.
    pub mask: SignalSet,
    /// The alternate stack to be restored; an error if the frame's is invalid.
    pub stack: Result<AlternateStack>,
    /// Address of the extended state; 0 for the initial state.
    pub extended_at: u64,
}

/// Bytes of the context, which begins 8 bytes after the frame.
pub const CONTEXT_SIZE: usize = UCONTEXT_SIZE;

/// Reads the context of a signal frame, for a thread whose registers are `current`.
pub fn read_context(bytes: &[u8; CONTEXT_SIZE], current: &ThreadState) -> Result<SavedContext> {
    let register = |index: usize| bytes.u64_at(40 + 8 * index);
    let state = ThreadState {
        r8: register(0)?,
        r9: register(1)?,
        r10: register(2)?,
        r11: register(3)?,
        r12: register(4)?,
        r13: register(5)?,
        r14: register(6)?,
        r15: register(7)?,
        rdi: register(8)?,
        rsi: register(9)?,
        rbp: register(10)?,
        rbx: register(11)?,
        rdx: register(12)?,
        rax: register(13)?,
        rcx: register(14)?,
        rsp: register(15)?,
        rip: register(16)?,
        rflags: (register(17)? & USER_FLAGS) | (current.rflags & !USER_FLAGS),
        fs_base: current.fs_base,
        gs_base: current.gs_base,
    };
    Ok(SavedContext {
        state,
        mask: SignalSet::from_bits(bytes.u64_at(296)?),
        stack: stack(&bytes[16..40]),
        extended_at: bytes.u64_at(224)?,
    })
}

/// The size of the extended state in a frame, from its first 512 bytes: `expected` if they describe
/// that, else 512, the legacy part alone.
pub fn extended_size(legacy: &[u8; LEGACY_SIZE], expected: usize) -> usize {
    let magic = legacy.u32_at(SOFTWARE_AREA) == Ok(MAGIC_START);
    let size = legacy.u32_at(SOFTWARE_AREA + 16).unwrap_or(0) as usize;
    if magic && size == expected { expected } else { LEGACY_SIZE }
}

/// Whether these are the bytes that mark the end of the extended state.
pub fn has_end_mark(bytes: &[u8; 4]) -> bool {
    *bytes == MAGIC_END.to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(on_stack: bool) -> Frame {
        let action =
            Action { disposition: Disposition::Handler(0x1000), restorer: Some(0x2000), ..Action::default() };
        let stack = AlternateStack { base: 0x10000, size: 0x4000, auto_disarm: false };
        Frame {
            signal: Signal::SEGV,
            information: Fault::NotPermitted.at(0xabc),
            action,
            handler: 0x1000,
            saved_mask: SignalSet::of(&[Signal::HUP]),
            stack: if on_stack { stack } else { AlternateStack::default() },
            on_stack,
        }
    }

    #[test]
    fn a_frame_can_be_read_back() {
        let state = ThreadState {
            rax: 1,
            r15: 15,
            rsp: 0x7fff_0123,
            rip: 0x4444,
            rflags: 0x246,
            ..Default::default()
        };
        let mut extended = vec![0; 832];
        extended[512] = 7;
        let built = build_frame(&frame(false), &state, &extended, (6, 14, 0xabc)).unwrap();
        assert_eq!(built.address % 16, 8, "as after a call");
        assert!(built.address + built.bytes.len() as u64 <= state.rsp - RED_ZONE);
        assert_eq!(built.bytes.u64_at(0), Ok(0x2000));
        assert_eq!((built.state.rdi, built.state.rip, built.state.rsp), (11, 0x1000, built.address));
        let information = (built.state.rsi - built.address) as usize;
        assert_eq!((built.bytes.i32_at(information), built.bytes.i32_at(information + 8)), (Ok(11), Ok(2)));
        assert_eq!(built.bytes.u64_at(information + 16), Ok(0xabc));
        let context = built.bytes[8..].first_chunk().unwrap();
        let saved = read_context(context, &state).unwrap();
        assert_eq!(saved.state, state);
        assert_eq!(saved.mask, SignalSet::of(&[Signal::HUP]));
        assert_eq!(saved.stack, Ok(AlternateStack::default()));
        let at = (saved.extended_at - built.address) as usize;
        assert_eq!(saved.extended_at % 64, 0);
        let legacy = built.bytes[at..].first_chunk().unwrap();
        assert_eq!(extended_size(legacy, 832), 832);
        assert_eq!(extended_size(legacy, 4096), 512);
        assert!(has_end_mark(built.bytes[at + 832..].first_chunk().unwrap()));
        let hostile = ThreadState { rflags: 0x3246, ..state };
        let context = context_with_flags(&built, u64::MAX);
        assert_eq!(read_context(&context, &hostile).unwrap().state.rflags, 0x3246 | USER_FLAGS);
    }

    fn context_with_flags(built: &BuiltFrame, flags: u64) -> [u8; CONTEXT_SIZE] {
        let mut context: [u8; CONTEXT_SIZE] = *built.bytes[8..].first_chunk().unwrap();
        context[40 + 17 * 8..40 + 18 * 8].copy_from_slice(&flags.to_le_bytes());
        context
    }

    #[test]
    fn a_frame_goes_to_the_alternate_stack_and_is_refused_without_room() {
        let state = ThreadState { rsp: 0x7fff_0000, ..Default::default() };
        let built = build_frame(&frame(true), &state, &[0; 576], (0, 0, 0)).unwrap();
        assert!(built.address > 0x10000 && built.address < 0x14000);
        let nested = ThreadState { rsp: 0x10200, ..state };
        assert!(
            build_frame(&frame(true), &nested, &[0; 576], (0, 0, 0)).is_err(),
            "the alternate stack is full"
        );
        let none = ThreadState { rsp: 16, ..state };
        assert!(build_frame(&frame(false), &none, &[0; 576], (0, 0, 0)).is_err());
        let mut no_restorer = frame(false);
        no_restorer.action.restorer = None;
        assert!(build_frame(&no_restorer, &state, &[0; 576], (0, 0, 0)).is_err());
    }

    #[test]
    fn actions_and_stacks_survive_conversion_both_ways() {
        let bytes = Writer::<32>::new().u64(0, 0x1234).u64(8, 0xdc00_0007).u64(16, 0x99).u64(24, 5).done();
        let read = action(&bytes).unwrap();
        assert_eq!(read.disposition, Disposition::Handler(0x1234));
        assert_eq!(read.restorer, Some(0x99));
        assert_eq!(to_action(&read), bytes);
        let bytes = Writer::<24>::new().u64(0, 0x1000).u32(8, 4).u64(16, 0x2000).done();
        assert_eq!(stack(&bytes), Err(Error::EINVAL));
        let set = AlternateStack { base: 0x1000, size: 0x2000, auto_disarm: true };
        assert_eq!(stack(&to_stack(&set, 0)), Ok(set));
    }

    #[test]
    fn wait_statuses_have_linux_layout() {
        assert_eq!(wait_status(ChildEvent::Exited(3)), 0x300);
        assert_eq!(wait_status(ChildEvent::Killed(Signal::KILL)), 9);
        assert_eq!(wait_status(ChildEvent::Stopped(Signal::TSTP)), 0x147f);
        assert_eq!(wait_status(ChildEvent::Continued), 0xffff);
    }

    #[test]
    fn a_program_cannot_forge_information_of_the_system() {
        // The code of sigqueue(3).
        const SI_QUEUE: i32 = -1;
        let bytes = Writer::<128>::new().i32(8, SI_QUEUE).u32(16, 5).u64(24, 77).done();
        let read = information(Signal::USR1, &bytes, false).unwrap();
        assert_eq!(to_information(&read)[8..32], bytes[8..32]);
        let forged = Writer::<128>::new().i32(8, 0).done();
        assert_eq!(information(Signal::USR1, &forged, false), Err(Error::EPERM));
        assert!(information(Signal::USR1, &forged, true).is_ok());
    }
}
