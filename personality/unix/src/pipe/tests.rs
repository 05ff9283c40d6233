use super::*;
use crate::Privilege;
use crate::account::{Kept, Setting};
use crate::testing::{Task, World, has_happened, meanwhile, now, pipe, run_all};
use crate::vfs::{At, Mode};
use crate::{BoxFuture, Bytes};
use core::task::{Context, Waker};
use proptest::prelude::*;
use std::sync::Mutex;
use std::task::Wake;

fn world() -> &'static World {
    Box::leak(Box::new(World::new()))
}

fn reading(w: &'static World, file: &Arc<OpenFile>, count: usize) -> Task<Result<Vec<u8>>> {
    let file = file.clone();
    Task::new(async move {
        let mut to = Bytes::empty(count);
        file.read(&w.caller(), &mut to).await.map(|_| to.done().to_vec())
    })
}

fn writing(w: &'static World, file: &Arc<OpenFile>, bytes: Vec<u8>) -> Task<Result<usize>> {
    let file = file.clone();
    Task::new(async move { file.write(&w.caller(), &mut Bytes::of(&bytes)).await })
}

#[test]
fn a_reader_waits_for_writers_and_sees_them_close() {
    let w = world();
    let (read, write) = pipe(OpenFlags::empty());
    let mut reader = reading(w, &read, 10);
    reader.waits();
    assert_eq!(w.write(&write, b"abc"), Ok(3));
    assert_eq!(reader.finish(), Ok(b"abc".to_vec()));
    let mut reader = reading(w, &read, 10);
    reader.waits();
    assert_eq!(read.readiness(), Readiness::empty());
    drop(write);
    assert_eq!(reader.finish(), Ok(vec![]));
    assert_eq!(read.readiness(), Readiness::HANGUP);
}

#[test]
fn a_write_to_a_pipe_without_readers_is_epipe() {
    let w = world();
    let (read, write) = pipe(OpenFlags::empty());
    let mut writer = writing(w, &write, vec![1; 100_000]);
    writer.waits();
    drop(read);
    // The first write returns the count of what was written before the reader closed, and the next
    // write fails.
    assert_eq!(writer.finish(), Ok(65536));
    assert_eq!(w.write(&write, b"x"), Err(Error::EPIPE));
    assert!(write.readiness().contains(Readiness::ERROR));
}

#[test]
fn nonblocking_reads_and_writes_return_eagain() {
    let w = world();
    let (read, write) = pipe(OpenFlags::NONBLOCK);
    assert_eq!(w.read(&read, 1), Err(Error::EAGAIN));
    assert_eq!(w.write(&write, &[1; 70_000]), Ok(65536));
    assert_eq!(w.write(&write, &[1; 1]), Err(Error::EAGAIN));
    assert!(!write.readiness().contains(Readiness::WRITE));
    w.read(&read, 4095).unwrap();
    assert_eq!(w.write(&write, &[1; 4096]), Err(Error::EAGAIN), "up to PIPE_BUF it is all or nothing");
    assert_eq!(w.write(&write, &[1; 4097]), Ok(4095));
    assert_eq!(w.read(&read, 0), Ok(vec![]));
    assert_eq!(read.object().unwrap().readable_bytes(), Ok(65536));
}

#[test]
fn an_interrupted_write_returns_how_many_bytes_it_wrote() {
    let w = world();
    let (read, write) = pipe(OpenFlags::empty());
    let buffer = Arc::new(Mutex::new(Bytes::of(&[5; 100_000])));
    struct Shared(Arc<Mutex<Bytes>>);
    impl UserBuffer for Shared {
        fn remaining(&self) -> usize {
            self.0.lock().unwrap().remaining()
        }
        fn transferred(&self) -> usize {
            self.0.lock().unwrap().transferred()
        }
        fn copy_out(&mut self, bytes: &[u8]) -> Result<usize, crate::CopyError> {
            self.0.lock().unwrap().copy_out(bytes)
        }
        fn copy_in(&mut self, bytes: &mut [u8]) -> Result<usize, crate::CopyError> {
            self.0.lock().unwrap().copy_in(bytes)
        }
        fn with_part(
            &mut self,
            length: usize,
            write: bool,
            work: &mut dyn FnMut(crate::Part<'_>) -> usize,
        ) -> Result<usize, crate::CopyError> {
            self.0.lock().unwrap().with_part(length, write, work)
        }
        fn skip(&mut self, count: usize) {
            self.0.lock().unwrap().skip(count)
        }
        fn retreat(&mut self, count: usize) {
            self.0.lock().unwrap().retreat(count)
        }
        fn resolve(&mut self, _write: bool) -> crate::BoxFuture<'_, Result<()>> {
            Box::pin(core::future::ready(Ok(())))
        }
    }
    let mut shared = Shared(buffer.clone());
    let mut writer = Task::new(async move { write.write(&w.caller(), &mut shared).await });
    writer.waits();
    w.read(&read, 1000).unwrap();
    writer.waits();
    drop(writer);
    assert_eq!(buffer.lock().unwrap().transferred(), 66536);
    assert_eq!(w.read(&read, 100_000).unwrap().len(), 65536);
    assert_eq!(w.read(&read, 1), Ok(vec![]), "the write end went with the task");
}

#[test]
fn the_capacity_can_be_set_within_its_limits() {
    let w = world();
    let (read, write) = pipe(OpenFlags::NONBLOCK);
    let end = write.pipe_end().unwrap();
    let user = Identity::new(1, 1, Arc::new([]));
    assert_eq!(end.pipe().capacity(), DEFAULT_CAPACITY);
    assert_eq!(end.pipe().set_capacity(&user, 1), Ok(4096));
    assert_eq!(end.pipe().set_capacity(&user, 5000), Ok(8192));
    assert_eq!(w.write(&write, &[0; 9000]), Ok(8192));
    assert_eq!(end.pipe().set_capacity(&user, 4096), Err(Error::EBUSY));
    assert_eq!(end.pipe().set_capacity(&user, (1 << 20) + 1), Err(Error::EPERM));
    assert_eq!(end.pipe().set_capacity(&Identity::superuser(), (1 << 20) + 1), Ok(2 << 20));
    assert_eq!(end.pipe().set_capacity(&user, (1 << 31) + 1), Err(Error::EINVAL));
    assert_eq!(w.read(&read, 9000).unwrap().len(), 8192);
}

#[test]
fn the_pipes_of_a_user_are_limited_together() {
    let mut w = World::new();
    w.become_user(1000, 1000);
    let account = w.process.account.clone();
    account.settings().set(Setting::PipePagesSoft, 40);
    account.settings().set(Setting::PipePagesHard, 43);
    let make = |w: &World| super::pipe(&w.caller(), OpenFlags::empty()).map(|(_read, write)| write);
    let capacity = |file: &Arc<OpenFile>| file.pipe_end().unwrap().pipe().capacity();
    let set = |w: &World, file: &Arc<OpenFile>, bytes| {
        file.pipe_end().unwrap().pipe().set_capacity(&w.identity, bytes)
    };
    let mut all: Vec<_> = (0..3).map(|_| make(&w).unwrap()).collect();
    assert_eq!(
        all.iter().map(capacity).collect::<Vec<_>>(),
        [65536, 65536, 8192],
        "a small one above the soft limit"
    );
    all.push(make(&w).unwrap_or_else(|_| panic!("32 + 2 + 2 pages are allowed")));
    assert_eq!(set(&w, &all[3], 16384 * 2), Err(Error::EPERM), "32 + 2 + 8 are more than the soft limit");
    assert_eq!(set(&w, &all[3], 16384), Ok(16384));
    all.extend([make(&w).unwrap(), make(&w).unwrap()]);
    assert_eq!(account.amount(Kept::PipePages), 42);
    assert!(matches!(make(&w), Err(Error::ENFILE)), "44 are more than the hard limit");
    assert_eq!(set(&w, &all[0], 4096), Ok(4096), "less is always possible");
    assert!(make(&w).is_ok());
    // The superuser's privileges lift the limits, but a pipe's capacity is charged to the user that
    // made the pipe.
    let administrator = w.identity.clone().with(Privilege::Administrator);
    let grown = all[1].pipe_end().unwrap().pipe().set_capacity(&administrator, 1 << 20);
    assert_eq!((grown, account.amount(Kept::PipePages)), (Ok(1 << 20), 42 - 15 + 240));
    drop(all);
    assert_eq!((account.amount(Kept::PipePages), account.amount(Kept::ServerMemory)), (0, 0));
    assert_eq!(capacity(&make(&w).unwrap()), 65536);
}

fn fifo(w: &'static World) {
    let (caller, mode) = (w.caller(), Mode::new(0o666));
    now(caller.make_node(&At::Current, b"/fifo", FileType::Fifo, mode, Default::default())).unwrap();
}

fn opening(w: &'static World, flags: OpenFlags) -> Task<Result<Arc<OpenFile>>> {
    Task::new(async move { w.caller().open(&At::Current, b"/fifo", flags, Mode::empty()).await })
}

#[test]
fn opening_a_fifo_waits_for_the_other_end() {
    let w = world();
    fifo(w);
    let mut reader = opening(w, OpenFlags::READ);
    reader.waits();
    let mut writer = opening(w, OpenFlags::WRITE);
    let write = writer.finish().unwrap();
    let read = reader.finish().unwrap();
    w.write(&write, b"through").unwrap();
    assert_eq!(w.read(&read, 99), Ok(b"through".to_vec()));
    drop(write);
    assert_eq!(w.read(&read, 99), Ok(vec![]));
    // A writer that opened and closed the FIFO while the reader was being woken still counts.
    drop(read);
    let mut reader = opening(w, OpenFlags::READ);
    reader.waits();
    drop(opening(w, OpenFlags::WRITE).finish().unwrap());
    assert_eq!(w.read(&reader.finish().unwrap(), 1), Ok(vec![]));
}

/// A task that runs as soon as it is woken, before the waking thread goes on, as it might on
/// another processor.
struct RunsWhenWoken(Mutex<Option<BoxFuture<'static, ()>>>);

impl Wake for RunsWhenWoken {
    fn wake(self: Arc<Self>) {
        let Some(mut task) = self.0.lock().unwrap().take() else { return };
        let waker = Waker::from(self.clone());
        if task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            *self.0.lock().unwrap() = Some(task);
        }
    }
}

#[test]
fn a_waiting_writer_may_have_closed_before_the_reader_that_woke_it_goes_on() {
    let w = world();
    fifo(w);
    let writer = Box::pin(async move {
        let write = w.caller().open(&At::Current, b"/fifo", OpenFlags::WRITE, Mode::empty()).await.unwrap();
        w.write(&write, b"through").unwrap();
    });
    Arc::new(RunsWhenWoken(Mutex::new(Some(writer)))).wake();
    let read = opening(w, OpenFlags::READ).finish().unwrap();
    assert_eq!(read.readiness(), Readiness::READ | Readiness::HANGUP);
    assert_eq!(w.read(&read, 99), Ok(b"through".to_vec()));
    assert_eq!(w.read(&read, 99), Ok(vec![]));
}

#[test]
fn opening_a_fifo_nonblocking_or_for_both_does_not_wait() {
    let w = world();
    fifo(w);
    let nonblock = OpenFlags::NONBLOCK;
    assert_eq!(opening(w, OpenFlags::WRITE | nonblock).finish().err(), Some(Error::ENXIO));
    let read = opening(w, OpenFlags::READ | nonblock).finish().unwrap();
    assert_eq!(w.read(&read, 1), Ok(vec![]), "no writer: end of file");
    assert_eq!(read.readiness(), Readiness::empty(), "no hang-up before the first writer");
    let write = opening(w, OpenFlags::WRITE | nonblock).finish().unwrap();
    assert_eq!(w.read(&read, 1), Err(Error::EAGAIN));
    drop(write);
    assert_eq!(read.readiness(), Readiness::HANGUP);
    let both = opening(w, OpenFlags::READ_WRITE).finish().unwrap();
    w.write(&both, b"x").unwrap();
    assert_eq!(w.read(&both, 9), Ok(b"x".to_vec()));
    drop((read, both));
    // No end remains of an open that is interrupted.
    let mut writer = opening(w, OpenFlags::WRITE);
    writer.waits();
    drop(writer);
    let mut reader = opening(w, OpenFlags::READ);
    reader.waits();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    /// The bytes that all writers write arrive once and in order, and small writes arrive in one
    /// piece.
    #[test]
    fn bytes_through_a_pipe_arrive_once_and_in_order(
        writes in proptest::collection::vec(proptest::collection::vec(1usize..9000, 1..12), 1..4),
        reads in proptest::collection::vec(1usize..9000, 1..4),
    ) {
        let w = world();
        let (read, write) = pipe(OpenFlags::empty());
        let total: usize = writes.iter().flatten().sum();
        let got = Arc::new(Mutex::new(Vec::new()));
        let mut tasks: Vec<crate::BoxFuture<'static, ()>> = Vec::new();
        for (writer, sizes) in writes.iter().cloned().enumerate() {
            let write = write.clone();
            tasks.push(Box::pin(async move {
                for (index, size) in sizes.into_iter().enumerate() {
                    let bytes = vec![(writer * 16 + index) as u8; size];
                    assert_eq!(write.write(&w.caller(), &mut Bytes::of(&bytes)).await, Ok(size));
                }
            }));
        }
        drop(write);
        let sink = got.clone();
        tasks.push(Box::pin(async move {
            for size in reads.into_iter().cycle() {
                let mut to = Bytes::empty(size);
                if read.read(&w.caller(), &mut to).await.unwrap() == 0 {
                    break;
                }
                sink.lock().unwrap().extend_from_slice(to.done());
            }
        }));
        run_all(tasks);
        let got = got.lock().unwrap();
        prop_assert_eq!(got.len(), total);
        for (writer, sizes) in writes.iter().enumerate() {
            let mine: Vec<u8> = got.iter().copied().filter(|b| (*b >> 4) as usize == writer).collect();
            let expected: Vec<u8> = sizes.iter().enumerate().flat_map(|(i, n)| vec![(writer * 16 + i) as u8; *n]).collect();
            prop_assert_eq!(mine, expected);
            for (index, size) in sizes.iter().enumerate().filter(|(_, size)| **size <= PIPE_BUF) {
                let tag = (writer * 16 + index) as u8;
                let first = got.iter().position(|b| *b == tag).unwrap();
                prop_assert!(got[first..first + size].iter().all(|b| *b == tag), "a small write was torn");
            }
        }
    }
}

#[test]
fn a_splice_waits_again_if_another_reader_took_the_bytes() {
    let w = world();
    for copies in [false, true] {
        let ((from, input), (output, to)) = (pipe(OpenFlags::NONBLOCK), pipe(OpenFlags::NONBLOCK));
        w.write(&input, b"a").unwrap();
        while w.write(&to, &[0; 4096]).is_ok() {}
        for file in [&from, &to] {
            file.set_flag(OpenFlags::NONBLOCK, false);
        }
        let (source, target) = (from.clone(), to.clone());
        let mut moving = Task::new(async move {
            if copies {
                return tee(&source, &target, 9, false).await;
            }
            let mut moved = 0;
            splice(&w.caller(), (&source, None), (&target, None), 9, false, &mut moved).await.map(|()| moved)
        });
        // The call has seen a byte, and waits for room in the target.
        moving.waits();
        assert_eq!(w.read(&from, 9), Ok(b"a".to_vec()));
        w.read(&output, 65536).unwrap();
        moving.waits();
        w.write(&input, b"bc").unwrap();
        assert_eq!(moving.finish(), Ok(2));
        assert_eq!(w.read(&output, 9), Ok(b"bc".to_vec()));
    }
}

#[test]
fn a_splice_takes_only_what_another_reader_has_left() {
    let w = world();
    let ((from, input), (output, to)) = (pipe(OpenFlags::NONBLOCK), pipe(OpenFlags::NONBLOCK));
    w.write(&input, b"abc").unwrap();
    let other = from.clone();
    meanwhile("a splice takes", move || assert_eq!(w.read(&other, 2), Ok(b"ab".to_vec())));
    let (mut moved, caller) = (0, w.caller());
    assert_eq!(now(splice(&caller, (&from, None), (&to, None), 3, true, &mut moved)), Ok(()));
    assert!(has_happened());
    assert_eq!((moved, w.read(&output, 9)), (1, Ok(b"c".to_vec())));
    assert_eq!(w.read(&from, 9), Err(Error::EAGAIN));
}
