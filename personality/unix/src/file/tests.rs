//! Tests of open file descriptions.

use super::*;
use crate::poll::PollQueue;
use crate::testing::{Task, World, now};
use crate::{BoxFuture, Bytes, CopyError, Part, UserBuffer};
use alloc::boxed::Box;
use core::pin::pin;
use core::task::{Context, Waker};

const RW: OpenFlags = OpenFlags::READ_WRITE;
const CREATE: OpenFlags = OpenFlags::CREATE;

#[test]
fn a_file_position_is_shared_within_one_description() {
    let w = World::new();
    let a = w.open("/f", RW | CREATE).unwrap();
    w.write(&a, b"abcdef").unwrap();
    let b = w.open("/f", OpenFlags::READ).unwrap();
    assert_eq!(w.read(&b, 2), Ok(b"ab".to_vec()));
    assert_eq!(w.read(&b, 2), Ok(b"cd".to_vec()));
    assert_eq!(w.read(&a, 2), Ok(vec![]));
    assert_eq!(now(a.seek(-2, Whence::End)), Ok(4));
    assert_eq!(w.read(&a, 9), Ok(b"ef".to_vec()));
    assert_eq!(now(a.seek(-7, Whence::End)), Err(Error::EINVAL));
    assert_eq!(now(a.seek(10, Whence::Start)), Ok(10));
    w.write(&a, b"x").unwrap();
    assert_eq!(w.cat("/f"), Ok(b"abcdef\0\0\0\0x".to_vec()));
    assert_eq!(now(a.seek(i64::MAX, Whence::Current)), Err(Error::EOVERFLOW));
    assert_eq!(w.write(&b, b"x"), Err(Error::EBADF));
}

#[test]
fn seek_finds_data_and_holes() {
    let w = World::new();
    let f = w.open("/f", RW | CREATE).unwrap();
    let caller = w.caller();
    now(f.write_at(&caller, 3 * 4096, &mut Bytes::of(b"x"))).unwrap();
    now(f.truncate(&caller, 6 * 4096)).unwrap();
    assert_eq!(now(f.seek(0, Whence::Data)), Ok(3 * 4096));
    assert_eq!(now(f.seek(0, Whence::Hole)), Ok(0));
    assert_eq!(now(f.seek(3 * 4096 + 5, Whence::Data)), Ok(3 * 4096 + 5));
    assert_eq!(now(f.seek(3 * 4096, Whence::Hole)), Ok(4 * 4096));
    assert_eq!(now(f.seek(4 * 4096, Whence::Data)), Err(Error::ENXIO));
    assert_eq!(now(f.seek(6 * 4096, Whence::Hole)), Err(Error::ENXIO));
}

#[test]
fn an_append_goes_to_the_end_whatever_the_position_is() {
    let w = World::new();
    w.put("/f", b"abc");
    let f = w.open("/f", RW | OpenFlags::APPEND).unwrap();
    w.write(&f, b"d").unwrap();
    let caller = w.caller();
    now(f.write_at(&caller, 0, &mut Bytes::of(b"e"))).unwrap();
    assert_eq!(w.cat("/f"), Ok(b"abcde".to_vec()));
    f.set_flags(&caller, OpenFlags::empty()).unwrap();
    now(f.write_at(&caller, 0, &mut Bytes::of(b"X"))).unwrap();
    assert_eq!(w.cat("/f"), Ok(b"Xbcde".to_vec()));
    assert!(f.flags().contains(OpenFlags::READ_WRITE), "the access mode does not change");
}

#[test]
fn a_write_is_cut_at_the_file_size_limit_and_the_next_is_refused() {
    let mut w = World::new();
    w.file_size_limit = 10;
    let f = w.open("/f", RW | CREATE).unwrap();
    assert_eq!(w.write(&f, &[1; 20]), Ok(10));
    assert_eq!(w.write(&f, &[1; 20]), Err(Error::EFBIG));
    let caller = w.caller();
    assert_eq!(now(f.truncate(&caller, 11)), Err(Error::EFBIG));
    assert_eq!(now(f.truncate(&caller, 9)), Ok(()));
}

/// User memory with pages that are not resident and pages that do not exist.
struct SparseMemory {
    position: usize,
    length: usize,
    resident: Vec<bool>,
    exists: usize,
}

impl SparseMemory {
    fn step(&mut self, wanted: usize) -> Result<usize, CopyError> {
        let page = self.position / 4096;
        if wanted == 0 {
            return Ok(0);
        }
        if self.position >= self.exists {
            return Err(CopyError::Fault);
        }
        if !self.resident[page] {
            return Err(CopyError::NotResident);
        }
        let count = wanted.min(4096 - self.position % 4096).min(self.exists - self.position);
        self.position += count;
        Ok(count)
    }
}

impl UserBuffer for SparseMemory {
    fn remaining(&self) -> usize {
        self.length - self.position
    }
    fn transferred(&self) -> usize {
        self.position
    }
    fn copy_out(&mut self, bytes: &[u8]) -> Result<usize, CopyError> {
        self.step(bytes.len())
    }
    fn copy_in(&mut self, bytes: &mut [u8]) -> Result<usize, CopyError> {
        let count = self.step(bytes.len())?;
        bytes[..count].fill(7);
        Ok(count)
    }
    fn with_part(
        &mut self,
        length: usize,
        _write: bool,
        work: &mut dyn FnMut(Part<'_>) -> usize,
    ) -> Result<usize, CopyError> {
        let start = self.position;
        let count = self.step(length.min(self.remaining()))?;
        let used = if count > 0 { work(Part::Bytes(&mut vec![7; count])) } else { 0 };
        self.position = start + used;
        Ok(used)
    }
    fn skip(&mut self, count: usize) {
        self.position += count;
    }
    fn retreat(&mut self, count: usize) {
        self.position -= count;
    }
    fn resolve(&mut self, _write: bool) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            if self.position >= self.exists {
                return Err(Error::EFAULT);
            }
            let last = (self.position + 4095).min(self.length - 1) / 4096;
            self.resident[self.position / 4096..=last].fill(true);
            Ok(())
        })
    }
}

#[test]
fn absent_user_memory_is_brought_in_and_bad_memory_cuts_the_transfer() {
    let w = World::new();
    let caller = w.caller();
    let f = w.open("/f", RW | CREATE).unwrap();
    let holey = |length, exists| SparseMemory { position: 0, length, resident: vec![false; 100], exists };
    assert_eq!(now(f.write(&caller, &mut holey(20000, 20000))), Ok(20000));
    assert_eq!(now(f.write(&caller, &mut holey(20000, 5000))), Ok(5000));
    assert_eq!(now(f.write(&caller, &mut holey(20000, 0))), Err(Error::EFAULT));
    assert_eq!(f.metadata().size, 25000);
    assert_eq!(now(f.read_at(&caller, 0, &mut holey(30000, 30000))), Ok(25000));
    assert_eq!(now(f.read_at(&caller, 0, &mut holey(30000, 4097))), Ok(4097));
    assert_eq!(now(f.seek(0, Whence::Current)), Ok(25000));
    // A transfer through a pipe finds pages that are not resident, too. A small write to a pipe is
    // done completely or not at all.
    let (read, write) = crate::testing::pipe(OpenFlags::NONBLOCK);
    let mut across = SparseMemory { position: 0, length: 9000, resident: vec![false; 9], exists: 9000 };
    across.position = 4000;
    across.length = 4200;
    assert_eq!(now(write.write(&caller, &mut across)), Ok(200));
    let mut bad = SparseMemory { position: 4000, length: 4200, resident: vec![false; 9], exists: 4100 };
    assert_eq!(now(write.write(&caller, &mut bad)), Err(Error::EFAULT));
    assert_eq!(now(read.read(&caller, &mut holey(9000, 100))), Ok(100));
    assert_eq!(now(read.read(&caller, &mut holey(9000, 0))), Err(Error::EFAULT));
    assert_eq!(now(read.read(&caller, &mut holey(9000, 9000))), Ok(100), "nothing was lost by the fault");
}

#[test]
fn a_transfer_between_files_moves_offsets_by_what_was_written() {
    let w = World::new();
    let caller = w.caller();
    let content: Vec<u8> = (0..200_000u32).map(|i| i as u8).collect();
    w.put("/from", &content);
    let from = w.open("/from", OpenFlags::READ).unwrap();
    let to = w.open("/to", RW | CREATE).unwrap();
    let mut moved = 0;
    now(transfer(&caller, &from, None, &to, None, 150_000, &mut moved)).unwrap();
    assert_eq!((moved, now(from.seek(0, Whence::Current))), (150_000, Ok(150_000)));
    let mut offset = 190_000;
    moved = 0;
    now(transfer(&caller, &from, Some(&mut offset), &to, None, usize::MAX, &mut moved)).unwrap();
    assert_eq!((moved, offset), (10_000, 200_000));
    assert_eq!(w.cat("/to").unwrap(), [&content[..150_000], &content[190_000..]].concat());
    // A transfer to a pipe that fills up reports how far it came, even if it is interrupted.
    let (_read, write) = crate::testing::pipe(OpenFlags::NONBLOCK);
    let (mut offset, mut moved) = (0, 0);
    now(transfer(&caller, &from, Some(&mut offset), &write, None, 100_000, &mut moved)).unwrap();
    assert_eq!((moved as u64, offset), (65536, 65536));
    assert_eq!(now(transfer(&caller, &write, None, &to, None, 1, &mut 0)), Err(Error::EBADF));
    assert_eq!(now(transfer(&caller, &to, None, &to, None, 1, &mut 0)), Err(Error::EINVAL));
    let append = w.open("/to", OpenFlags::WRITE | OpenFlags::APPEND).unwrap();
    assert_eq!(now(transfer(&caller, &from, None, &append, None, 1, &mut 0)), Err(Error::EINVAL));
}

#[test]
fn transfers_between_two_files_in_opposite_directions_do_not_deadlock() {
    let w = World::new();
    let caller = w.caller();
    let (a, b) = (w.open("/a", RW | CREATE).unwrap(), w.open("/b", RW | CREATE).unwrap());
    for (first, second) in [(&a, &b), (&b, &a)] {
        let held = now(first.position.lock());
        let (mut moved, mut moved_back) = (0, 0);
        let mut there = pin!(transfer(&caller, first, None, second, None, 1, &mut moved));
        let mut back = pin!(transfer(&caller, second, None, first, None, 1, &mut moved_back));
        let mut context = Context::from_waker(Waker::noop());
        assert!(there.as_mut().poll(&mut context).is_pending());
        assert!(back.as_mut().poll(&mut context).is_pending());
        drop(held);
        // Polls both transfers until one has ended.
        let (mut there_ended, mut back_ended) = (false, false);
        for _ in 0..3 {
            there_ended = there_ended || there.as_mut().poll(&mut context).is_ready();
            back_ended = back_ended || back.as_mut().poll(&mut context).is_ready();
        }
        assert!(there_ended && back_ended);
    }
}

#[test]
fn closing_a_description_releases_its_locks() {
    let w = World::new();
    w.put("/f", b"");
    let a = w.open("/f", RW).unwrap();
    let b = w.open("/f", RW).unwrap();
    let locks = |file: &OpenFile| file.hooks().unwrap().locks.list().len();
    let owner = LockOwner::Description(a.id());
    let by = LockMaker { process: 1, file: a.id() };
    a.hooks().unwrap().locks.try_lock_whole(owner, by, Some(LockKind::Exclusive)).unwrap();
    assert_eq!(locks(&b), 1);
    drop(a);
    assert_eq!(locks(&b), 0);
}

/// A file object that never becomes ready, but has a deadline.
struct NeverReady(PollQueue);

impl FileObject for NeverReady {
    fn try_read(&self, io: &Io<'_>, _to: &mut dyn UserBuffer) -> Result<usize, crate::AttemptError> {
        if io.expired { Ok(0) } else { Err(crate::AttemptError::WouldBlock) }
    }
    fn deadline(&self, io: &Io<'_>, _write: bool) -> Option<core::time::Duration> {
        Some(io.started + core::time::Duration::from_secs(2))
    }
    fn queue(&self) -> Option<&PollQueue> {
        Some(&self.0)
    }
    fn label(&self) -> &'static str {
        "patient"
    }
}

#[test]
fn a_read_of_an_object_with_a_deadline_ends_at_it() {
    let w: &'static World = Box::leak(Box::new(World::new()));
    let file = OpenFile::of_object(Arc::new(NeverReady(PollQueue::new())), OpenFlags::READ);
    let mut task = Task::new(async move {
        let caller = w.caller();
        file.read(&caller, &mut Bytes::empty(1)).await
    });
    task.waits();
    w.environment.advance(core::time::Duration::from_secs(1));
    task.waits();
    w.environment.advance(core::time::Duration::from_secs(1));
    assert_eq!(task.finish(), Ok(0));
}
