//! What a loader that only loads leaves to the kernel: choose kernel memory, move the modules out
//! of the way, load sigma0 and the root task, write the boot info and describe it all in the kernel
//! interface page. After this the machine looks as Pistachio's kickstart would have left it (ABI
//! 1.3-1.8).
use core::fmt;
use x2::kip::{MemoryDescriptor, MemoryKind as Kind, boot_loader};

use super::nodes::Nodes;
use super::placement::{FreeMemory, NoRoom, QUIET};
use super::{BootInformation, MemoryKind, Module};
use crate::initial_servers::{self, LoadError};
use crate::memory::node::Layout;
use crate::memory::{PhysAddr, PhysRange};
use crate::{arch, boot_info, config, kip, log};

/// What stands in the way of starting the system. Nothing can go on; the message is for the user at
/// the console.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Obstacle {
    /// There are fewer than two modules: sigma0 or the root task is missing.
    NoServers,
    /// A module is no valid program, or its memory is occupied.
    Load(&'static str, LoadError),
    /// There is not enough free memory.
    NoRoom(NoRoom),
    /// The kernel interface page has no room for the memory map.
    Descriptors,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoServers => formatter.write_str(
                "give sigma0 and the root task as the first two modules (QEMU: -initrd \"sigma0,root\")",
            ),
            Self::Load(name, error) => write!(formatter, "cannot load {name}: {error}"),
            Self::NoRoom(error) => error.fmt(formatter),
            Self::Descriptors => formatter.write_str("the memory map has too many parts"),
        }
    }
}

impl From<NoRoom> for Obstacle {
    fn from(error: NoRoom) -> Self {
        Self::NoRoom(error)
    }
}

/// Prepares the machine; returns the memory chosen for the kernel.
///
/// # Safety
/// Boot only: nothing else runs; the modules and the free memory of `boot` are direct-mapped and
/// unused. `image` covers everything of the kernel's so far.
pub unsafe fn prepare(
    boot: &mut BootInformation,
    image: PhysRange,
    nodes: &Nodes,
) -> Result<Layout, Obstacle> {
    if boot.modules().len() < 2 {
        return Err(Obstacle::NoServers);
    }
    let limit = config::get().memory_limit.unwrap_or(u64::MAX);
    let mut free = FreeMemory::new(boot, limit);
    free.remove(image);
    boot.modules().iter().for_each(|module| free.remove(extent(module)));
    let kernel_memory = free.take_kernel_memory(config::get().kernel_memory, nodes)?;
    // SAFETY: the caller's promise; the modules' places were taken out of the free memory.
    unsafe { move_modules(boot, &mut free)? };

    // The modules' former places are free now.
    let mut free = FreeMemory::new(boot, limit);
    free.remove(image);
    kernel_memory.pieces().iter().for_each(|(piece, _)| free.remove(*piece));
    boot.modules().iter().for_each(|module| free.remove(extent(module)));
    let [sigma0_file, root_file] = [0, 1].map(|index| {
        let module = &boot.modules()[index];
        // SAFETY: the module's memory is direct-mapped and belongs to nothing else; it is not
        // written to below, because it is not free.
        unsafe { core::slice::from_raw_parts(arch::phys_to_virt(PhysAddr::new(module.start)), size(module)) }
    });
    let sigma0 =
        initial_servers::place(sigma0_file, &mut free).map_err(|error| Obstacle::Load("sigma0", error))?;
    let root = initial_servers::place(root_file, &mut free)
        .map_err(|error| Obstacle::Load("the root task", error))?;
    let info = free.take_quiet(boot_info::SIZE, "the boot info")?;
    // SAFETY: all three places were taken out of the free memory just now.
    let (sigma0, root) = unsafe {
        let page = core::slice::from_raw_parts_mut(arch::phys_to_virt(info.start), boot_info::SIZE as usize);
        if boot_info::write(page, boot, sigma0.executable(), root.executable()).is_err() {
            log::warning!("the boot info is cut off");
        }
        (sigma0.load(), root.load())
    };
    let descriptors = memory_descriptors(boot, limit)
        .chain(kernel_memory.pieces().iter().map(|(piece, _)| physical(Kind::Reserved, 0, *piece)))
        .chain([sigma0, root].map(|server| {
            let range = PhysRange::new(PhysAddr::new(server.low), PhysAddr::new(server.high));
            physical(Kind::BootLoader, boot_loader::SERVER, range)
        }))
        .chain(
            boot.modules()[2..]
                .iter()
                .filter(|module| size(module) > 0)
                .map(|module| physical(Kind::BootLoader, boot_loader::MODULE, extent(module))),
        )
        .chain([physical(Kind::BootLoader, boot_loader::INFO, info)]);
    // SAFETY: the caller promises that nothing else uses the page now.
    unsafe { kip::describe(sigma0, root, info.start, descriptors) }.map_err(|_| Obstacle::Descriptors)?;
    Ok(kernel_memory)
}

/// A memory descriptor for a range that is not empty.
pub fn physical(kind: Kind, subtype: u8, range: PhysRange) -> MemoryDescriptor {
    MemoryDescriptor::physical(kind, subtype, range.start.value(), range.end.value() - 1)
}

fn extent(module: &Module) -> PhysRange {
    PhysRange::new(PhysAddr::new(module.start), PhysAddr::new(module.end))
}

fn size(module: &Module) -> usize {
    (module.end - module.start) as usize
}

/// The memory descriptors in kickstart's order, as later ones override earlier ones: first all of
/// memory as possible device memory, then the firmware's map, then the legacy display and ROM area.
fn memory_descriptors(boot: &BootInformation, limit: u64) -> impl Iterator<Item = MemoryDescriptor> {
    let everything = MemoryDescriptor::physical(Kind::Shared, 0, 0, u64::MAX);
    let firmware = boot.memory().iter().map(move |range| {
        let last = range.end - 1;
        match range.kind {
            MemoryKind::Available if range.start < limit => {
                MemoryDescriptor::physical(Kind::Conventional, 1, range.start, last.min(limit - 1))
            }
            MemoryKind::Available => MemoryDescriptor::physical(Kind::Architecture, 1, range.start, last),
            kind => MemoryDescriptor::physical(Kind::Architecture, kind as u8, range.start, last),
        }
    });
    let legacy = [(0xa_0000, 0xb_ffff), (0xc_0000, 0xe_ffff)]
        .map(|(low, last)| MemoryDescriptor::physical(Kind::Shared, 0, low, last));
    core::iter::once(everything).chain(firmware).chain(legacy)
}

/// Moves every module that lies below [`QUIET`] or not on a page boundary. Its new place may
/// overlap the old one: an image may take most of the memory.
///
/// # Safety
/// The modules and the free memory are direct-mapped and unused, and do not overlap.
unsafe fn move_modules(boot: &mut BootInformation, free: &mut FreeMemory) -> Result<(), NoRoom> {
    for index in 0..boot.modules().len() {
        let from = extent(&boot.modules()[index]);
        if from.size() == 0 || from.start >= QUIET && from.start.is_aligned(crate::memory::PAGE_BITS) {
            continue;
        }
        // Its first and last pages may be another's, too.
        free.give_back(from);
        let others = boot.modules().iter().enumerate().filter(|(other, _)| *other != index);
        others.for_each(|(_, module)| free.remove(extent(module)));
        let to = free.take_for_module(from.size())?;
        // SAFETY: the caller's promise; `to` has at least the module's size. What of it was not
        // free is the module's own.
        unsafe {
            arch::phys_to_virt(to.start).copy_from(arch::phys_to_virt(from.start), from.size() as usize);
        }
        let module = &mut boot.modules_mut()[index];
        module.start = to.start.value();
        module.end = module.start + from.size();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::{Machine, phys_to_virt};
    use crate::boot::Protocol;
    use crate::elf::tests::file;
    use x2::boot_info::{BootInfo, Record};
    use x2::kip::BOOT_INFO;

    /// The model's memory begins here and has this size.
    const START: u64 = 0x100_0000;
    const SIZE: u64 = 96 << 20;
    const IMAGE: PhysRange = PhysRange::new(PhysAddr::new(START), PhysAddr::new(START + (6 << 20)));

    fn put(boot: &mut BootInformation, at: u64, file: &[u8], text: &[u8]) {
        // SAFETY: the address lies in the model's memory.
        unsafe { phys_to_virt(PhysAddr::new(at)).copy_from(file.as_ptr(), file.len()) };
        boot.add_module(at, at + file.len() as u64, text);
    }

    fn bytes(at: u64, size: usize) -> &'static [u8] {
        // SAFETY: the address lies in the model's memory, which outlives the test's use of it.
        unsafe { core::slice::from_raw_parts(phys_to_virt(PhysAddr::new(at)), size) }
    }

    fn machine() -> (Machine, BootInformation) {
        let machine = Machine::new(SIZE);
        let mut boot = BootInformation::empty(Protocol::Multiboot1);
        boot.add_range(START, SIZE, MemoryKind::Available);
        (machine, boot)
    }

    /// The loader has put the modules just where the programs are linked, and one on top of
    /// another's place.
    #[test]
    fn modules_make_way_for_programs() {
        let (_machine, mut boot) = machine();
        let (low, high) = (START + (8 << 20), START + (9 << 20));
        let sigma0 = file(high, &[(high, b"sigma0's text", 0x2000)]);
        let root = file(low, &[(low, b"root's text", 0x3000), (low + 0x3000, b"data", 0x10_0000 - 0x3000)]);
        put(&mut boot, low, &sigma0, b"sigma0");
        put(&mut boot, low + 0x1000, &root, b"root verbose");
        put(&mut boot, high + 0x1800, b"an odd place", b"data file");
        // SAFETY: the model has no other user.
        let layout = unsafe { prepare(&mut boot, IMAGE, &Nodes::ONE) }.unwrap();
        let [(kernel_memory, 0)] = *layout.pieces() else { panic!("{:?}", layout.pieces()) };
        assert!(kernel_memory.size() >= 8 << 20 && !kernel_memory.overlaps(IMAGE));
        assert_eq!(bytes(high, 14), b"sigma0's text\0");
        assert_eq!(bytes(low, 12), b"root's text\0");
        assert_eq!(bytes(low + 0x3000, 5), b"data\0");
        assert_eq!(bytes(low + 0xf_fff0, 16), [0; 16], "zeroed to the end");
        let data = boot.modules()[2];
        assert!(data.start >= QUIET.value() && data.start.is_multiple_of(4096));
        assert_eq!(bytes(data.start, 12), b"an odd place");

        let (sigma0, root) = kip::servers();
        assert_eq!((sigma0.ip, sigma0.low, sigma0.high), (high, high, high + 0x2000));
        assert_eq!((root.ip, root.low, root.high), (low, low, low + 0x10_0000));
        let info = BootInfo::new(bytes(kip::word(BOOT_INFO), boot_info::SIZE as usize)).unwrap();
        let modules: Vec<_> = info.modules().collect();
        assert_eq!(modules, [(data.start, 12, &b"data file"[..])]);
        assert!(matches!(
            info.records().nth(1),
            Some(Record::SimpleExec { command_line: b"root verbose", .. })
        ));

        // Ranges that are described as the kernel's or a loader's lie in conventional memory and do
        // not overlap.
        let descriptors: Vec<_> = kip::memory_descriptors().collect();
        let taken: Vec<_> = descriptors
            .iter()
            .filter(|descriptor| matches!(descriptor.kind, Kind::Reserved | Kind::BootLoader))
            .collect();
        assert_eq!(taken.len(), 5);
        for (index, one) in taken.iter().enumerate() {
            assert!(one.low >= START && one.last < START + SIZE);
            assert!(taken[..index].iter().all(|other| one.last < other.low || other.last < one.low));
        }
    }

    /// There is no second place of its size for it.
    #[test]
    fn a_large_module_moves_over_itself() {
        let (_machine, mut boot) = machine();
        let low = START + (8 << 20);
        let program = file(low, &[(low, b"text", 0x1000)]);
        put(&mut boot, low, &program, b"sigma0");
        let second = file(low + 0x1000, &[(low + 0x1000, b"text", 0x1000)]);
        put(&mut boot, low + 0x10_0000, &second, b"root");
        let content: Vec<u8> = (0..(31 << 20) + 5).map(|byte: u32| (byte / 257) as u8).collect();
        put(&mut boot, START + (24 << 20), &content, b"image");
        // SAFETY: the model has no other user.
        unsafe { prepare(&mut boot, IMAGE, &Nodes::ONE) }.unwrap();
        let module = &boot.modules()[2];
        assert!(module.start >= QUIET.value() && module.start.is_multiple_of(4096));
        assert_eq!(module.end - module.start, content.len() as u64);
        assert!(bytes(module.start, content.len()) == content, "it has changed on the way");
    }

    /// Rules: ABI 1.3.
    #[test]
    fn obstacles_are_named() {
        let (_machine, mut boot) = machine();
        // SAFETY: the model has no other user.
        let prepare = |boot: &mut BootInformation| unsafe { prepare(boot, IMAGE, &Nodes::ONE).map(drop) };
        assert_eq!(prepare(&mut boot), Err(Obstacle::NoServers));
        let low = START + (8 << 20);
        let program = file(low, &[(low, b"text", 4)]);
        put(&mut boot, low, &program, b"");
        put(&mut boot, low + 0x1000, &program, b"");
        assert!(matches!(prepare(&mut boot), Err(Obstacle::Load("the root task", LoadError::Occupied(_)))));
        let mut small = BootInformation::empty(Protocol::Multiboot1);
        small.add_range(START, 6 << 20, MemoryKind::Available);
        put(&mut small, START, &program, b"");
        put(&mut small, START, &program, b"");
        assert!(matches!(prepare(&mut small), Err(Obstacle::NoRoom(_))));
    }
}
