//! The connection to QEMU: the plugin interface, version 1 (QEMU 4.2 to 8.1), declared here because
//! Debian packages no header. Only callback forms are used: the inline forms changed in later
//! versions.

use crate::counts::{Access, Mode, Processor};
use crate::decode::{self, Kind, Special};
use crate::latency::{Effect, Latency};
use crate::profile::{Count, Profile};
use crate::settings::Settings;
use crate::work::{Block, Work};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

type PluginId = u64;

/// `struct qemu_info_t`, with the fields that are used.
#[repr(C)]
struct Info {
    target_name: *const c_char,
    minimum_version: c_int,
    current_version: c_int,
    system_emulation: bool,
    smp_vcpus: c_int,
    max_vcpus: c_int,
}

/// An opaque object of QEMU.
#[repr(C)]
struct Opaque([u8; 0]);

const NO_REGISTERS: c_int = 0;
const WRITE: c_int = 2;
const READ_AND_WRITE: c_int = 3;

unsafe extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(id: PluginId, callback: extern "C" fn(PluginId, *mut Opaque));
    fn qemu_plugin_tb_n_insns(block: *const Opaque) -> usize;
    fn qemu_plugin_tb_get_insn(block: *const Opaque, index: usize) -> *mut Opaque;
    fn qemu_plugin_insn_data(instruction: *const Opaque) -> *const u8;
    fn qemu_plugin_insn_size(instruction: *const Opaque) -> usize;
    fn qemu_plugin_insn_vaddr(instruction: *const Opaque) -> u64;
    fn qemu_plugin_insn_haddr(instruction: *const Opaque) -> *mut c_void;
    fn qemu_plugin_register_vcpu_insn_exec_cb(
        instruction: *mut Opaque,
        callback: extern "C" fn(c_uint, *mut c_void),
        registers: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_register_vcpu_tb_exec_cb(
        block: *mut Opaque,
        callback: extern "C" fn(c_uint, *mut c_void),
        registers: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_register_vcpu_mem_cb(
        instruction: *mut Opaque,
        callback: extern "C" fn(c_uint, u32, u64, *mut c_void),
        registers: c_int,
        which: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_get_hwaddr(information: u32, address: u64) -> *mut Opaque;
    fn qemu_plugin_hwaddr_is_io(address: *const Opaque) -> bool;
    fn qemu_plugin_hwaddr_phys_addr(address: *const Opaque) -> u64;
    fn qemu_plugin_mem_size_shift(information: u32) -> c_uint;
    fn qemu_plugin_mem_is_store(information: u32) -> bool;
    fn qemu_plugin_register_atexit_cb(
        id: PluginId,
        callback: extern "C" fn(PluginId, *mut c_void),
        data: *mut c_void,
    );
}

/// The version of the plugin interface, which QEMU reads from this symbol.
#[unsafe(no_mangle)]
#[used]
static qemu_plugin_version: c_int = 1;

/// A guest instruction that was translated. It is leaked, because QEMU keeps the pointer as long as
/// it runs.
struct Instruction {
    address: u64,
    place: u64,
    kind: Kind,
    /// The instruction's effect on a stretch without interrupts.
    effect: Effect,
    /// How often the instruction was executed, if a profile is wanted.
    count: Option<&'static Count>,
}

struct State {
    processors: Vec<Mutex<Processor>>,
    out: Mutex<File>,
    counting: AtomicBool,
    /// The latency of each processor, if that is measured.
    latency: Option<Vec<Mutex<Latency>>>,
    /// The work of each processor, if that is measured.
    work: Option<Vec<Mutex<Work>>>,
    /// Whether the bytes that string instructions write are part of the work.
    bulk: bool,
    /// How often each instruction was executed, if a profile is wanted.
    profile: Option<Profile>,
}

static STATE: OnceLock<State> = OnceLock::new();

/// The function that QEMU calls first. Returns 0 for success; any other value ends QEMU.
///
/// # Safety
/// Called once by QEMU, with `info` and `argc` strings in `argv` valid during the call.
#[unsafe(no_mangle)]
unsafe extern "C" fn qemu_plugin_install(
    id: PluginId,
    info: *const Info,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    // SAFETY: QEMU passes a valid structure and `argc` valid strings.
    let (info, arguments) = unsafe {
        let arguments: Vec<String> = (0..argc as usize)
            .map(|index| CStr::from_ptr(*argv.add(index)).to_string_lossy().into_owned())
            .collect();
        (&*info, arguments)
    };
    match prepare(info, &arguments) {
        Ok(state) => {
            if STATE.set(state).is_err() {
                eprintln!("lab-counters: loaded twice");
                return 1;
            }
        }
        Err(reason) => {
            eprintln!("lab-counters: {reason}");
            return 1;
        }
    }
    // SAFETY: `id` is this plugin's. The callbacks exist as long as the library, which is never
    // unloaded.
    unsafe {
        qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
        qemu_plugin_register_atexit_cb(id, exiting, std::ptr::null_mut());
    }
    0
}

fn prepare(info: &Info, arguments: &[String]) -> Result<State, String> {
    let settings = Settings::parse(arguments.iter().map(String::as_str))?;
    if !info.system_emulation {
        return Err("counts whole systems only, not user-mode emulation".to_string());
    }
    let out =
        File::create(&settings.out).map_err(|error| format!("cannot write {}: {error}", settings.out))?;
    let processors = (0..info.max_vcpus.max(1)).map(|_| Mutex::new(Processor::new(&settings))).collect();
    let latency = settings
        .latency
        .then(|| (0..info.max_vcpus.max(1)).map(|_| Mutex::new(Latency::default())).collect());
    let work =
        settings.work.then(|| (0..info.max_vcpus.max(1)).map(|_| Mutex::new(Work::default())).collect());
    let profile = match settings.profile.as_str() {
        "" => None,
        file => Some(Profile::new(file).map_err(|error| format!("cannot write {file}: {error}"))?),
    };
    Ok(State {
        processors,
        out: Mutex::new(out),
        counting: AtomicBool::new(false),
        latency,
        work,
        bulk: settings.bulk,
        profile,
    })
}

extern "C" fn translated(_id: PluginId, block: *mut Opaque) {
    if STATE.get().is_some_and(|state| state.work.is_some()) {
        return translated_for_work(block);
    }
    // SAFETY: QEMU's translation block, its instructions and their bytes are valid during this
    // callback. The leaked data that is registered with them is never freed.
    unsafe {
        for index in 0..qemu_plugin_tb_n_insns(block) {
            let instruction = qemu_plugin_tb_get_insn(block, index);
            let bytes = bytes_of(instruction);
            let kind = decode::kind(bytes);
            let address = qemu_plugin_insn_vaddr(instruction);
            let profile = STATE.get().and_then(|state| state.profile.as_ref());
            let data = Box::leak(Box::new(Instruction {
                address,
                place: qemu_plugin_insn_haddr(instruction) as u64,
                kind,
                effect: match kind {
                    Kind::Special(Special::Iret | Special::Sysret) => Effect::Leaves,
                    _ if matches!(bytes.first(), Some(0xfb | 0xf4)) => Effect::Opens,
                    _ => Effect::None,
                },
                count: profile.map(|profile| profile.count(address, bytes)),
            }));
            let data = std::ptr::from_mut(data).cast();
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, executed, NO_REGISTERS, data);
            qemu_plugin_register_vcpu_mem_cb(instruction, accessed, NO_REGISTERS, READ_AND_WRITE, data);
        }
    }
}

/// The bytes of an instruction.
///
/// # Safety
/// `instruction` belongs to a translation block that is valid as long as the bytes are used.
unsafe fn bytes_of<'a>(instruction: *const Opaque) -> &'a [u8] {
    // SAFETY: QEMU keeps the bytes with the translation block, and says how many there are.
    unsafe {
        std::slice::from_raw_parts(qemu_plugin_insn_data(instruction), qemu_plugin_insn_size(instruction))
    }
}

/// Registers a callback for whole blocks of instructions, if only work is counted. PAUSE and HLT,
/// which matter for it, are the last instruction of a block.
fn translated_for_work(block: *mut Opaque) {
    let mut whole = Block::default();
    let profile = STATE.get().and_then(|state| state.profile.as_ref());
    let mut counts = Vec::new();
    // SAFETY: the translation block, its instructions and their bytes are valid during this
    // callback, and the leaked data is never freed.
    unsafe {
        for index in 0..qemu_plugin_tb_n_insns(block) {
            let instruction = qemu_plugin_tb_get_insn(block, index);
            let bytes = bytes_of(instruction);
            whole.address = qemu_plugin_insn_vaddr(instruction);
            whole.instructions += 1;
            counts.extend(profile.map(|profile| profile.count(whole.address, bytes)));
            if Mode::of(whole.address) == Mode::Kernel {
                let nothing = std::ptr::null_mut();
                qemu_plugin_register_vcpu_mem_cb(instruction, stored, NO_REGISTERS, WRITE, nothing);
            }
            let kind = decode::kind(bytes);
            if kind == Kind::Special(Special::Bulk) && STATE.get().is_some_and(|state| state.bulk) {
                let copied = match Mode::of(whole.address) {
                    Mode::User => user_copied,
                    Mode::Kernel => kernel_copied,
                };
                let nothing = std::ptr::null_mut();
                qemu_plugin_register_vcpu_mem_cb(instruction, copied, NO_REGISTERS, WRITE, nothing);
            }
            match kind {
                Kind::Mark(kind, region) => whole.mark = Some((kind, region)),
                Kind::Special(special) => whole.special = Some(special),
                Kind::Plain => whole.special = None,
            }
        }
        whole.counts = counts.leak();
        let data = Box::leak(Box::new(whole));
        let data = std::ptr::from_mut(data).cast();
        qemu_plugin_register_vcpu_tb_exec_cb(block, block_executed, NO_REGISTERS, data);
    }
}

extern "C" fn block_executed(processor: c_uint, data: *mut c_void) {
    let Some(state) = STATE.get() else { return };
    // SAFETY: `data` points to a block that `translated_for_work` has leaked, and that is never
    // written.
    let block: &Block = unsafe { &*data.cast() };
    if let Some((kind, region)) = block.mark {
        state.mark(kind, region);
    } else if state.counting.load(Ordering::Relaxed)
        && let Some(Ok(mut work)) =
            state.work.as_ref().and_then(|work| work.get(processor as usize)).map(Mutex::lock)
    {
        work.block(block);
    }
}

extern "C" fn user_copied(processor: c_uint, information: u32, _address: u64, _data: *mut c_void) {
    copied(processor, Mode::User, information);
}

extern "C" fn kernel_copied(processor: c_uint, information: u32, _address: u64, _data: *mut c_void) {
    copied(processor, Mode::Kernel, information);
}

/// Records what an element of a string instruction has written.
fn copied(processor: c_uint, mode: Mode, information: u32) {
    let Some(state) = STATE.get().filter(|state| state.counting.load(Ordering::Relaxed)) else { return };
    // SAFETY: `information` belongs to this access. QEMU 7.2 calls for the loads of an instruction,
    // too, that also stores.
    let (is_store, shift) =
        unsafe { (qemu_plugin_mem_is_store(information), qemu_plugin_mem_size_shift(information)) };
    if is_store
        && let Some(Ok(mut work)) =
            state.work.as_ref().and_then(|work| work.get(processor as usize)).map(Mutex::lock)
    {
        work.bulk_store(mode, 1 << shift);
    }
}

extern "C" fn stored(processor: c_uint, information: u32, address: u64, _data: *mut c_void) {
    let Some(state) = STATE.get().filter(|state| state.counting.load(Ordering::Relaxed)) else { return };
    // SAFETY: `information` and `address` belong to this access; the object is valid until the
    // callback returns.
    unsafe {
        let place = qemu_plugin_get_hwaddr(information, address);
        if !place.is_null()
            && qemu_plugin_hwaddr_is_io(place)
            && let Some(Ok(mut work)) =
                state.work.as_ref().and_then(|work| work.get(processor as usize)).map(Mutex::lock)
        {
            work.device_store(qemu_plugin_hwaddr_phys_addr(place));
        }
    }
}

/// The instruction for which a callback is called.
fn instruction_of(data: *mut c_void) -> &'static Instruction {
    // SAFETY: `data` points to an instruction that `translated` has leaked, and that is never
    // written.
    unsafe { &*data.cast() }
}

extern "C" fn executed(processor: c_uint, data: *mut c_void) {
    let Some(state) = STATE.get() else { return };
    let instruction = instruction_of(data);
    if let Some(latency) = &state.latency {
        if let Kind::Mark(kind, region) = instruction.kind {
            state.mark_latency(latency, kind, region);
        }
        if let Some(Ok(mut latency)) = latency.get(processor as usize).map(Mutex::lock) {
            latency.instruction(instruction.address, instruction.effect);
        }
        return;
    }
    if let Kind::Mark(kind, region) = instruction.kind {
        state.mark(kind, region);
    } else if state.counting.load(Ordering::Relaxed) {
        let special = match instruction.kind {
            Kind::Special(special) => Some(special),
            _ => None,
        };
        if let Some(count) = instruction.count {
            count.executed();
        }
        state.with(processor, |counts| counts.instruction(instruction.address, instruction.place, special));
    }
}

extern "C" fn accessed(processor: c_uint, information: u32, address: u64, data: *mut c_void) {
    let Some(state) = STATE.get() else { return };
    if let Some(latency) = &state.latency {
        // SAFETY: `information` and `address` belong to this access, and are valid until the
        // callback returns.
        unsafe {
            let place = qemu_plugin_get_hwaddr(information, address);
            if !place.is_null()
                && qemu_plugin_hwaddr_is_io(place)
                && let Some(Ok(mut latency)) = latency.get(processor as usize).map(Mutex::lock)
            {
                latency.device_load(qemu_plugin_hwaddr_phys_addr(place));
            }
        }
        return;
    }
    if !state.counting.load(Ordering::Relaxed) {
        return;
    }
    let instruction = instruction_of(data);
    // SAFETY: `information` and `address` belong to this access; the object is valid until the
    // callback returns.
    let access = unsafe {
        let place = qemu_plugin_get_hwaddr(information, address);
        if place.is_null() {
            return;
        }
        Access {
            virtual_address: address,
            physical_address: qemu_plugin_hwaddr_phys_addr(place),
            size: 1 << qemu_plugin_mem_size_shift(information),
            store: qemu_plugin_mem_is_store(information),
            device: qemu_plugin_hwaddr_is_io(place),
            bulk: instruction.kind == Kind::Special(Special::Bulk),
        }
    };
    state.with(processor, |counts| counts.access(instruction.address, access));
}

extern "C" fn exiting(_id: PluginId, _data: *mut c_void) {
    if let Some(state) = STATE.get().filter(|state| state.counting.load(Ordering::Relaxed)) {
        // A region was begun and never ended. The file must say so, since it would look complete
        // otherwise.
        let _ =
            state.out.lock().map(|mut out| writeln!(out, "{{\"error\":\"a region began and never ended\"}}"));
    }
}

impl State {
    fn with(&self, processor: c_uint, count: impl FnOnce(&mut Processor)) {
        if let Some(Ok(mut counts)) = self.processors.get(processor as usize).map(Mutex::lock) {
            count(&mut counts);
        }
    }

    fn mark_latency(&self, latency: &[Mutex<Latency>], kind: u8, region: u8) {
        let Ok(mut out) = self.out.lock() else { return };
        for (number, latency) in latency.iter().enumerate() {
            let Ok(mut latency) = latency.lock() else { continue };
            match kind {
                1 => latency.clear(),
                2 => {
                    // The mark is an instruction of a user program, so it ends a stretch, too.
                    if let Some(line) = latency.region(region, number) {
                        let _ = writeln!(out, "{line}");
                    }
                }
                _ => {}
            }
        }
        let _ = out.flush();
    }

    fn mark(&self, kind: u8, region: u8) {
        match kind {
            1 => {
                for processor in 0..self.processors.len() {
                    self.with(processor as c_uint, Processor::clear);
                }
                for work in self.work.iter().flatten() {
                    if let Ok(mut work) = work.lock() {
                        *work = Work::default();
                    }
                }
                if let Some(profile) = &self.profile {
                    profile.clear();
                }
                self.counting.store(true, Ordering::Relaxed);
            }
            2 if self.counting.swap(false, Ordering::Relaxed) => {
                let Ok(mut out) = self.out.lock() else { return };
                for (number, processor) in self.processors.iter().enumerate() {
                    let Ok(counts) = processor.lock() else { continue };
                    if counts.has_run() {
                        let _ = writeln!(out, "{}", counts.report(region, number));
                    }
                }
                for (number, work) in self.work.iter().flatten().enumerate() {
                    if let Ok(mut work) = work.lock() {
                        work.decide();
                        let _ = writeln!(out, "{}", work.report(region, number));
                    }
                }
                let _ = out.flush();
                if let Some(profile) = &self.profile {
                    profile.report(region);
                }
            }
            PAUSE => self.counting.store(false, Ordering::Relaxed),
            GO_ON => self.counting.store(true, Ordering::Relaxed),
            _ => {}
        }
    }
}

/// Kinds of marks within a region: nothing is counted between a pause and the mark that resumes.
const PAUSE: u8 = 3;
const GO_ON: u8 = 4;
