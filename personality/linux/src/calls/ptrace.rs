//! ptrace(2).

use crate::call::{Call, Done};
use crate::layout::registers::{
    DEBUG_REGISTERS, LEGACY_SIZE, REGISTERS_SIZE, USER_SIZE, extended, registers, to_extended, to_registers,
};
use crate::layout::signal::{information, optional_signal, signal, stop_code, to_information};
use crate::layout::{Fields, Writer};
use alloc::sync::Arc;
use alloc::vec::Vec;
use mach::Machine;
use unix::process::{Pid, TraceOptions, TraceResume, TraceStop, Tracing};
use unix::signal::{Signal, SignalInformation, SignalSet};
use unix::thread::Thread;
use unix::{Error, Result};

const TRACEME: u32 = 0;
const PEEKTEXT: u32 = 1;
const PEEKDATA: u32 = 2;
const PEEKUSER: u32 = 3;
const POKETEXT: u32 = 4;
const POKEDATA: u32 = 5;
const POKEUSER: u32 = 6;
const CONT: u32 = 7;
const KILL: u32 = 8;
const SINGLESTEP: u32 = 9;
const GETREGS: u32 = 12;
const SETREGS: u32 = 13;
const GETFPREGS: u32 = 14;
const SETFPREGS: u32 = 15;
const ATTACH: u32 = 16;
const DETACH: u32 = 17;
const SYSCALL: u32 = 24;
const SYSEMU: u32 = 31;
const SYSEMU_SINGLESTEP: u32 = 32;
const SETOPTIONS: u32 = 0x4200;
const GETEVENTMSG: u32 = 0x4201;
const GETSIGINFO: u32 = 0x4202;
const SETSIGINFO: u32 = 0x4203;
const GETREGSET: u32 = 0x4204;
const SETREGSET: u32 = 0x4205;
const SEIZE: u32 = 0x4206;
const INTERRUPT: u32 = 0x4207;
const LISTEN: u32 = 0x4208;
const GETSIGMASK: u32 = 0x420a;
const SETSIGMASK: u32 = 0x420b;
const GET_SYSCALL_INFO: u32 = 0x420e;

const NT_PRSTATUS: u64 = 1;
const NT_PRFPREG: u64 = 2;
const NT_X86_XSTATE: u64 = 0x202;

const TRACESYSGOOD: u64 = 1;
const EVENTS: u64 = 0xfe;
const EXITKILL: u64 = 1 << 20;

/// A stopped tracee of the caller.
struct Tracee<'a, 'b, M: Machine> {
    call: &'a Call<'b, M>,
    tid: Pid,
    thread: Arc<Thread<M>>,
}

/// ptrace(2).
pub(crate) async fn ptrace<M: Machine>(call: &Call<'_, M>) -> Done {
    let (request, own) = (call.uint(0), call.tid());
    if request == TRACEME {
        call.table(|table| table.trace_me(own))?;
        call.thread.observe_calls();
        return Ok(0);
    }
    let tid = call.id(call.int(1))?;
    let thread = call.system().thread(tid).ok_or(Error::ESRCH)?;
    match request {
        ATTACH | SEIZE => {
            let seize = match request {
                SEIZE if call.arg(2) != 0 => return Err(Error::EIO.into()),
                SEIZE => Some(options(call.arg(3)).map_err(|_| Error::EIO)?),
                _ => None,
            };
            call.table(|table| table.attach(own, tid, seize))?;
            thread.observe_calls();
        }
        INTERRUPT => call.table(|table| table.interrupt_tracee(own, tid))?,
        LISTEN => call.table(|table| table.listen_for_tracee(own, tid))?,
        KILL => call.table(|table| {
            table.tracee(own, tid)?;
            table.generate_for_thread(tid, SignalInformation::system(Signal::KILL));
            Ok::<_, Error>(())
        })?,
        CONT | SYSCALL | SINGLESTEP | SYSEMU | SYSEMU_SINGLESTEP | DETACH => {
            call.table(|table| table.stopped_tracee(own, tid).map(drop))?;
            // A number that is no signal: `EIO`.
            let signal = optional_signal(call.arg(3)).map_err(|_| Error::EIO)?;
            let how = match request {
                SYSCALL => TraceResume::Calls,
                SINGLESTEP => TraceResume::Step,
                SYSEMU => TraceResume::Emulate,
                SYSEMU_SINGLESTEP => TraceResume::EmulateStep,
                _ => TraceResume::Run,
            };
            call.table(|table| match request {
                DETACH => table.detach(own, tid, signal),
                _ => table.resume_tracee(own, tid, how, signal),
            })?;
        }
        _ => {
            call.table(|table| table.stopped_tracee(own, tid).map(drop))?;
            return Tracee { call, tid, thread }.serve(request, call.arg(2), call.arg(3)).await;
        }
    }
    Ok(0)
}

/// The options of PTRACE_SETOPTIONS and PTRACE_SEIZE. `EINVAL` for unknown ones.
fn options(bits: u64) -> Result<TraceOptions> {
    if bits & !(TRACESYSGOOD | EVENTS | EXITKILL) != 0 {
        return Err(Error::EINVAL);
    }
    Ok(TraceOptions {
        marks_calls: bits & TRACESYSGOOD != 0,
        kills_at_exit: bits & EXITKILL != 0,
        events: (bits & EVENTS) as u8,
    })
}

/// The number of the debug register at this offset in struct user, a multiple of 8.
fn debug_register(address: u64) -> Option<usize> {
    let offset = address.checked_sub(DEBUG_REGISTERS)?;
    usize::try_from(offset / 8).ok()
}

impl<M: Machine> Tracee<'_, '_, M> {
    /// Serves a request that needs a stopped tracee and leaves it stopped.
    async fn serve(&self, request: u32, address: u64, data: u64) -> Done {
        let call = self.call;
        match request {
            PEEKTEXT | PEEKDATA => {
                let mut word = [0; 8];
                if self.thread.memory().peek(address, &mut word).await? < word.len() {
                    return Err(Error::EIO.into());
                }
                call.write(data, &word).await?;
            }
            POKETEXT | POKEDATA => {
                let word = data.to_le_bytes();
                if self.thread.memory().poke(address, &word).await? < word.len() {
                    return Err(Error::EIO.into());
                }
            }
            PEEKUSER => call.write(data, &self.peek_user(address)?.to_le_bytes()).await?,
            POKEUSER => self.poke_user(address, data)?,
            GETREGS => call.write(data, &self.registers()?).await?,
            SETREGS => self.set_registers(&call.read(data).await?)?,
            GETFPREGS => call.write(data, &self.extended()?[..LEGACY_SIZE]).await?,
            SETFPREGS => self.set_legacy(&call.read::<LEGACY_SIZE>(data).await?)?,
            GETREGSET => self.get_set(address, data).await?,
            SETREGSET => self.set_set(address, data).await?,
            SETOPTIONS => {
                let options = options(data)?;
                call.table(|table| table.set_trace_options(call.tid(), self.tid, options))?;
            }
            GETEVENTMSG => call.write(data, &self.tracing(Tracing::message)?.to_le_bytes()).await?,
            GETSIGINFO => call.write(data, &self.information()?).await?,
            SETSIGINFO => self.set_information(&call.read(data).await?)?,
            GETSIGMASK | SETSIGMASK if address != 8 => return Err(Error::EINVAL.into()),
            GETSIGMASK => {
                let mask = call.table(|table| table.thread(self.tid).map(|thread| thread.blocked()))?;
                call.write(data, &mask.bits().to_le_bytes()).await?;
            }
            SETSIGMASK => {
                let mask = SignalSet::from_bits(u64::from_le_bytes(call.read(data).await?));
                call.table(|table| table.set_mask(self.tid, mask))?;
            }
            GET_SYSCALL_INFO => return self.call_information(address, data).await,
            _ => return Err(Error::EIO.into()),
        }
        Ok(0)
    }

    /// What `read` finds in the record of the tracee. `ESRCH`.
    fn tracing<T>(&self, read: impl FnOnce(&Tracing) -> T) -> Result<T> {
        self.call.table(|table| table.stopped_tracee(self.call.tid(), self.tid).map(|tracing| read(tracing)))
    }

    fn registers(&self) -> Result<[u8; REGISTERS_SIZE]> {
        Ok(to_registers(&self.thread.registers()?, self.tracing(Tracing::call)?))
    }

    fn set_registers(&self, bytes: &[u8; REGISTERS_SIZE]) -> Result<()> {
        let (state, number) = registers(bytes, &self.thread.registers()?)?;
        self.thread.set_registers(&state).map_err(|_| Error::EIO)?;
        let own = self.call.tid();
        self.call.table(|table| table.stopped_tracee(own, self.tid).map(|tracing| tracing.set_call(number)))
    }

    fn extended(&self) -> Result<Vec<u8>> {
        Ok(to_extended(
            self.thread.extended_state()?,
            self.call.linux.processor.extended_size.max(LEGACY_SIZE),
        ))
    }

    fn set_legacy(&self, legacy: &[u8; LEGACY_SIZE]) -> Result<()> {
        /// The components of the extended state that the first 512 bytes hold.
        const LEGACY: u8 = 3;
        let mut whole = self.extended()?;
        whole[..LEGACY_SIZE].copy_from_slice(legacy);
        if let Some(present) = whole.get_mut(LEGACY_SIZE) {
            *present |= LEGACY;
        }
        self.thread.set_extended_state(&extended(whole))
    }

    /// A word of struct user. `EIO` for an address that is none.
    fn peek_user(&self, address: u64) -> Result<u64> {
        if !address.is_multiple_of(8) || address >= USER_SIZE {
            return Err(Error::EIO);
        }
        match usize::try_from(address) {
            Ok(at) if at < REGISTERS_SIZE => self.registers()?.u64_at(at),
            _ => Ok(debug_register(address).map_or(0, |number| self.thread.debug_register(number))),
        }
    }

    /// Sets a word of struct user.
    fn poke_user(&self, address: u64, value: u64) -> Result<()> {
        if !address.is_multiple_of(8) || address >= USER_SIZE {
            return Err(Error::EIO);
        }
        match usize::try_from(address) {
            Ok(at) if at < REGISTERS_SIZE => {
                let mut bytes = self.registers()?;
                bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
                self.set_registers(&bytes)
            }
            _ => {
                let number = debug_register(address).ok_or(Error::EIO)?;
                self.thread.set_debug_register(number, value)
            }
        }
    }

    /// The struct iovec at `at`. Address and length.
    async fn vector(&self, at: u64) -> Result<(u64, usize)> {
        let bytes: [u8; 16] = self.call.read(at).await?;
        Ok((bytes.u64_at(0)?, usize::try_from(bytes.u64_at(8)?).unwrap_or(usize::MAX)))
    }

    /// PTRACE_GETREGSET: as much of a set of registers as there is room for.
    async fn get_set(&self, kind: u64, vector: u64) -> Result<()> {
        let (base, length) = self.vector(vector).await?;
        let set = match kind {
            NT_PRSTATUS => self.registers()?.to_vec(),
            NT_PRFPREG => self.extended()?[..LEGACY_SIZE].to_vec(),
            NT_X86_XSTATE => self.extended()?,
            _ => return Err(Error::EINVAL),
        };
        if !length.is_multiple_of(8) {
            return Err(Error::EINVAL);
        }
        let count = length.min(set.len());
        self.call.write(base, &set[..count]).await?;
        self.call.write(vector + 8, &(count as u64).to_le_bytes()).await
    }

    /// PTRACE_SETREGSET.
    async fn set_set(&self, kind: u64, vector: u64) -> Result<()> {
        let (base, length) = self.vector(vector).await?;
        let mut set = match kind {
            NT_PRSTATUS => self.registers()?.to_vec(),
            NT_PRFPREG => self.extended()?[..LEGACY_SIZE].to_vec(),
            NT_X86_XSTATE => self.extended()?,
            _ => return Err(Error::EINVAL),
        };
        if !length.is_multiple_of(8) {
            return Err(Error::EINVAL);
        }
        let count = length.min(set.len());
        // The extended state is set as a whole.
        if kind == NT_X86_XSTATE && count < set.len() {
            return Err(Error::EFAULT);
        }
        self.call.memory().copy_in(base, &mut set[..count]).await?;
        match kind {
            NT_PRSTATUS => self.set_registers(set.first_chunk().ok_or(Error::EIO)?)?,
            NT_PRFPREG => self.set_legacy(set.first_chunk().ok_or(Error::EIO)?)?,
            _ => self.thread.set_extended_state(&extended(set))?,
        }
        self.call.write(vector + 8, &(count as u64).to_le_bytes()).await
    }

    /// PTRACE_GETSIGINFO: of a signal, or of the stop. `EINVAL` if a signal has stopped the whole
    /// process, by which tracers that did not seize it tell this stop from others.
    fn information(&self) -> Result<[u8; 128]> {
        let (stop, report, own) =
            self.tracing(|tracing| (tracing.stop(), tracing.information(), tracing.is_seized()))?;
        if let Some(information) = report {
            return Ok(to_information(&information));
        }
        const STOP: u8 = 128;
        let trap = |event, is_call| (Signal::TRAP, stop_code(Signal::TRAP, event, is_call));
        let (signal, code) = match stop {
            Some(TraceStop::Group(signal)) if own => (signal, stop_code(signal, STOP, false)),
            Some(TraceStop::Interrupt) => trap(STOP, false),
            Some(TraceStop::Call { .. }) => trap(0, self.tracing(|tracing| tracing.options().marks_calls)?),
            Some(TraceStop::Event(event, _)) => trap(event.number(), false),
            Some(TraceStop::Handler) => trap(0, false),
            _ => return Err(Error::EINVAL),
        };
        let user = self.call.users().shown_user(self.thread.credentials().user.real);
        let number = i32::from(signal.number());
        let pid = self.call.number(self.tid);
        Ok(Writer::new().i32(0, number).i32(8, code as i32).u32(16, pid).u32(20, user).done())
    }

    /// PTRACE_SETSIGINFO: changes the signal that the tracee is about to take.
    fn set_information(&self, bytes: &[u8; 128]) -> Result<()> {
        let signal = signal(u64::from(bytes.u32_at(0)?))?;
        let new = information(signal, bytes, true)?;
        let own = self.call.tid();
        self.call.table(|table| {
            let tracing = table.stopped_tracee(own, self.tid)?;
            tracing.information().ok_or(Error::EINVAL)?;
            tracing.set_information(new);
            Ok(())
        })
    }

    /// PTRACE_GET_SYSCALL_INFO: writes as much as there is room for, and returns how much there is.
    async fn call_information(&self, room: u64, to: u64) -> Done {
        const X86_64: u32 = 0xc000_003e;
        let state = self.thread.registers()?;
        let (stop, number) = self.tracing(|tracing| (tracing.stop(), tracing.call().unwrap_or(u64::MAX)))?;
        let head = Writer::<88>::new().u32(4, X86_64).u64(8, state.rip).u64(16, state.rsp);
        let with_call = |head: Writer<88>, kind: u8| {
            let arguments = [state.rdi, state.rsi, state.rdx, state.r10, state.r8, state.r9];
            let head = head.bytes(0, &[kind]).u64(24, number);
            arguments.into_iter().enumerate().fold(head, |head, (index, word)| head.u64(32 + 8 * index, word))
        };
        let (bytes, size) = match stop {
            Some(TraceStop::Call { is_entry: true }) => (with_call(head, 1).done(), 80),
            Some(TraceStop::Call { is_entry: false }) => {
                let is_error = (state.rax as i64) < 0 && (state.rax as i64) >= -4095;
                (head.bytes(0, &[2]).u64(24, state.rax).bytes(32, &[is_error.into()]).done(), 33)
            }
            Some(TraceStop::Event(unix::process::TraceEvent::Filter, message)) => {
                (with_call(head, 3).u32(80, message as u32).done(), 84)
            }
            _ => (head.done(), 24),
        };
        let count = usize::try_from(room).unwrap_or(usize::MAX).min(size);
        self.call.write(to, &bytes[..count]).await?;
        Ok(size as u64)
    }
}
