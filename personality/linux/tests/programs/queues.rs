//! POSIX message queues and asynchronous I/O, by calls.

use super::{EAGAIN, EINTR, bytes, run, run_in, text};
use crate::world::{DATA, World};

const EINVAL: i64 = -22;
const EMSGSIZE: i64 = -90;
const ETIMEDOUT: i64 = -110;

const OPEN: u64 = 240;
const UNLINK: u64 = 241;
const SEND: u64 = 242;
const RECEIVE: u64 = 243;
const NOTIFY: u64 = 244;
const ATTRIBUTES: u64 = 245;
const READ_WRITE_CREATE: u64 = 0o102;
const NONBLOCK: u64 = 0o4000;

#[test]
fn a_message_queue_has_a_name_priorities_and_limits() {
    let world = World::new();
    world.install_proc();
    run_in(&world, async |p| {
        let name = p.string(DATA, "queue").await?;
        let bad = p.string(DATA + 0x20, "a/b").await?;
        p.store(DATA + 0x40, &bytes(&[0, 2, 16, 0])).await?;
        let (limits, buffer) = (DATA + 0x40, DATA + 0x200);
        assert_eq!(p.call(OPEN, &[name, 2, 0, 0]).await?, -2);
        assert_eq!(p.call(OPEN, &[bad, READ_WRITE_CREATE, 0o600, 0]).await?, -13);
        assert_eq!(p.call(OPEN, &[name, 3, 0o600, 0]).await?, EINVAL);
        let queue = p.call(OPEN, &[name, READ_WRITE_CREATE, 0o600, limits]).await?;
        assert!(queue >= 0, "{queue}");
        let queue = queue as u64;
        assert_eq!(p.call(72, &[queue, 1]).await?, 1, "it is closed on exec");
        assert_eq!(p.call(OPEN, &[name, READ_WRITE_CREATE | 0o200, 0o600, 0]).await?, -17);
        p.store(buffer, b"first second third").await?;
        assert_eq!(p.call(SEND, &[queue, buffer, 17, 0, 0]).await?, EMSGSIZE);
        assert_eq!(p.call(SEND, &[queue, buffer, 5, 32768, 0]).await?, EINVAL);
        assert_eq!(p.call(SEND, &[queue, buffer, 5, 3, 0]).await?, 0);
        assert_eq!(p.call(SEND, &[queue, buffer + 6, 6, 9, 0]).await?, 0);
        // The queue is full: a time in the past, and O_NONBLOCK.
        p.store(DATA + 0x80, &bytes(&[0, 1])).await?;
        assert_eq!(p.call(SEND, &[queue, buffer, 5, 0, DATA + 0x80]).await?, ETIMEDOUT);
        p.store(DATA + 0x80, &bytes(&[0, 1_000_000_000])).await?;
        assert_eq!(p.call(SEND, &[queue, buffer, 5, 0, DATA + 0x80]).await?, EINVAL);
        p.store(DATA + 0xc0, &bytes(&[NONBLOCK])).await?;
        assert_eq!(p.call(ATTRIBUTES, &[queue, DATA + 0xc0, DATA + 0x100]).await?, 0);
        assert_eq!(p.load_u64(DATA + 0x100).await?, 0, "the flags before");
        assert_eq!((p.load_u64(DATA + 0x108).await?, p.load_u64(DATA + 0x110).await?), (2, 16));
        assert_eq!(p.load_u64(DATA + 0x118).await?, 2, "messages");
        assert_eq!(p.call(SEND, &[queue, buffer, 5, 0, 0]).await?, EAGAIN);
        assert_eq!(p.call(RECEIVE, &[queue, buffer, 15, 0, 0]).await?, EMSGSIZE);
        assert_eq!(p.call(RECEIVE, &[queue, buffer, 16, DATA + 0x60, 0]).await?, 6);
        assert_eq!((&p.load::<6>(buffer).await?, p.load_u32(DATA + 0x60).await?), (b"second", 9));
        assert_eq!(p.call(RECEIVE, &[queue, buffer, 16, 0, 0]).await?, 5);
        assert_eq!(p.call(RECEIVE, &[queue, buffer, 16, 0, 0]).await?, EAGAIN);
        // The queue is a file.
        assert_eq!(p.call(17, &[queue, buffer, 80, 0]).await?, 60);
        let shown = b"QSIZE:0          NOTIFY:0     SIGNO:0     NOTIFY_PID:0     \n";
        assert_eq!(&p.load::<60>(buffer).await?, shown);
        let kind = p.string(DATA + 0x140, "mqueue").await?;
        let place = p.string(DATA + 0x160, "/mq").await?;
        assert_eq!(p.call(83, &[place, 0o755]).await?, 0);
        assert_eq!(p.call(165, &[kind, place, kind, 0, 0]).await?, 0);
        let path = p.string(DATA + 0x180, "/mq/queue").await?;
        assert_eq!(p.call(4, &[path, buffer]).await?, 0);
        assert_eq!(p.load_u64(buffer + 48).await?, 80);
        let other = p.string(DATA + 0x1a0, "/mq/other").await?;
        assert_eq!(p.call(82, &[path, other]).await?, -1, "it keeps its name");
        assert_eq!(p.call(83, &[other, 0o755]).await?, -1);
        let made = p.call(2, &[other, 0o102, 0o600]).await? as u64;
        assert_eq!(p.call(ATTRIBUTES, &[made, 0, DATA + 0x100]).await?, 0);
        assert_eq!((p.load_u64(DATA + 0x108).await?, p.load_u64(DATA + 0x110).await?), (10, 8192));
        assert_eq!(text(p, "/proc/sys/fs/mqueue/queues_max").await?, "256\n");
        assert_eq!(p.call(UNLINK, &[name]).await?, 0);
        assert_eq!(p.call(UNLINK, &[name]).await?, -2);
        assert_eq!(p.call(SEND, &[queue, buffer, 5, 0, 0]).await?, 0, "it is there until it is closed");
        assert_eq!(p.call(SEND, &[99, buffer, 5, 0, 0]).await?, -9, "no descriptor");
        // Limits of users without privileges.
        assert_eq!(p.call(105, &[1000]).await?, 0);
        p.store(DATA + 0x40, &bytes(&[0, 11, 16, 0])).await?;
        assert_eq!(p.call(OPEN, &[name, READ_WRITE_CREATE, 0o600, limits]).await?, EINVAL);
        let theirs = p.string(DATA, "other").await?;
        assert_eq!(p.call(OPEN, &[theirs, 2, 0, 0]).await?, -13);
        assert_eq!(p.call(UNLINK, &[theirs]).await?, -1, "the directory is sticky");
        Ok(())
    });
}

#[test]
fn a_receiver_waits_and_a_process_is_notified() {
    run(async |p| {
        let name = p.string(DATA, "queue").await?;
        let queue = p.call(OPEN, &[name, READ_WRITE_CREATE, 0o600, 0]).await? as u64;
        let receiver = p
            .fork(move |p| {
                Box::pin(async move {
                    assert_eq!(p.call(RECEIVE, &[queue, DATA + 0x1000, 8192, 0, 0]).await?, 4);
                    assert_eq!(&p.load::<4>(DATA + 0x1000).await?, b"wait");
                    // Sends the message of which the parent is notified.
                    assert_eq!(p.call(SEND, &[queue, DATA + 0x1000, 2, 0, 0]).await?, 0);
                    assert_eq!(p.call(NOTIFY, &[queue, 0]).await?, 0);
                    p.exit(0).await
                })
            })
            .await?;
        p.pass(1000).await?;
        // SIGEV_SIGNAL, signal 10, a value. Blocked, so that it can be looked at.
        p.store(DATA + 0x100, &bytes(&[1 << 9])).await?;
        assert_eq!(p.call(14, &[0, DATA + 0x100, 0, 8]).await?, 0);
        p.store(DATA + 0x200, &bytes(&[0x1234_5678_9abc, 10, 0, 0, 0, 0, 0, 0])).await?;
        assert_eq!(p.call(NOTIFY, &[queue, DATA + 0x200]).await?, 0);
        assert_eq!(p.call(NOTIFY, &[queue, DATA + 0x200]).await?, -16);
        p.store(DATA + 0x80, b"wait").await?;
        assert_eq!(p.call(SEND, &[queue, DATA + 0x80, 4, 0, 0]).await?, 0);
        assert_eq!(p.wait(0).await?, (receiver, 0));
        // rt_sigtimedwait tells which signal it is.
        p.store(DATA + 0x180, &bytes(&[0, 0])).await?;
        assert_eq!(p.call(128, &[DATA + 0x100, DATA + 0x300, DATA + 0x180, 8]).await?, 10);
        assert_eq!(p.load_u32(DATA + 0x308).await? as i32, -3, "SI_MESGQ");
        assert_eq!(i64::from(p.load_u32(DATA + 0x310).await?), receiver);
        assert_eq!(p.load_u64(DATA + 0x318).await?, 0x1234_5678_9abc);
        assert_eq!(p.call(NOTIFY, &[queue, DATA + 0x200]).await?, 0, "it is asked for again");
        // Any close of the queue by the process ends that.
        let second = p.call(32, &[queue]).await? as u64;
        assert_eq!(p.call(3, &[second]).await?, 0);
        assert_eq!(p.call(NOTIFY, &[queue, DATA + 0x200]).await?, 0);
        // A signal ends the wait.
        p.handle(12, 0, |_| Box::pin(async { Ok(()) })).await?;
        assert_eq!(p.call(RECEIVE, &[queue, DATA + 0x1000, 8192, 0, 0]).await?, 2);
        let parent = p.call(39, &[]).await? as u64;
        p.fork(move |p| {
            Box::pin(async move {
                p.pass(1000).await?;
                assert_eq!(p.call(62, &[parent, 12]).await?, 0);
                p.exit(0).await
            })
        })
        .await?;
        assert_eq!(p.call(RECEIVE, &[queue, DATA + 0x1000, 8192, 0, 0]).await?, EINTR);
        assert_eq!(p.wait(0).await?.1, 0);
        Ok(())
    });
}

const SETUP: u64 = 206;
const DESTROY: u64 = 207;
const GETEVENTS: u64 = 208;
const SUBMIT: u64 = 209;
const CANCEL: u64 = 210;

/// A struct iocb.
fn operation(data: u64, code: u64, file: u64, [buffer, length, offset]: [u64; 3], counter: u64) -> Vec<u8> {
    let counted = if counter == 0 { 0 } else { 1 | counter << 32 };
    bytes(&[data, 0, code | file << 32, buffer, length, offset, 0, counted])
}

#[test]
fn operations_are_submitted_and_their_results_taken() {
    let world = World::new();
    world.install_proc();
    run_in(&world, async |p| {
        let (context, buffer) = (DATA, DATA + 0x1000);
        p.store(context, &bytes(&[0])).await?;
        assert_eq!(p.call(SETUP, &[0, context]).await?, EINVAL);
        assert_eq!(p.call(SETUP, &[65537, context]).await?, EAGAIN);
        assert_eq!(p.call(SETUP, &[3, context]).await?, 0);
        let id = p.load_u64(context).await?;
        assert_eq!(p.call(SETUP, &[3, context]).await?, EINVAL, "there is one already");
        assert_eq!(p.load_u64(id).await?, 0, "a library finds no ring");
        assert_eq!(text(p, "/proc/sys/fs/aio-max-nr").await?, "65536\n");
        let path = p.string(DATA + 0x40, "/file").await?;
        let file = p.call(2, &[path, 0o102, 0o600]).await? as u64;
        let counter = p.call(290, &[0, NONBLOCK]).await? as u64;
        p.store(buffer, b"some bytes").await?;
        p.store(DATA + 0x100, &operation(7, 1, file, [buffer, 10, 100], counter)).await?;
        p.store(DATA + 0x140, &operation(8, 0, file, [buffer + 0x100, 20, 105], 0)).await?;
        p.store(DATA + 0x180, &operation(9, 2, file, [0, 0, 0], counter)).await?;
        p.store(DATA + 0x1c0, &operation(10, 99, file, [0, 0, 0], 0)).await?;
        p.store(DATA + 0x80, &bytes(&[DATA + 0x100, DATA + 0x140, DATA + 0x180, DATA + 0x1c0])).await?;
        assert_eq!(p.call(SUBMIT, &[id, 1, DATA + 0x98]).await?, EINVAL, "no such operation");
        assert_eq!(p.call(SUBMIT, &[id + 4096, 1, DATA + 0x80]).await?, EINVAL);
        assert_eq!(p.call(SUBMIT, &[id, 4, DATA + 0x80]).await?, 3);
        assert_eq!(p.call(SUBMIT, &[id, 1, DATA + 0x80]).await?, EAGAIN, "no room for a result");
        assert_eq!(p.call(0, &[counter, buffer + 0x200, 8]).await?, 8);
        assert_eq!(p.load_u64(buffer + 0x200).await?, 2);
        assert_eq!(p.call(GETEVENTS, &[id, 4, 3, buffer + 0x300, 0]).await?, EINVAL);
        assert_eq!(p.call(GETEVENTS, &[id, 1, 2, 8, 0]).await?, -14);
        assert_eq!(p.call(GETEVENTS, &[id, 1, 2, buffer + 0x300, 0]).await?, 2);
        p.store(DATA + 0x60, &bytes(&[0, 1_000_000])).await?;
        assert_eq!(p.call(GETEVENTS, &[id, 2, 2, buffer + 0x340, DATA + 0x60]).await?, 1, "the time is over");
        for (index, (data, result)) in [(7, 10), (8, 5), (9, 0)].into_iter().enumerate() {
            let at = buffer + 0x300 + 32 * index as u64;
            assert_eq!(p.load_u64(at).await?, data);
            assert_eq!(p.load_u64(at + 8).await?, DATA + 0x100 + 64 * index as u64);
            assert_eq!(p.load_u64(at + 16).await?, result);
        }
        assert_eq!(&p.load::<5>(buffer + 0x100).await?, b"bytes");
        assert_eq!(p.call(CANCEL, &[id, DATA + 0x100, buffer]).await?, EINVAL, "it is done");
        // Errors: before the operation, and of the operation.
        let read_only = p.call(2, &[path, 0]).await? as u64;
        p.store(DATA + 0x100, &operation(1, 1, read_only, [buffer, 10, 0], 0)).await?;
        assert_eq!(p.call(SUBMIT, &[id, 1, DATA + 0x80]).await?, -9);
        p.store(DATA + 0x100, &operation(1, 0, read_only, [8, 10, 0], 0)).await?;
        assert_eq!(p.call(SUBMIT, &[id, 1, DATA + 0x80]).await?, 1);
        assert_eq!(p.call(GETEVENTS, &[id, 1, 1, buffer + 0x300, 0]).await?, 1);
        assert_eq!(p.load_u64(buffer + 0x310).await? as i64, -14);
        // A child has no context, another thread of control waits for results.
        let child = p
            .fork(move |p| {
                Box::pin(async move {
                    assert_eq!(p.call(GETEVENTS, &[id, 0, 1, DATA, 0]).await?, EINVAL);
                    p.exit(0).await
                })
            })
            .await?;
        assert_eq!(p.wait(0).await?, (child, 0));
        assert_eq!(p.call(DESTROY, &[id]).await?, 0);
        assert_eq!(p.call(DESTROY, &[id]).await?, EINVAL);
        p.store(context, &bytes(&[0])).await?;
        assert_eq!(p.call(SETUP, &[65536, context]).await?, 0, "it ends with the process");
        Ok(())
    });
}
