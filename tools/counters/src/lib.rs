//! The lab's counters: a QEMU TCG plugin (docs/src/measuring.md).
//!
//! Under `-icount shift=0` the guest's time-stamp counter counts instructions, and instructions are
//! not cycles. This plugin counts events that a number of instructions hides, for each processor,
//! and for kernel and user separately: serialising instructions by kind, writes of FS and GS base,
//! locked operations, port and memory-mapped I/O, inter-processor interrupts, cache lines touched,
//! bytes moved in bulk, and the misses of a parametrised model of caches and TLBs.
//!
//! A plugin does not see registers, so a guest marks the code to be counted by instructions: the
//! NOP `0F 1F 80 imm32` whose displacement is `0x4D4C_kkii`: kind `kk` (1 begin, 2 end, 3 pause, 4
//! resume) and a number `ii` that names the region. `begin` on any processor clears the counters of
//! all and starts counting on all; `end` stops and writes one line of JSON for each processor that
//! ran; between `pause` and `resume` nothing is counted, and the counters keep their values. Marks
//! are not counted. Caches and TLBs of the model stay warm from one region to the next.
//!
//! ```text
//! qemu-system-x86_64 ... -plugin liblab_counters.so,out=counts.jsonl,l1d=32768/8,l2=1048576/16
//! ```

pub mod cache;
pub mod counts;
pub mod decode;
pub mod latency;
mod plugin;
pub mod profile;
pub mod settings;
pub mod work;
