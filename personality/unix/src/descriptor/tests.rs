use super::*;
use crate::file::{LockKind, LockMaker, LockRange};
use crate::testing::{World, account, pipe};
use crate::vfs::OpenFlags;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn file() -> Arc<OpenFile> {
    pipe(OpenFlags::empty()).0
}

#[test]
fn insert_gives_the_lowest_free_descriptor() {
    let t = DescriptorTable::new();
    for expected in 0..5 {
        assert_eq!(t.insert(file(), false, 1024), Ok(expected));
    }
    t.close(1).unwrap();
    t.close(3).unwrap();
    assert_eq!(t.insert(file(), false, 1024), Ok(1));
    assert_eq!(t.insert(file(), false, 1024), Ok(3));
    assert_eq!(t.insert(file(), false, 5), Err(Error::EMFILE));
    assert_eq!(t.close(7), Err(Error::EBADF));
    assert_eq!(t.close(-1), Err(Error::EBADF));
    assert_eq!(t.duplicate(0, 10, true, 1024), Ok(10));
    assert_eq!(t.close_on_exec(10), Ok(true));
    assert_eq!(t.duplicate(0, 10, false, 1024), Ok(11));
    assert_eq!(t.duplicate(0, 1024, false, 1024), Err(Error::EINVAL));
    assert_eq!(t.duplicate(0, -1, false, 1024), Err(Error::EINVAL));
    assert_eq!(t.duplicate_to(0, 2, false, 1024), Ok(2));
    assert!(Arc::ptr_eq(&t.get(0).unwrap(), &t.get(2).unwrap()));
    assert_eq!(t.duplicate_to(0, 1024, false, 1024), Err(Error::EBADF));
    assert_eq!(t.duplicate_to(99, 0, false, 1024), Err(Error::EBADF));
    assert_eq!(t.duplicate_to(99, 99, false, 1024), Err(Error::EBADF));
    assert_eq!(t.insert_pair((file(), file()), false, 6), Err(Error::EMFILE));
    assert_eq!(t.get(5).err(), Some(Error::EBADF), "the first of a failed pair is gone");
}

#[test]
fn a_copied_table_is_independent_and_exec_closes_marked_descriptors() {
    let t = DescriptorTable::new();
    for close in [false, true, false] {
        t.insert(file(), close, 9).unwrap();
    }
    let copy = t.copy().unwrap();
    t.close(0).unwrap();
    assert_eq!(copy.list(), [0, 1, 2]);
    copy.close_for_exec();
    assert_eq!(copy.list(), [0, 2]);
    copy.close_range(1, u32::MAX, false).unwrap();
    assert_eq!(copy.list(), [0]);
    assert_eq!(copy.close_range(3, 2, false), Err(Error::EINVAL));
    t.close_range(0, 9, true).unwrap();
    t.close_for_exec();
    assert!(t.list().is_empty());
}

#[test]
fn closing_any_descriptor_of_a_file_releases_its_record_locks() {
    let w = World::new();
    w.put("/f", b"");
    let t = DescriptorTable::new();
    for _ in 0..2 {
        t.insert(w.open("/f", OpenFlags::READ_WRITE).unwrap(), false, 9).unwrap();
    }
    let locks = &t.get(0).unwrap();
    let locks = &locks.hooks().unwrap().locks;
    let by = LockMaker { process: 1, file: 0 };
    let lock =
        || locks.try_set(&account(), t.lock_owner(), by, Some(LockKind::Exclusive), LockRange::ALL).unwrap();
    lock();
    let child = t.copy().unwrap();
    child.close(0).unwrap();
    assert_eq!(locks.list().len(), 1, "another process's close does not matter");
    t.close(1).unwrap();
    assert!(locks.list().is_empty());
    lock();
    drop(t);
    assert!(locks.list().is_empty());
}

proptest! {
    /// A descriptor table behaves as a model does: a map from numbers to files.
    #[test]
    fn a_descriptor_table_behaves_as_a_map(steps in proptest::collection::vec((0u8..4, 0i32..12, 0i32..12), 1..80)) {
        let t = DescriptorTable::new();
        let mut model: BTreeMap<i32, u64> = BTreeMap::new();
        let free = |model: &BTreeMap<i32, u64>, least: i32| (least..10).find(|n| !model.contains_key(n));
        for (step, a, b) in steps {
            match step {
                0 => {
                    let f = file();
                    let id = f.id();
                    let expected = free(&model, 0).ok_or(Error::EMFILE);
                    prop_assert_eq!(t.insert(f, false, 10), expected);
                    if let Ok(n) = expected { model.insert(n, id); }
                }
                1 => prop_assert_eq!(t.close(a).is_ok(), model.remove(&a).is_some()),
                2 => {
                    let expected = match model.get(&a) {
                        None => Err(Error::EBADF),
                        Some(_) if b >= 10 => Err(Error::EINVAL),
                        Some(_) => free(&model, b).ok_or(Error::EMFILE),
                    };
                    prop_assert_eq!(t.duplicate(a, b, false, 10), expected);
                    if let Ok(n) = expected { model.insert(n, model[&a]); }
                }
                _ => {
                    let ok = model.contains_key(&a) && b < 10;
                    prop_assert_eq!(t.duplicate_to(a, b, false, 10).is_ok(), ok);
                    if ok { model.insert(b, model[&a]); }
                }
            }
            let now: BTreeMap<i32, u64> = t.list().into_iter().map(|n| (n, t.get(n).unwrap().id())).collect();
            prop_assert_eq!(&now, &model);
        }
    }
}

#[test]
fn the_room_of_a_table_grows_in_steps_and_a_copy_is_no_larger_than_needed() {
    let t = DescriptorTable::new();
    assert_eq!(t.room(), 64);
    t.insert(file(), false, 9).unwrap();
    for (descriptor, room) in [(63, 64), (64, 128), (127, 128), (128, 256), (300, 512), (700, 1024)] {
        t.duplicate_to(0, descriptor, false, 1024).unwrap();
        assert_eq!(t.room(), room, "{descriptor}");
    }
    t.close_range(200, u32::MAX, false).unwrap();
    assert_eq!((t.room(), t.copy().unwrap().room()), (1024, 256));
    t.close_range(0, u32::MAX, false).unwrap();
    let copy = t.copy().unwrap();
    assert_eq!((copy.room(), copy.insert(file(), false, 9)), (64, Ok(0)));
}
