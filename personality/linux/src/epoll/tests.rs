//! Tests of what epoll instances watch and report.

use super::*;
use crate::timerfd::{Clock, TimerFile};
use core::time::Duration;
use std::sync::Arc;
use unix::account::{Account, Kept, Setting};
use unix::file::OpenFile;
use unix::testing::{Task, World, account, has_happened, meanwhile, now, pipe};
use unix::vfs::OpenFlags;
use unix::{Environment, Error};

const SECOND: Duration = Duration::from_secs(1);

fn world() -> &'static World {
    Box::leak(Box::new(World::new()))
}

fn epoll(file: &OpenFile) -> Arc<Epoll> {
    file.object_as().unwrap()
}

fn settings(interest: Readiness, data: u64) -> EpollSettings {
    EpollSettings { interest, data, ..Default::default() }
}

fn collect(w: &World, instance: &OpenFile) -> Vec<(u64, Readiness)> {
    let events = now(epoll(instance).wait(&*w.environment, 10, Some(Duration::ZERO)));
    events.into_iter().map(|event| (event.data, event.ready)).collect()
}

#[test]
fn level_triggered_files_are_reported_while_ready_and_edge_triggered_at_changes() {
    let w = world();
    let (read, write) = pipe(OpenFlags::empty());
    let instance = Epoll::create(account());
    let e = epoll(&instance);
    e.add(3, &read, settings(Readiness::READ, 1)).unwrap();
    e.add(4, &read, EpollSettings { edge: true, ..settings(Readiness::READ, 2) }).unwrap();
    assert_eq!(e.add(3, &read, settings(Readiness::READ, 1)), Err(Error::EEXIST));
    assert_eq!(collect(w, &instance), []);
    w.write(&write, b"abc").unwrap();
    assert_eq!(instance.readiness(), Readiness::READ);
    assert_eq!(collect(w, &instance), [(1, Readiness::READ), (2, Readiness::READ)]);
    assert_eq!(collect(w, &instance), [(1, Readiness::READ)], "the edge was reported");
    w.read(&read, 1).unwrap();
    assert_eq!(collect(w, &instance), [(1, Readiness::READ)], "reading is no edge for a reader");
    w.write(&write, b"d").unwrap();
    let mut both = collect(w, &instance);
    both.sort_by_key(|event| event.0);
    assert_eq!(both.len(), 2, "more data is an edge");
    w.read(&read, 9).unwrap();
    assert_eq!(collect(w, &instance), []);
    drop(write);
    assert_eq!(collect(w, &instance).len(), 2, "a hang-up is always of interest");
    e.remove(4, &read).unwrap();
    assert_eq!(e.remove(4, &read), Err(Error::ENOENT));
    assert_eq!(collect(w, &instance), [(1, Readiness::HANGUP)]);
}

#[test]
fn a_one_shot_file_is_reported_again_after_modify() {
    let w = world();
    let (read, write) = pipe(OpenFlags::empty());
    let instance = Epoll::create(account());
    let e = epoll(&instance);
    let once = EpollSettings { once: true, ..settings(Readiness::READ, 1) };
    e.add(3, &read, once).unwrap();
    w.write(&write, b"x").unwrap();
    assert_eq!(collect(w, &instance).len(), 1);
    w.write(&write, b"x").unwrap();
    assert_eq!(collect(w, &instance), []);
    e.modify(3, &read, once).unwrap();
    assert_eq!(collect(w, &instance).len(), 1);
    e.modify(3, &read, settings(Readiness::WRITE, 5)).unwrap();
    assert_eq!(collect(w, &instance), []);
    assert_eq!(e.modify(9, &read, once), Err(Error::ENOENT));
}

#[test]
fn wait_blocks_until_a_file_is_ready_and_a_closed_instance_leaves_nothing() {
    let w = world();
    let (read, write) = pipe(OpenFlags::empty());
    let instance = Epoll::create(account());
    let e = epoll(&instance);
    e.add(3, &read, settings(Readiness::READ, 7)).unwrap();
    let waiter = e.clone();
    let mut task = Task::new(async move {
        waiter.wait(&*w.environment, 1, Some(w.environment.monotonic() + SECOND)).await.len()
    });
    task.waits();
    w.write(&write, b"x").unwrap();
    assert_eq!(task.finish(), 1);
    w.read(&read, 1).unwrap();
    let waiter = e.clone();
    let mut task = Task::new(async move {
        waiter.wait(&*w.environment, 1, Some(w.environment.monotonic() + SECOND)).await.len()
    });
    task.waits();
    w.environment.advance(SECOND);
    assert_eq!(task.finish(), 0);
    // Closing the watched file ends the watch and leaves no registration.
    let end = read.object_as::<unix::pipe::PipeEnd>().unwrap();
    let queue = unix::file::FileObject::queue(&*end).unwrap();
    assert_eq!(queue.len(), 1);
    drop(read);
    assert!(queue.is_empty());
    assert_eq!(collect(w, &instance), []);
    // Closing the instance removes its registrations, too.
    e.add(4, &write, settings(Readiness::WRITE, 1)).unwrap();
    assert_eq!(queue.len(), 1);
    drop((instance, e, task));
    assert!(queue.is_empty());
}

#[test]
fn regular_files_loops_and_deep_nesting_are_refused() {
    let w = world();
    w.put("/f", b"");
    let instance = Epoll::create(account());
    let e = epoll(&instance);
    let file = w.open("/f", OpenFlags::READ).unwrap();
    assert_eq!(e.add(3, &file, settings(Readiness::READ, 1)), Err(Error::EPERM));
    assert_eq!(e.add(3, &instance, settings(Readiness::READ, 1)), Err(Error::EINVAL));
    let chain: Vec<_> = (0..6).map(|_| Epoll::create(account())).collect();
    for pair in chain[..5].windows(2) {
        epoll(&pair[1]).add(3, &pair[0], settings(Readiness::READ, 1)).unwrap();
    }
    assert_eq!(epoll(&chain[0]).add(3, &chain[4], settings(Readiness::READ, 1)), Err(Error::ELOOP));
    let outer = epoll(&chain[5]);
    assert_eq!(outer.add(3, &chain[4], settings(Readiness::READ, 1)), Ok(()));
    let more = Epoll::create(account());
    assert_eq!(epoll(&more).add(3, &chain[5], settings(Readiness::READ, 1)), Err(Error::EINVAL));
}

/// A layer of `width` instances, each of which watches all files of the layer below.
fn layer(below: &[Arc<OpenFile>], width: usize) -> Vec<Arc<OpenFile>> {
    let layer: Vec<_> = (0..width).map(|_| Epoll::create(account())).collect();
    for outer in &layer {
        for (number, inner) in below.iter().enumerate() {
            epoll(outer).add(number as i32, inner, settings(Readiness::READ, 1)).unwrap();
        }
    }
    layer
}

#[test]
fn a_chain_that_grows_at_its_lower_end_is_limited_too() {
    let mut lowest = Epoll::create(account());
    let mut chain = vec![lowest.clone()];
    for _ in 1..6 {
        let next = Epoll::create(account());
        epoll(&lowest).add(3, &next, settings(Readiness::READ, 1)).unwrap();
        lowest = next;
        chain.push(lowest.clone());
    }
    let more = Epoll::create(account());
    assert_eq!(epoll(&lowest).add(3, &more, settings(Readiness::READ, 1)), Err(Error::EINVAL));
    // A file below this many instances would be too deep. One instance higher it is not.
    let (read, _write) = pipe(OpenFlags::empty());
    assert_eq!(epoll(&lowest).add(4, &read, settings(Readiness::READ, 1)), Err(Error::EINVAL));
    assert_eq!(epoll(&chain[4]).add(4, &read, settings(Readiness::READ, 1)), Ok(()));
    // An instance that is not watched any more does not count.
    epoll(&chain[0]).remove(3, &chain[1]).unwrap();
    assert_eq!(epoll(&lowest).add(3, &more, settings(Readiness::READ, 1)), Ok(()));
}

#[test]
fn the_number_of_wakeup_paths_of_a_file_is_limited() {
    let w = world();
    let (read, write) = pipe(OpenFlags::empty());
    // Any number of instances may watch a file directly.
    let many = layer(std::slice::from_ref(&read), 700);
    w.write(&write, b"x").unwrap();
    assert!(many.iter().all(|instance| instance.readiness() == Readiness::READ));
    drop(many);
    // There are 22 times 22 wakeup paths over two instances, and 16 more: 500.
    let first = layer(std::slice::from_ref(&read), 22);
    let mut second = layer(&first, 22);
    second.extend(layer(&first[..8], 2));
    let refused = Epoll::create(account());
    assert_eq!(epoll(&refused).add(1, &first[0], settings(Readiness::READ, 1)), Err(Error::EINVAL));
    assert_eq!(refused.readiness(), Readiness::empty(), "nothing is left of what was refused");
    let (other, _write) = pipe(OpenFlags::empty());
    assert_eq!(epoll(&first[0]).add(2, &other, settings(Readiness::READ, 1)), Ok(()));
    assert!(second.iter().all(|instance| instance.readiness() == Readiness::READ));
    drop((first, second));
    // Instances are nested, and the new way may be at any place between them.
    let (lower, upper) = (layer(std::slice::from_ref(&read), 10), layer(&[], 50));
    let middle = layer(&lower, 1).remove(0);
    for (number, outer) in upper.iter().enumerate() {
        let added = epoll(outer).add(1, &middle, settings(Readiness::READ, 1));
        assert_eq!(added, if number < 10 { Ok(()) } else { Err(Error::EINVAL) }, "way {number}");
    }
}

#[test]
fn a_look_visits_each_instance_once_on_however_many_wakeup_paths_it_is() {
    let w = world();
    let timer =
        TimerFile::create(w.environment.clone(), &Default::default(), Clock::Monotonic, OpenFlags::NONBLOCK);
    // There are 20 to the fifth wakeup paths.
    let mut fan = layer(&[], 20);
    for _ in 0..4 {
        fan = layer(&fan, 20);
    }
    let top = layer(&fan, 1).remove(0);
    assert_eq!(top.readiness(), Readiness::empty());
    assert_eq!(collect(w, &top), []);
    let watcher = epoll(&top);
    let mut waiting = Task::new(async move {
        watcher.wait(&*w.environment, 10, Some(w.environment.monotonic() + SECOND)).await.len()
    });
    waiting.waits();
    assert_eq!(
        epoll(&fan[0]).add(99, &timer, settings(Readiness::READ, 1)),
        Ok(()),
        "few wakeup paths lead through the upper layer"
    );
    timer.object_as::<TimerFile>().unwrap().set(SECOND / 2, Duration::ZERO, false, false);
    waiting.waits();
    w.environment.advance(SECOND);
    assert_eq!(waiting.finish(), 1);
}

#[test]
fn a_one_shot_event_is_reported_to_one_of_two_waiters() {
    let w = world();
    let (read, write) = pipe(OpenFlags::empty());
    let instance = Epoll::create(account());
    let once = EpollSettings { once: true, ..settings(Readiness::READ, 1) };
    epoll(&instance).add(3, &read, once).unwrap();
    w.write(&write, b"a").unwrap();
    let (other, found) = (instance.clone(), Arc::new(std::sync::Mutex::new(Vec::new())));
    let (seen, end) = (found.clone(), write.clone());
    meanwhile("epoll reports", move || {
        w.write(&end, b"b").unwrap();
        *seen.lock().unwrap() = collect(w, &other);
    });
    let mut all = collect(w, &instance);
    all.append(&mut found.lock().unwrap());
    assert!(has_happened());
    assert_eq!(all, [(1, Readiness::READ)]);
    // An item that was armed again is not reported by a caller that looked at it before.
    epoll(&instance).modify(3, &read, once).unwrap();
    let (other, file) = (instance.clone(), read.clone());
    meanwhile("epoll reports", move || {
        assert_eq!(collect(w, &other), []);
        w.read(&file, 9).unwrap();
        epoll(&other).modify(3, &file, once).unwrap();
    });
    assert_eq!(collect(w, &instance), []);
    w.write(&write, b"c").unwrap();
    assert_eq!(collect(w, &instance), [(1, Readiness::READ)]);
}

#[test]
fn a_ready_file_is_reported_to_a_second_caller_while_the_first_looks() {
    let w = world();
    let (read, write) = pipe(OpenFlags::empty());
    let instance = Epoll::create(account());
    epoll(&instance).add(3, &read, settings(Readiness::READ, 1)).unwrap();
    w.write(&write, b"a").unwrap();
    let other = instance.clone();
    meanwhile("epoll reports", move || assert_eq!(collect(w, &other), [(1, Readiness::READ)]));
    assert_eq!(collect(w, &instance), [(1, Readiness::READ)]);
    assert!(has_happened());
    // The pipe is emptied. It is written to again at the moment at which the look finds it not
    // ready.
    w.read(&read, 1).unwrap();
    let end = write.clone();
    meanwhile("epoll reports", move || assert_eq!(w.write(&end, b"b"), Ok(1)));
    assert_eq!(collect(w, &instance), []);
    assert!(has_happened());
    assert_eq!(collect(w, &instance), [(1, Readiness::READ)]);
}

#[test]
fn a_file_that_is_removed_while_it_is_added_leaves_no_registration() {
    let (read, _write) = pipe(OpenFlags::empty());
    let instance = Epoll::create(account());
    let (other, file) = (instance.clone(), read.clone());
    meanwhile("epoll adds", move || assert_eq!(epoll(&other).remove(3, &file), Ok(())));
    epoll(&instance).add(3, &read, settings(Readiness::READ, 1)).unwrap();
    assert!(has_happened());
    assert_eq!(epoll(&instance).remove(3, &read), Err(Error::ENOENT));
    assert!(read.queue().unwrap().is_empty());
}

#[test]
fn two_threads_cannot_make_two_instances_watch_each_other() {
    let (one, other) = (Epoll::create(account()), Epoll::create(account()));
    let (outer, inner) = (other.clone(), one.clone());
    let second = Arc::new(std::sync::Mutex::new(None));
    let place = second.clone();
    meanwhile("epoll may be added", move || {
        let thread = std::thread::spawn(move || epoll(&outer).add(4, &inner, settings(Readiness::READ, 2)));
        // The second thread continues now, or waits until the first one is done.
        (0..10_000).take_while(|_| !thread.is_finished()).for_each(|_| std::thread::yield_now());
        *place.lock().unwrap() = Some(thread);
    });
    assert_eq!(epoll(&one).add(3, &other, settings(Readiness::READ, 1)), Ok(()));
    assert!(has_happened());
    let thread = second.lock().unwrap().take().unwrap();
    assert_eq!(thread.join().unwrap(), Err(Error::ELOOP));
}

#[test]
fn the_watched_files_of_all_instances_of_a_user_are_limited() {
    let user = account();
    user.settings().set(Setting::PolledFiles, 2);
    let (first, second) = (Epoll::create(user.clone()), Epoll::create(user.clone()));
    let (read, write) = pipe(OpenFlags::empty());
    let add = |instance: &OpenFile, descriptor| {
        epoll(instance).add(descriptor, &read, settings(Readiness::READ, 0))
    };
    assert_eq!((add(&first, 3), add(&second, 3)), (Ok(()), Ok(())));
    assert_eq!((add(&first, 4), add(&first, 3)), (Err(Error::ENOSPC), Err(Error::EEXIST)));
    let other = Epoll::create(Account::new(1001, user.settings().clone()));
    assert_eq!(add(&other, 3), Ok(()), "another user's count by themselves");
    assert_eq!(epoll(&second).remove(3, &read), Ok(()));
    assert_eq!(add(&first, 4), Ok(()));
    drop((read, write));
    assert_eq!(user.amount(Kept::PolledFiles), 0, "closed files are not watched");
}
