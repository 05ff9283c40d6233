//! Start-up of a native program: the kernel enters it with no stack and nothing in the registers
//! (ABI 2).

use crate::{ipc, kernel_interface};
use x2::Time;

/// The size in bytes of the stack of a program's first thread.
pub const STACK_SIZE: usize = 64 * 1024;

/// Memory for a stack of `SIZE` bytes.
#[repr(C, align(4096))]
#[derive(Debug)]
pub struct Stack<const SIZE: usize = STACK_SIZE>(core::cell::UnsafeCell<[u8; SIZE]>);

// SAFETY: no reference to the content is ever made; only the thread that starts on the stack uses
// it.
unsafe impl<const SIZE: usize> Sync for Stack<SIZE> {}

impl<const SIZE: usize> Stack<SIZE> {
    /// An empty stack.
    pub const fn new() -> Self {
        Self(core::cell::UnsafeCell::new([0; SIZE]))
    }

    /// The initial stack pointer of a thread that uses this stack.
    pub fn top(&self) -> u64 {
        self.0.get() as u64 + SIZE as u64
    }
}

impl<const SIZE: usize> Default for Stack<SIZE> {
    fn default() -> Self {
        Self::new()
    }
}

/// Initialises the library, then runs the program. Called by [`program!`](crate::program!) on the
/// program's stack.
pub fn run(main: fn() -> !) -> ! {
    kernel_interface::init();
    main()
}

/// Initialises the library and runs the program like [`run`], in an owned space, where the
/// KernelInterface instruction is not allowed.
///
/// # Safety
/// `kip` must be the address of the kernel interface page in this space.
pub unsafe fn run_with_kip(main: fn() -> !, kip: u64) -> ! {
    kernel_interface::init_at(kip);
    main()
}

/// Stops the calling thread for ever: a thread cannot delete itself, so it sleeps.
pub fn halt() -> ! {
    loop {
        ipc::sleep(Time::NEVER);
    }
}

/// Defines the entry of a program whose `main` is `fn() -> !`. Built for the host (where it is only
/// checked), the program says that it cannot run there. A program for an owned space passes the
/// address of the kernel interface page as `kip`, since it cannot ask the kernel for it. A program
/// that needs more stack than [`STACK_SIZE`] bytes passes the size as `stack`.
#[macro_export]
macro_rules! program {
    ($main:path) => {
        $crate::program!(@entry $main, $crate::start::STACK_SIZE, $crate::start::run($main));
    };
    ($main:path, kip = $kip:expr) => {
        $crate::program!($main, kip = $kip, stack = $crate::start::STACK_SIZE);
    };
    ($main:path, kip = $kip:expr, stack = $stack:expr) => {
        // SAFETY: the creator of the space has mapped the page at this address; the program
        // declares that.
        $crate::program!(@entry $main, $stack, unsafe { $crate::start::run_with_kip($main, $kip) });
    };
    (@entry $main:path, $stack:expr, $run:expr) => {
        #[cfg(target_os = "none")]
        const _: () = {
            static FIRST_STACK: $crate::start::Stack<{ $stack }> = $crate::start::Stack::new();

            // SAFETY: the linker script makes this function the entry of the program; no other code
            // calls it.
            #[unsafe(no_mangle)]
            #[unsafe(link_section = ".text.entry")]
            #[unsafe(naked)]
            unsafe extern "C" fn _start() -> ! {
                core::arch::naked_asm!(
                    "lea rsp, [rip + {stack} + {size}]",
                    "xor ebp, ebp",
                    "cld",
                    "call {rust_start}",
                    "ud2",
                    stack = sym FIRST_STACK,
                    size = const $stack,
                    rust_start = sym rust_start,
                )
            }

            extern "C" fn rust_start() -> ! {
                $run
            }
        };

        #[cfg(not(target_os = "none"))]
        fn main() {
            let _: fn() -> ! = $main;
            panic!("this program runs on Macadamia");
        }
    };
}

#[cfg(target_os = "none")]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    match panic_hook::get() {
        Some(hook) => hook(info),
        None => {
            crate::println!("{info}");
            halt()
        }
    }
}

/// A function that is called on a panic, instead of printing it and halting the thread.
pub type PanicHook = fn(&core::panic::PanicInfo<'_>) -> !;

pub use panic_hook::set as set_panic_hook;

mod panic_hook {
    use super::PanicHook;
    use core::sync::atomic::{AtomicPtr, Ordering};

    static HOOK: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

    /// Makes `hook` the function that is called on a panic of any thread of the program.
    pub fn set(hook: PanicHook) {
        HOOK.store(hook as *mut (), Ordering::Release);
    }

    #[cfg(target_os = "none")]
    pub(super) fn get() -> Option<PanicHook> {
        let hook = HOOK.load(Ordering::Acquire);
        // SAFETY: a pointer that is not null was stored by `set`, from a function of this type.
        if hook.is_null() { None } else { Some(unsafe { core::mem::transmute::<*mut (), PanicHook>(hook) }) }
    }
}
