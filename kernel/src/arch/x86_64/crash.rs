//! The kernel goes wrong, on demand of the debugger: each way must end in a report, never in
//! silence or a reset.

use core::arch::asm;
use core::hint::black_box;

use super::layout;
use crate::arch::Crash;

/// Makes the kernel go wrong in this way. Returns only if the protection that should stop it is
/// missing.
pub fn crash(how: Crash) {
    const UNMAPPED: *const u64 = 0x1000 as *const u64;
    let code = layout::image_start() as *mut u8;
    // SAFETY: the point is that none of this is possible: the processor refuses each access before
    // anything happens. If it does not, a byte of code that is no longer needed (boot) is written
    // with itself.
    unsafe {
        match how {
            Crash::Panic => panic!("asked for by the debugger"),
            Crash::Fault => drop(black_box(UNMAPPED.read_volatile())),
            // In entry code the stack pointer is another's, or none, and what the processor pushed
            // there would be lost, too.
            Crash::Entry => {
                asm!("mov rsp, {0}", "mov {0}, [{0}]", "ud2", in(reg) UNMAPPED, options(noreturn))
            }
            Crash::Stack => drop(black_box(descend(1))),
            Crash::Code => code.write_volatile(code.read_volatile()),
            Crash::CodeAlias => {
                let alias = layout::phys_to_virt(layout::image_to_phys(code));
                alias.write_volatile(alias.read_volatile());
            }
            Crash::Data => {
                static RETURN: [u8; 1] = [0xc3];
                let data: extern "C" fn() = core::mem::transmute(RETURN.as_ptr());
                data();
            }
        }
    }
}

/// Uses more stack with each call of itself, until the stack overflows.
#[allow(unconditional_recursion, reason = "the stack is to run out")]
fn descend(depth: u64) -> u64 {
    let here = black_box([depth; 64]);
    descend(depth + 1) + here[3]
}
