//! Tests of MemoryControl and ProcessorControl (X.2 rules 9.1-9.5).

use crate::framework::arena;
use crate::framework::fixture::Space;
use crate::framework::tests;
use l4::ipc::{self, Message};
use l4::{kip, space, syscall, thread, utcb};
use x2::{ErrorCode, Fpage, MapItem, Rights};

tests! {
    MEM0001 [9.1] "only privileged spaces may use MemoryControl" memory_privilege;
    MEM0002 [9.1] "wrong control words, attributes and fpages are error 5" wrong_parameters;
    MEM0003 [9.3] "memory of every type keeps what is written" every_type;
    MEM0004 [9.1] "64 fpages with four attributes, nil ones among them" many_fpages;
    MEM0005 [9.2a] "a page of a large mapping changes for all that have it, and nothing else does" page_of_large;
    MEM0006 [9.5] "only privileged spaces may use ProcessorControl, on processors that exist" processor_control;
}

const TYPES: [u64; 6] = [0, 1, 2, 5, 6, 7];

fn memory_privilege() {
    let me = utcb::my_global_id();
    let page = arena::page().fpage(Rights::NONE);
    let other = Space::new().spawn(move || {
        assert_eq!(space::memory_control(&[page], [1, 0, 0, 0]), Err(Some(ErrorCode::NoPrivilege)));
        assert_eq!(syscall::processor_control(0, 0, 0, 0), 0);
        assert_eq!(utcb::error_code(), Some(ErrorCode::NoPrivilege));
        ipc::send(me, Message::new(1)).unwrap();
    });
    ipc::receive(other).unwrap();
}

fn wrong_parameters() {
    const INVALID: thread::Result<()> = Err(Some(ErrorCode::InvalidParameter));
    let page = arena::page();
    let fpage = page.fpage(Rights::NONE);
    for attribute in [3, 4, 8, 64, u64::MAX] {
        assert_eq!(space::memory_control(&[fpage], [attribute, 0, 0, 0]), INVALID, "{attribute}");
        let third = Fpage::from_raw(fpage.raw() | 2);
        assert_eq!(space::memory_control(&[fpage, third], [1, 0, attribute, 0]), INVALID);
        assert_eq!(space::memory_control(&[fpage], [0, attribute, 0, 0]), Ok(()), "it is not used");
    }
    for wrong in [Fpage::COMPLETE_IO, Fpage::from_raw(5 << 4), Fpage::io(0, 0)] {
        assert_eq!(space::memory_control(&[fpage, wrong], [0; 4]), INVALID);
    }
    for control in [64, 1 << 32, u64::MAX] {
        // SAFETY: nothing is changed.
        let result = unsafe { syscall::memory_control(control, [0; 4], utcb::pointer()) };
        assert_eq!((result, utcb::error_code()), (0, Some(ErrorCode::InvalidParameter)));
    }
}

fn every_type() {
    let page = arena::page();
    for attribute in TYPES {
        assert_eq!(space::memory_control(&[page.fpage(Rights::NONE)], [attribute, 9, 9, 9]), Ok(()));
        page.write(7, attribute + 1);
        assert_eq!(page.read(7), attribute + 1);
    }
    assert_eq!(space::memory_control(&[page.fpage(Rights::NONE)], [0; 4]), Ok(()));
}

fn many_fpages() {
    let block = arena::block(18);
    let fpages: [Fpage; 64] = core::array::from_fn(|index| match index % 8 {
        7 => Fpage::NIL,
        _ => Fpage::from_raw(Fpage::memory(block + index as u64 * 4096, 12).raw() | (index as u64 % 4)),
    });
    assert_eq!(space::memory_control(&fpages, [1, 2, 5, 6]), Ok(()));
    for page in (block..block + (1 << 18)).step_by(4096) {
        arena::write_at(page, page);
        assert_eq!(arena::read_at(page), page);
    }
    assert_eq!(space::memory_control(&[Fpage::memory(block, 18)], [0; 4]), Ok(()));
}

fn page_of_large() {
    let block = arena::block(21);
    let worker = super::map::Worker::new();
    worker.take_in_window(MapItem::map(Fpage::memory(block, 21).with_rights(Rights::READ_WRITE), 0));
    let page = Fpage::memory(block + 0x5000, 12);
    for attribute in [1, 0] {
        assert_eq!(space::memory_control(&[page], [attribute, 0, 0, 0]), Ok(()));
        for offset in [0x4ff8, 0x5000, 0x5ff8, 0x6000, 0x1f_fff8] {
            worker.write(super::map::WINDOW + offset, offset + attribute);
            assert_eq!(arena::read_at(block + offset), offset + attribute);
        }
    }
}

fn processor_control() {
    let processors = u64::from(kip().processor_info().processors);
    for processor in 0..processors {
        assert_eq!(syscall::processor_control(processor, 1_000_000, 100_000, 1100), 1);
        assert_eq!(syscall::processor_control(processor, 0, 0, 0), 1);
    }
    for processor in [processors, processors + 1, u64::MAX] {
        assert_eq!(syscall::processor_control(processor, 0, 0, 0), 0);
        assert_eq!(utcb::error_code(), Some(ErrorCode::InvalidParameter));
    }
}
