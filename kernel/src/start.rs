//! The kernel's beginning, in order: what each step needs is there before it.
use crate::boot::BootInformation;
use crate::{arch, log};

/// Called by the boot code on the processor's own stack and the final page tables. Never returns.
pub fn start(boot: &'static BootInformation) -> ! {
    for range in boot.memory() {
        log::debug!("memory {:#014x}..{:#014x} {:?}", range.start, range.end, range.kind);
    }
    for (number, module) in boot.modules().iter().enumerate() {
        log::info!(
            "module {number}: {:#x}..{:#x} {}",
            module.start,
            module.end,
            boot.module_command_line(module)
        );
    }
    arch::stop()
}
