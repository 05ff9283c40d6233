//! Reads the memory descriptors of the kernel interface page into the initial states of physical
//! memory (X.2 rule 10.8).

use crate::pool::{OutOfNodes, Pool, State};
use x2::ThreadId;
use x2::kip::{MemoryDescriptor, MemoryKind};

/// Physical memory in pages of 4 KiB.
pub type Memory<'a> = Pool<'a, 64, 12>;

const PAGE: u64 = 4096;

/// The memory of an initial server's program, and the thread that owns it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Image {
    /// The first address of the image.
    pub low: u64,
    /// The first address after the image. If it equals `low` there is no image.
    pub high: u64,
    /// The owner of the memory; `None` for sigma0 itself, whose memory no thread gets.
    pub owner: Option<ThreadId>,
}

/// Sets the states of memory that the descriptors say, later ones overriding earlier ones, then
/// those of the images.
///
/// A page that a descriptor covers only in part counts to the descriptor. The exceptions are a
/// descriptor that makes memory conventional, so that all threads may have it, and one by which the
/// rest of a page, which is unavailable, would become available.
pub fn fill(
    memory: &mut Memory<'_>,
    descriptors: impl Iterator<Item = MemoryDescriptor>,
    images: &[Image],
) -> Result<(), OutOfNodes> {
    for descriptor in descriptors.filter(|descriptor| !descriptor.is_virtual) {
        let state = match descriptor.kind {
            MemoryKind::Conventional => State::Conventional,
            MemoryKind::Shared => State::Shared,
            MemoryKind::Dedicated | MemoryKind::BootLoader | MemoryKind::Architecture => State::OnRequest,
            MemoryKind::Reserved | MemoryKind::Undefined => State::Unavailable,
        };
        set_range(memory, descriptor.low, descriptor.last, state)?;
    }
    for image in images.iter().filter(|image| image.low < image.high) {
        let state = image.owner.map_or(State::Unavailable, State::Owned);
        set_range(memory, image.low, image.high - 1, state)?;
    }
    Ok(())
}

fn set_range(memory: &mut Memory<'_>, low: u64, last: u64, state: State) -> Result<(), OutOfNodes> {
    if low > last {
        return Ok(());
    }
    memory.set(low, last, state)?;
    if state == State::Conventional {
        return Ok(());
    }
    let partial = [(low, !low.is_multiple_of(PAGE)), (last, last % PAGE != PAGE - 1)];
    for (address, _) in partial.into_iter().filter(|&(_, is_partial)| is_partial) {
        if state == State::Unavailable || memory.state(address) != State::Unavailable {
            let page = address & !(PAGE - 1);
            memory.set(page, page | (PAGE - 1), state)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::Node;

    fn descriptor(kind: MemoryKind, low: u64, last: u64) -> MemoryDescriptor {
        MemoryDescriptor::physical(kind, 0, low, last)
    }

    /// The descriptors of a real machine with 256 MiB (ABI 1.7).
    #[test]
    fn a_real_memory_map() {
        let root = ThreadId::interrupt(0x3a);
        let descriptors = [
            descriptor(MemoryKind::Shared, 0, u64::MAX),
            descriptor(MemoryKind::Conventional, 0, 0x9fbff),
            descriptor(MemoryKind::Architecture, 0x9fc00, 0x9ffff),
            descriptor(MemoryKind::Architecture, 0xf0000, 0xfffff),
            descriptor(MemoryKind::Conventional, 0x10_0000, 0xffd_ffff),
            descriptor(MemoryKind::Shared, 0xa0000, 0xbffff),
            descriptor(MemoryKind::Reserved, 0xe20_0000, 0xf1f_ffff),
            descriptor(MemoryKind::BootLoader, 0xf0_0000, 0xf0_5bff),
            descriptor(MemoryKind::BootLoader, 0x100_0000, 0x101_03ff),
            descriptor(MemoryKind::BootLoader, 0x18_2000, 0x18_23ff),
            descriptor(MemoryKind::Reserved, 0x60_0000, 0xd0_dfff),
            MemoryDescriptor { is_virtual: true, ..descriptor(MemoryKind::Conventional, 0, u64::MAX >> 17) },
        ];
        let images = [
            Image { low: 0xf0_0000, high: 0xf0_5b00, owner: None },
            Image { low: 0x100_0000, high: 0x101_0300, owner: Some(root) },
            Image { low: 0, high: 0, owner: Some(root) },
        ];
        let mut nodes = [Node::UNUSED; 1024];
        let mut memory = Memory::new(&mut nodes);
        fill(&mut memory, descriptors.into_iter(), &images).unwrap();
        for (address, state) in [
            (0, State::Conventional),
            (0x9_e000, State::Conventional),
            (0x9_f000, State::OnRequest),
            (0xa_0000, State::Shared),
            (0xf_0000, State::OnRequest),
            (0x10_0000, State::Conventional),
            (0x18_2000, State::OnRequest),
            (0x18_3000, State::Conventional),
            (0xc0_0000, State::Unavailable),
            (0xf0_5000, State::Unavailable),
            (0xf0_6000, State::Conventional),
            (0x101_0000, State::Owned(root)),
            (0x101_1000, State::Conventional),
            (0xf00_0000, State::Unavailable),
            (0xfed0_0000, State::Shared),
            (u64::MAX, State::Shared),
        ] {
            assert_eq!(memory.state(address), state, "{address:#x}");
        }
    }

    #[test]
    fn a_page_shared_with_the_kernel_stays_unavailable() {
        let mut nodes = [Node::UNUSED; 1024];
        let mut memory = Memory::new(&mut nodes);
        let descriptors = [
            descriptor(MemoryKind::Conventional, 0, 0xff_ffff),
            descriptor(MemoryKind::Reserved, 0x1000, 0x23ff),
            descriptor(MemoryKind::BootLoader, 0x2400, 0x2fff),
        ];
        fill(&mut memory, descriptors.into_iter(), &[]).unwrap();
        assert_eq!(memory.state(0x2000), State::Unavailable);
        assert_eq!(memory.state(0x3000), State::Conventional);
    }
}
