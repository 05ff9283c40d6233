//! Tests of poll(2).

use super::*;
use crate::Environment;
use crate::testing::{Task, World, now, pipe};
use crate::vfs::OpenFlags;
use core::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn world() -> &'static World {
    Box::leak(Box::new(World::new()))
}

#[test]
fn poll_reports_ready_files_or_waits() {
    let w = world();
    let (read, write) = pipe(OpenFlags::empty());
    let queue = read.pipe_end().unwrap();
    let start = crate::file::FileObject::queue(queue).unwrap();
    let both =
        || vec![Watch::new(read.clone(), Readiness::READ), Watch::new(write.clone(), Readiness::WRITE)];
    let mut watches = both();
    assert_eq!(now(poll(&*w.environment, &mut watches, None)), 1);
    assert_eq!(watches[1].ready, Readiness::WRITE);
    let file = read.clone();
    let mut task = Task::new(async move {
        let mut watches = [Watch::new(file, Readiness::READ)];
        let ready = poll(&*w.environment, &mut watches, Some(w.environment.monotonic() + SECOND)).await;
        (ready, watches[0].ready)
    });
    task.waits();
    w.write(&write, b"x").unwrap();
    assert_eq!(task.finish(), (1, Readiness::READ));
    w.read(&read, 1).unwrap();
    let file = read.clone();
    let mut task = Task::new(async move {
        let mut watches = [Watch::new(file, Readiness::READ)];
        poll(&*w.environment, &mut watches, Some(w.environment.monotonic() + SECOND)).await
    });
    task.waits();
    w.environment.advance(SECOND);
    assert_eq!(task.finish(), 0);
    assert!(start.is_empty(), "no waiter stays registered");
    // A file without a poll queue is always ready. Without any files, poll only sleeps.
    w.put("/f", b"");
    let mut watches = [Watch::new(w.open("/f", OpenFlags::READ).unwrap(), Readiness::READ)];
    assert_eq!(now(poll(&*w.environment, &mut watches, None)), 1);
    let mut task =
        Task::new(
            async move { poll(&*w.environment, &mut [], Some(w.environment.monotonic() + SECOND)).await },
        );
    task.waits();
    w.environment.advance(SECOND);
    assert_eq!(task.finish(), 0);
}

#[test]
fn poll_waits_for_very_many_files() {
    let w = world();
    let (read, write) = pipe(OpenFlags::empty());
    let queue = read.pipe_end().unwrap();
    let queue = crate::file::FileObject::queue(queue).unwrap();
    let task = |count: usize| {
        let file = read.clone();
        Task::new(async move {
            let mut watches: Vec<_> = (0..count).map(|_| Watch::new(file.clone(), Readiness::READ)).collect();
            poll(&*w.environment, &mut watches, Some(w.environment.monotonic() + SECOND)).await
        })
    };
    let (mut few, mut many) = (task(4000), task(5000));
    few.waits();
    assert_eq!(queue.len(), 4000);
    many.waits();
    assert_eq!(queue.len(), 4000, "so many are looked at only");
    w.write(&write, b"x").unwrap();
    assert_eq!(few.finish(), 4000);
    assert!(queue.is_empty());
    w.environment.advance(SECOND / 10);
    assert_eq!(many.finish(), 5000);
}
