//! Tests of the kernel interface page (ABI 3, 4; X.2 rules 10.1-10.9).

use crate::framework::fixture::Space;
use crate::framework::tests;
use core::sync::atomic::{AtomicU64, Ordering};
use l4::kernel_interface::kernel_interface;
use l4::{kip, utcb};
use x2::kip::{self as layout, MemoryKind, UtcbInfo};
use x2::{Rights, ThreadId};

tests! {
    KIP0001 [10.2, ABI 3] "the page begins with its magic, version and flags" magic_version_flags;
    KIP0002 [ABI 4] "KernelInterface returns the page's own words" kernel_interface_words;
    KIP0003 [ABI 4] "KernelInterface changes no other register" kernel_interface_registers;
    KIP0004 [10.6] "UtcbInfo and KipAreaInfo say what this interface has" area_infos;
    KIP0005 [10.4] "ThreadInfo leaves room for interrupts and kernel threads" thread_info;
    KIP0006 [10.5] "PageInfo offers 4 KiB and 2 MiB pages and independent rights" page_info;
    KIP0007 [ABI 3] "every system call has an entry address in the kernel half" entries;
    KIP0008 [10.1] "reserved words are zero" reserved_words;
    KIP0009 [10.8, 10.9, ABI 3] "the memory descriptors give the user area and cover the initial servers" memory_descriptors;
    KIP0010 [10.3] "the kernel descriptor has an empty list of features" kernel_descriptor;
    KIP0011 [10.7] "every processor has a descriptor" processors;
    KIP0012 [2.3, 2.5b] "ClockInfo has two finite periods" clock_info;
    KIP0013 [10.1, ABI 3] "the page is the same in another space" same_in_another_space;
    KIP0014 [2.4] "the clock's smallest step is what ClockInfo says" clock_step;
    KIP0015 [EXT 1.1] "the extensions are announced with their version" extensions;
}

fn magic_version_flags() {
    assert_eq!(kip().word(layout::MAGIC), layout::MAGIC_VALUE);
    assert_eq!(kip().word(layout::API_VERSION), layout::API_VERSION_VALUE);
    assert_eq!(kip().word(layout::API_FLAGS), layout::API_FLAGS_VALUE);
}

fn kernel_interface_words() {
    for _ in 0..100 {
        let words = kernel_interface();
        assert_eq!(words.base, kip().base());
        assert_eq!(words.api_version, kip().word(layout::API_VERSION));
        assert_eq!(words.api_flags, kip().word(layout::API_FLAGS));
        let descriptor = kip().word(layout::KERNEL_DESCRIPTOR_POINTER) as usize;
        assert_eq!(words.kernel_id, kip().word(descriptor + layout::kernel_descriptor::ID));
    }
}

fn kernel_interface_registers() {
    let (mut rdi, mut r8, mut r9, mut r10, mut r11) = (1u64, 2u64, 3u64, 4u64, 5u64);
    let (mut r12, mut r13, mut r14, mut r15) = (6u64, 7u64, 8u64, 9u64);
    let (sp_before, sp_after, flags): (u64, u64, u64);
    // SAFETY: only the named registers change.
    unsafe {
        core::arch::asm!(
            "mov {sp_before}, rsp",
            "push rbx",
            "mov rbx, 0x1234567",
            "cmp rbx, rbx",
            ".byte 0xf0, 0x90",
            "pushfq",
            "pop rax",
            "sub rbx, 0x1234567",
            "add rdi, rbx",
            "pop rbx",
            "mov rcx, rsp",
            sp_before = out(reg) sp_before,
            inout("rdi") rdi, inout("r8") r8, inout("r9") r9, inout("r10") r10, inout("r11") r11,
            inout("r12") r12, inout("r13") r13, inout("r14") r14, inout("r15") r15,
            out("rax") flags, out("rcx") sp_after, out("rdx") _, out("rsi") _,
        );
    }
    assert_eq!([rdi, r8, r9, r10, r11, r12, r13, r14, r15], [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(sp_before, sp_after);
    let arithmetic = x2::control::USER_FLAGS;
    assert_eq!(flags & arithmetic, 1 << 6 | 1 << 2, "the flags of comparing equal numbers");
}

fn area_infos() {
    assert_eq!(kip().word(layout::UTCB_INFO), UtcbInfo::AMD64.raw());
    assert_eq!(kip().word(layout::KIP_AREA_INFO), layout::SIZE_LOG2.into());
    assert_eq!(utcb::pointer() % x2::utcb::ALIGN, x2::utcb::MR0_OFFSET);
}

fn thread_info() {
    let info = kip().thread_info();
    assert_eq!(info.number_bits, 18);
    assert!(info.system_base >= 16);
    assert_eq!(info.user_base, info.system_base + layout::ThreadInfo::KERNEL_NUMBERS);
    assert_eq!(utcb::my_global_id().version(), 1);
    assert!(utcb::my_global_id().number() > kip().root().number());
}

fn page_info() {
    let info = kip().page_info();
    assert_eq!(info.size_mask() & 0x20_1000, 0x20_1000);
    assert_eq!(info.size_mask() & !0x4020_1000, 0, "nothing but 4 KiB, 2 MiB and 1 GiB");
    assert!(info.rights().contains(Rights::READ_WRITE));
}

fn entries() {
    for offset in (layout::SPACE_CONTROL..=layout::SCHEDULE).step_by(8) {
        assert!(kip().word(offset) >= 0xffff_8000_0000_0000, "entry at {offset:#x}");
    }
}

fn reserved_words() {
    let reserved = [0x0a0, 0x140, 0x148, 0x160, 0x168, 0x228, 0x230, 0x238];
    for offset in reserved {
        assert_eq!(kip().word(offset), 0, "word {offset:#x}");
    }
    for offset in (layout::SIGMA1..layout::ROOT).step_by(8) {
        assert_eq!(kip().word(offset), 0, "sigma1's word {offset:#x}");
    }
}

fn memory_descriptors() {
    let user = kip().memory_descriptors().find(|descriptor| descriptor.is_virtual).expect("a user area");
    assert_eq!((user.kind, user.low), (MemoryKind::Conventional, 0));
    assert_eq!(user.last, (1 << 47) - 4096 - 1);
    for server in [layout::SIGMA0, layout::ROOT] {
        let low = kip().word(server + layout::server::LOW);
        let high = kip().word(server + layout::server::HIGH);
        assert!(low < high, "an image");
        let covering = kip()
            .memory_descriptors()
            .filter(|descriptor| {
                !descriptor.is_virtual && descriptor.low <= low && high - 1 <= descriptor.last
            })
            .last()
            .expect("memory");
        assert_eq!((covering.kind, covering.subtype), (MemoryKind::BootLoader, layout::boot_loader::SERVER));
    }
    let reserved = |descriptor: &layout::MemoryDescriptor| {
        !descriptor.is_virtual && descriptor.kind == MemoryKind::Reserved
    };
    assert!(kip().memory_descriptors().any(|descriptor| reserved(&descriptor)), "kernel memory is reserved");
}

fn kernel_descriptor() {
    let descriptor = kip().word(layout::KERNEL_DESCRIPTOR_POINTER) as usize;
    let mut string = (descriptor + layout::kernel_descriptor::VERSION_STRING..layout::SIZE as usize)
        .map(|at| (kip().word(at & !7) >> (at % 8 * 8)) as u8);
    assert!(string.by_ref().take_while(|&byte| byte != 0).count() > 0, "a version string");
    assert_eq!(string.next(), Some(0), "no feature string");
}

fn processors() {
    let info = kip().processor_info();
    assert!(info.processors >= 1);
    assert_eq!(1 << info.descriptor_log2, layout::PROCESSOR_DESCRIPTOR_SIZE);
    let first = kip().word(layout::PROCESSOR_DESCRIPTOR_POINTER) as usize;
    for index in 0..info.processors as usize {
        let at = first + index * layout::PROCESSOR_DESCRIPTOR_SIZE;
        assert!(kip().word(at + 8) > 0, "internal frequency");
        assert_eq!((kip().word(at + 16), kip().word(at + 24)), (0, 0));
    }
}

fn clock_info() {
    let info = kip().clock_info();
    for precision in [info.read_precision, info.schedule_precision] {
        assert!(precision.micros().is_some_and(|micros| micros > 0), "{precision:?}");
    }
}

/// Sum of the words of the page, as the other space sees it.
static SUM: AtomicU64 = AtomicU64::new(0);

fn sum_of_page() -> u64 {
    (0..layout::SIZE as usize)
        .step_by(8)
        .fold(0u64, |sum, offset| sum.rotate_left(1).wrapping_add(kip().word(offset)))
}

fn same_in_another_space() {
    let me = utcb::my_global_id();
    let other = Space::new().spawn(move || {
        assert_eq!(kernel_interface().base, kip().base());
        SUM.store(sum_of_page(), Ordering::Relaxed);
        l4::ipc::send(me, l4::ipc::Message::new(1)).expect("the test waits");
    });
    let received = l4::ipc::receive(other).expect("the other thread sends");
    assert_eq!((received.from, received.tag.label()), (other, 1));
    assert_ne!(received.from, ThreadId::NIL);
    assert_eq!(SUM.load(Ordering::Relaxed), sum_of_page());
}

fn clock_step() {
    let precision = kip().clock_info().read_precision.micros().expect("a period");
    let (mut last, mut steps) = (l4::thread::system_clock(), 0);
    while steps < 100 {
        let now = l4::thread::system_clock();
        assert!(now == last || now - last >= precision, "{last} and {now}");
        steps += u32::from(now != last);
        last = now;
    }
}

fn extensions() {
    for offset in (0x1f8..=0x210).step_by(8) {
        assert!(kip().word(offset) >= 0xffff_8000_0000_0000, "stub at {offset:#x}");
    }
    assert_eq!(kip().word(0x218) & 0xffff, 1, "the version");
    assert_eq!(kip().word(0x218) & !(0xffff << 32 | 0x1_ffff), 0, "reserved bits");
    clock_scale();
}

/// The clock is the time-stamp counter times a word of the page, if that is not 0.
fn clock_scale() {
    let scale = u128::from(kip().word(0x220));
    for _ in 0..if scale == 0 { 0 } else { 1000 } {
        let before = l4::thread::system_clock();
        // SAFETY: every program may read the counter.
        let ticks = u128::from(unsafe { core::arch::x86_64::_rdtsc() });
        let now = ((ticks * scale) >> 44) as u64;
        assert!((before..=l4::thread::system_clock()).contains(&now), "{now}");
    }
}
