//! The calls on a task's memory.

use mach::machine::PAGE_SIZE;
use message::Memory;

use crate::call;
use crate::support::{System, status};

#[test]
fn memory_is_allocated_protected_and_given_back() {
    let system = System::new();
    system.run(async {
        let program = system.program().await;
        let own = program.own();
        let address = call!(program, mach, own, vm_allocate(0, 5000, 1)).unwrap();
        assert_eq!(call!(program, mach, own, vm_allocate(address + 10, 1, 0)), status(3));
        assert_eq!(call!(program, mach, own, vm_allocate(0, 0, 1)), Ok(0));
        assert_eq!(call!(program, mach, own, vm_protect(address, 10, 0, 1)), Ok(()));
        assert_eq!(call!(program, mach, own, vm_protect(address, 10, 0, 8)), status(4));
        assert_eq!(call!(program, mach, own, vm_inherit(address, 1, 2)), Ok(()));
        assert_eq!(call!(program, mach, own, vm_inherit(address, 1, 3)), status(4));
        let region = call!(program, mach, own, vm_region(address - 1)).unwrap();
        assert_eq!(region, (address, PAGE_SIZE, 1, 7, 2, 0, 0, 0));
        let region = call!(program, mach, own, vm_region(address + PAGE_SIZE)).unwrap();
        assert_eq!((region.0, region.2, region.4), (address + PAGE_SIZE, 3, 1));
        assert_eq!(call!(program, mach, own, vm_deallocate(address, 2 * PAGE_SIZE)), Ok(()));
        assert_eq!(call!(program, mach, own, vm_deallocate(u64::MAX - 5, 100)), status(1));
        let statistics = call!(program, mach, own, vm_statistics()).unwrap();
        assert_eq!((statistics[0], statistics[1] > 0), (4096, true));
        assert_eq!(call!(program, mach, own, vm_machine_attribute(0x10_0000, 4096, 1, 2)), Ok(1));
        assert_eq!(call!(program, mach, own, vm_machine_attribute(0x10_0000, 4096, 1, 77)), status(4));
    });
}

#[test]
fn memory_is_read_written_and_copied_at_any_address() {
    let system = System::new();
    system.run(async {
        let (program, other) = (system.program().await, system.program().await);
        let (own, to) = (program.own(), program.name_of(&other));
        let there = call!(program, mach, to, vm_allocate(0, 4 * PAGE_SIZE, 1)).unwrap();
        let here = call!(program, mach, own, vm_allocate(0, 4 * PAGE_SIZE, 1)).unwrap();
        let pattern: Vec<u8> = (0..4 * PAGE_SIZE).map(|at| (at % 251) as u8).collect();
        program.task.map().copyout(here, &pattern).await.unwrap();
        for (from, to_offset, length) in [
            (0, 0, 2 * PAGE_SIZE),
            (0, 0, 100),
            (5, 100, PAGE_SIZE + 7),
            (100, 0, 3 * PAGE_SIZE),
            (PAGE_SIZE, 2 * PAGE_SIZE + 1, PAGE_SIZE),
        ] {
            let data = Memory { address: here + from, count: length as u32, deallocate: false };
            assert_eq!(call!(program, mach, to, vm_write(there + to_offset, data)), Ok(()));
            let read = call!(program, mach, to, vm_read(there + to_offset, length)).unwrap();
            assert_eq!(u64::from(read.count), length);
            let found = program.read(read.address, length as usize).await;
            assert!(found == pattern[from as usize..][..length as usize], "{from} {to_offset} {length}");
            call!(program, mach, own, vm_deallocate(read.address, length)).unwrap();
        }
        assert_eq!(call!(program, mach, own, vm_copy(here, 2 * PAGE_SIZE, here + 2 * PAGE_SIZE)), Ok(()));
        assert_eq!(call!(program, mach, own, vm_copy(here + 1, PAGE_SIZE, here)), Ok(()));
        let found = program.read(here, 8).await;
        assert_eq!(found, pattern[1..9]);
        assert_eq!(call!(program, mach, own, vm_copy(here, PAGE_SIZE, 0x7000_0000)), status(1));
        assert_eq!(call!(program, mach, own, vm_read(0x7000_0000, 8)), status(1));
        let nothing = call!(program, mach, own, vm_read(here, 0)).unwrap();
        assert_eq!((nothing.address, nothing.count), (0, 0));
    });
}

#[test]
fn zeros_are_mapped_with_an_alignment_and_rights() {
    let system = System::new();
    system.run(async {
        let program = system.program().await;
        let own = program.own();
        let mask = (1 << 20) - 1;
        let map = |address, size, mask, anywhere, object, current, most, inherited| {
            let program = &program;
            async move {
                call!(
                    *program,
                    mach,
                    own,
                    vm_map(address, size, mask, anywhere, object, 0, 0, current, most, inherited)
                )
            }
        };
        let address = map(1, PAGE_SIZE, mask, 1, 0, 1, 3, 0).await.unwrap();
        assert!(address.is_multiple_of(1 << 20));
        let region = call!(program, mach, own, vm_region(address)).unwrap();
        assert_eq!((region.2, region.3, region.4), (1, 3, 0));
        assert_eq!(map(0, PAGE_SIZE, 5, 1, 0, 1, 3, 0).await, status(4));
        assert_eq!(map(0, 0, 0, 1, 0, 1, 3, 0).await, status(4));
        assert_eq!(map(0, PAGE_SIZE, 0, 1, 0, 7, 3, 0).await, status(4));
        assert_eq!(map(100, PAGE_SIZE, 0, 0, 0, 1, 3, 0).await, status(4));
    });
}
