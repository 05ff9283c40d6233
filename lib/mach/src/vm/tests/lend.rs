//! Tests of frames that are lent without waiting, and of copies from page to page.

use alloc::sync::Arc;

use super::super::{CopyStrategy, MapRequest, Placement, VmObject};
use super::support::{BASE, FilePager, System, load, store};
use crate::KernError;
use crate::machine::simulated::Simulated;
use crate::machine::{Machine, PAGE_SIZE, Protection};

const READ: Protection = Protection::READ;
const WRITE: Protection = Protection::WRITE;

fn rest(object: &Arc<VmObject<Simulated>>, offset: u64, access: Protection) -> Option<u64> {
    object.try_with_frame(offset, access, |_, rest| rest)
}

#[test]
fn objects_lend_what_is_there_and_zeros() {
    let system = System::new(64);
    let object = VmObject::anonymous(system.vm()).unwrap();
    system.run(object.set_size(2 * PAGE_SIZE + 10)).unwrap();
    assert_eq!(rest(&object, 5, READ), None, "reading makes no page");
    assert_eq!(rest(&object, 5, WRITE), Some(2 * PAGE_SIZE + 5));
    assert_eq!(rest(&object, 5, READ), Some(2 * PAGE_SIZE + 5));
    assert_eq!(rest(&object, 2 * PAGE_SIZE + 9, WRITE), Some(1));
    assert_eq!(rest(&object, 2 * PAGE_SIZE + 10, READ), None, "the object ends there");
    let bytes = object.try_with_frame(PAGE_SIZE, WRITE, |frame, _| {
        let mut bytes = [1; 3];
        system.machine.read_frame(frame, 7, &mut bytes);
        bytes
    });
    assert_eq!(bytes, Some([0; 3]));
    // The range has more pages than there are frames.
    let end = 100 * PAGE_SIZE;
    system.run(object.set_size(end)).unwrap();
    let refused = (2..100).find(|page| rest(&object, page * PAGE_SIZE, WRITE).is_none());
    assert!(refused.is_some_and(|page| page > 9), "no frame for it: {refused:?}");
    assert_eq!(rest(&object, PAGE_SIZE, WRITE), Some(end - PAGE_SIZE), "this one has its own");
}

#[test]
fn a_page_that_is_not_in_memory_is_not_lent_and_not_requested() {
    let system = System::new(64);
    let pager = FilePager::new(vec![7; 3 * PAGE_SIZE as usize]);
    let file = VmObject::paged(system.vm(), pager.clone(), 3 * PAGE_SIZE, CopyStrategy::Symmetric).unwrap();
    assert_eq!((rest(&file, 0, READ), rest(&file, 0, WRITE)), (None, None));
    assert!(pager.requests.lock().unwrap().is_empty() && file.resident_pages() == 0);
    system.run(file.read(0, &mut [0; 1])).unwrap();
    assert_eq!(rest(&file, 1, READ), Some(3 * PAGE_SIZE - 1));
}

#[test]
fn a_page_that_a_copy_has_to_save_is_not_lent_for_writing() {
    let system = System::new(64);
    let file =
        VmObject::paged(system.vm(), FilePager::new(vec![7; 4096]), 4096, CopyStrategy::Delay).unwrap();
    system.run(file.read(0, &mut [0; 1])).unwrap();
    assert!(rest(&file, 0, WRITE).is_some());
    let map = system.map();
    let copy = MapRequest::private(file.clone(), 0, PAGE_SIZE).at(Placement::Fixed(BASE));
    system.run(map.map(&copy)).unwrap();
    assert_eq!((rest(&file, 0, READ), rest(&file, 0, WRITE)), (Some(4096), None));
    system.run(file.write(0, b"new")).unwrap();
    assert_eq!(system.run(load(&map, BASE, 3)).unwrap(), [7; 3]);
}

#[test]
fn maps_lend_pages_as_programs_see_them() {
    let system = System::new(64);
    let parent = system.map();
    let fixed = |request: MapRequest<_>, page| request.at(Placement::Fixed(BASE + page * PAGE_SIZE));
    system.run(parent.map(&fixed(MapRequest::anonymous(PAGE_SIZE), 0))).unwrap();
    let read_only = MapRequest::anonymous(PAGE_SIZE).protection(READ);
    system.run(parent.map(&fixed(read_only, 1))).unwrap();
    system.run(store(&parent, BASE, b"old")).unwrap();
    let child = system.run(parent.fork()).unwrap();
    // The parent's translation leads to the page that is shared now. The page that is lent to be
    // written is the parent's own, and is what the parent sees.
    assert_eq!(system.run(load(&parent, BASE, 3)).unwrap(), b"old");
    let lent =
        |map: &super::super::VmMap<Simulated>, at, access| map.try_with_frame(at, access, |frame| frame);
    let shared = lent(&parent, BASE, READ).unwrap().unwrap();
    assert_eq!(lent(&child, BASE, READ), Some(Ok(shared)));
    let own = lent(&parent, BASE, WRITE).unwrap().unwrap();
    assert_ne!(own, shared);
    system.machine.write_frame(own, 0, b"new");
    assert_eq!(system.run(load(&parent, BASE, 3)).unwrap(), b"new");
    assert_eq!(system.run(load(&child, BASE, 3)).unwrap(), b"old");
    assert_eq!(lent(&parent, BASE, READ), Some(Ok(own)));
    assert_eq!(lent(&parent, BASE + PAGE_SIZE, WRITE), Some(Err(KernError::ProtectionFailure)));
    assert_eq!(lent(&parent, BASE + 2 * PAGE_SIZE, READ), Some(Err(KernError::InvalidAddress)));
    drop(child);
}

#[test]
fn a_copy_within_one_object_is_refused_and_does_not_wait_for_itself() {
    let system = System::new(64);
    let pager = FilePager::new(vec![7; 2 * PAGE_SIZE as usize]);
    let file = VmObject::paged(system.vm(), pager, 2 * PAGE_SIZE, CopyStrategy::Symmetric).unwrap();
    system.run(file.write(0, &[1; 2 * PAGE_SIZE as usize])).unwrap();
    let map = system.map();
    let shared = MapRequest::shared(file.clone(), 0, 2 * PAGE_SIZE).at(Placement::Fixed(BASE));
    let private = MapRequest::private(file.clone(), 0, PAGE_SIZE).at(Placement::Fixed(BASE + 2 * PAGE_SIZE));
    let other = MapRequest::anonymous(PAGE_SIZE).at(Placement::Fixed(BASE + 3 * PAGE_SIZE));
    for request in [shared, private, other] {
        system.run(map.map(&request)).unwrap();
    }
    // Copies from a page of the map to the second page of the file, or back.
    let copy = |page: u64, out: bool| {
        let access = if out { WRITE } else { READ };
        let copied = map.try_with_frame(BASE + page * PAGE_SIZE, access, |program| {
            file.try_with_frame(PAGE_SIZE, if out { READ } else { WRITE }, |frame, _| {
                let (from, to) = if out { (frame, program) } else { (program, frame) };
                system.machine.copy_between((from, 0), (to, 0), 4);
            })
        });
        copied.unwrap().unwrap().is_some()
    };
    assert_eq!([copy(0, false), copy(1, true)], [false; 2], "both pages are of the file");
    assert!(!copy(2, false), "and a private one that is not written yet");
    assert!(copy(3, true) && copy(3, false));
    system.run(store(&map, BASE + 2 * PAGE_SIZE, b"mine")).unwrap();
    assert!(copy(2, false));
    assert_eq!(system.run(load(&map, BASE + PAGE_SIZE, 4)).unwrap(), b"mine");
}

#[test]
fn an_object_becomes_longer_by_what_is_written_at_its_end() {
    let system = System::new(64);
    let size = PAGE_SIZE + 10;
    let pager = FilePager::new(vec![7; size as usize]);
    let file = VmObject::paged(system.vm(), pager.clone(), size, CopyStrategy::Symmetric).unwrap();
    let extend = |offset: u64, bytes: &[u8]| {
        let within = (offset % PAGE_SIZE) as usize;
        let write = |frame| system.machine.write_frame(frame, within, bytes);
        (file.try_extend(offset, bytes.len() as u64, write), file.size())
    };
    assert_eq!(extend(size, &[9; 4]), (None, size), "the pager has the start of this page");
    assert!(pager.requests.lock().unwrap().is_empty());
    assert_eq!(extend(PAGE_SIZE, &[9; 10]), (None, size), "the object has these bytes");
    assert_eq!(extend(3 * PAGE_SIZE - 1, &[9; 2]), (None, size), "they are in two pages");
    assert_eq!(extend(2 * PAGE_SIZE + 6, &[9; 4]), (Some(()), 2 * PAGE_SIZE + 10));
    assert_eq!(extend(2 * PAGE_SIZE + 10, &[8; 2]), (Some(()), 2 * PAGE_SIZE + 12));
    assert_eq!(extend(3 * PAGE_SIZE, &[6; PAGE_SIZE as usize]), (Some(()), 4 * PAGE_SIZE));
    assert!(pager.requests.lock().unwrap().is_empty(), "its pager has nothing for these pages");
    let mut bytes = [1; 16];
    system.run(file.read(2 * PAGE_SIZE, &mut bytes)).unwrap();
    assert_eq!(bytes, [0, 0, 0, 0, 0, 0, 9, 9, 9, 9, 8, 8, 0, 0, 0, 0]);
    let mut bytes = [1; 4];
    system.run(file.read(4 * PAGE_SIZE - 2, &mut bytes[..2])).unwrap();
    assert_eq!(bytes, [6, 6, 1, 1]);
    system.run(file.read(PAGE_SIZE + 6, &mut bytes)).unwrap();
    assert_eq!(bytes, [7; 4], "the page that was the last one is the pager's");
}

#[test]
fn a_whole_page_is_overwritten_without_its_pager() {
    let system = System::new(64);
    let size = 2 * PAGE_SIZE + 10;
    let pager = FilePager::new(vec![7; size as usize]);
    let file = VmObject::paged(system.vm(), pager.clone(), size, CopyStrategy::Symmetric).unwrap();
    let fill = |offset: u64| {
        file.try_overwrite(offset, |frame| system.machine.write_frame(frame, 0, &[9; PAGE_SIZE as usize]))
    };
    assert_eq!(fill(PAGE_SIZE), Some(()));
    assert_eq!(fill(2 * PAGE_SIZE), None, "the page reaches beyond the end");
    assert_eq!(fill(3 * PAGE_SIZE), None);
    assert!(pager.requests.lock().unwrap().is_empty());
    let mut bytes = [0; 4];
    system.run(file.read(PAGE_SIZE - 2, &mut bytes)).unwrap();
    assert_eq!(bytes, [7, 7, 9, 9]);
    assert_eq!(fill(0), Some(()), "a page in memory, too");
    let copied =
        VmObject::paged(system.vm(), FilePager::new(vec![7; 4096]), 4096, CopyStrategy::Delay).unwrap();
    system.run(copied.read(0, &mut [0; 1])).unwrap();
    let map = system.map();
    let copy = MapRequest::private(copied.clone(), 0, PAGE_SIZE).at(Placement::Fixed(BASE));
    system.run(map.map(&copy)).unwrap();
    assert_eq!(copied.try_overwrite(0, |_| ()), None, "the copy has to save it first");
}
