//! Tests of the six notifications.

use super::super::typed::{MsgArguments, MsgOptions};
use super::super::*;
use super::support::*;
use crate::KernError::*;

const PORT_DELETED: i32 = 65;
const MSG_ACCEPTED: i32 = 66;
const PORT_DESTROYED: i32 = 69;
const NO_SENDERS: i32 = 70;
const SEND_ONCE: i32 = 71;
const DEAD_NAME: i32 = 72;

/// The one word of 32 bits in the body of a notification of that type: a name or a count.
fn single(message: &Received, kind: u32) -> u32 {
    assert_eq!(message.bits & !0xff00, 0);
    assert_eq!(message.bits >> 8 & 0xff, MOVE_SEND_ONCE);
    assert_eq!((message.size, message.remote), (48, Name::NULL));
    assert_eq!(message.word(0), u64::from(kind | 32 << 8 | 1 << 29) | 1 << 32);
    message.word(8) as u32
}

#[test]
fn no_senders() {
    let system = System::new();
    let (task, other) = (system.task(), system.task());
    let (port, notify) = (task.port(), task.port());
    let sends = task.give(port, MAKE_SEND, &other);
    assert_eq!(task.request(port, NO_SENDERS, 0, notify), Ok(false));
    assert_eq!(task.request(port, NO_SENDERS, 0, notify), Ok(true));
    task.give(port, MAKE_SEND, &other);
    other.space.deallocate(sends).unwrap();
    assert_eq!(task.try_receive(notify), Err(MsgErrorKind::ReceiveTimedOut));
    // A send right in a message counts, so no notification is sent while the message is queued.
    other.send(&to(sends, COPY_SEND));
    other.space.deallocate(sends).unwrap();
    assert_eq!(task.try_receive(notify), Err(MsgErrorKind::ReceiveTimedOut));
    task.receive(port);
    let told = task.receive(notify);
    assert_eq!((told.id, single(&told, 2)), (NO_SENDERS, 2));
    // Without send rights the notification comes immediately, unless the make-send count is less
    // than `sync`.
    assert_eq!(task.request(port, NO_SENDERS, 3, notify), Ok(false));
    assert!(task.space.receive_status(port).unwrap().no_senders);
    assert_eq!(task.request(port, NO_SENDERS, 2, notify), Ok(true));
    assert_eq!(single(&task.receive(notify), 2), 2);
    assert_eq!(task.request(Name(99), NO_SENDERS, 0, notify), Err(InvalidName));
    assert_eq!(task.receive(notify).id, SEND_ONCE);
    assert_eq!(
        task.space.request_notification(port, NO_SENDERS, 0, Right::Dead).map(drop),
        Err(InvalidCapability)
    );
    assert_eq!(task.space.request_notification(port, 1, 0, Right::Null).map(drop), Err(InvalidValue));
}

#[test]
fn dead_names() {
    let system = System::new();
    let (task, other) = (system.task(), system.task());
    let (port, notify) = (task.port(), other.port());
    let sends = task.give(port, MAKE_SEND, &other);
    let once = task.give(port, MAKE_SEND_ONCE, &other);
    assert_eq!(other.request(sends, DEAD_NAME, 0, notify), Ok(false));
    assert_eq!(other.request(sends, DEAD_NAME, 0, notify), Ok(true));
    assert_eq!(other.request(once, DEAD_NAME, 0, notify), Ok(false));
    assert_eq!(task.space.dead_name_requests(port).map(|(_, used)| used), Ok(2));
    task.space.destroy(port).unwrap();
    let told: Vec<u32> = (0..2).map(|_| single(&other.receive(notify), 15)).collect();
    assert_eq!(told.len(), 2);
    assert!(told.contains(&sends.0) && told.contains(&once.0));
    assert_eq!(other.space.references(sends, PortRight::DeadName), Ok(2));
    assert_eq!(other.space.references(once, PortRight::DeadName), Ok(2));
    // A request on a name that is dead already fails, or is answered immediately.
    assert_eq!(other.request(sends, DEAD_NAME, 0, notify), Err(InvalidArgument));
    assert_eq!(other.receive(notify).id, SEND_ONCE);
    assert_eq!(other.request(sends, DEAD_NAME, 1, notify), Ok(false));
    assert_eq!(single(&other.receive(notify), 15), sends.0);
    assert_eq!(other.space.references(sends, PortRight::DeadName), Ok(3));
    other.space.modify_references(sends, PortRight::DeadName, 65532).unwrap();
    assert_eq!(other.request(sends, DEAD_NAME, 1, notify), Err(UrefsOverflow));
    assert_eq!(other.receive(notify).id, SEND_ONCE);
    let set = other.space.allocate(PortRight::PortSet).unwrap();
    assert_eq!(other.request(set, DEAD_NAME, 1, notify), Err(InvalidRight));
}

#[test]
fn a_request_is_taken_back() {
    let system = System::new();
    let (task, other) = (system.task(), system.task());
    let (port, notify) = (task.port(), other.port());
    let sends = task.give(port, MAKE_SEND, &other);
    assert_eq!(other.request(sends, DEAD_NAME, 0, notify), Ok(false));
    let previous = other.space.request_notification(sends, DEAD_NAME, 0, Right::Null).unwrap();
    previous.unwrap().use_up();
    task.space.destroy(port).unwrap();
    assert_eq!(other.try_receive(notify), Err(MsgErrorKind::ReceiveTimedOut));
    assert_eq!(other.space.references(sends, PortRight::DeadName), Ok(1));
}

#[test]
fn port_deleted() {
    let system = System::new();
    let (task, other) = (system.task(), system.task());
    let (port, notify) = (task.port(), other.port());
    for end in [
        |task: &Task, name| task.space.deallocate(name).unwrap(),
        |task: &Task, name| task.space.destroy(name).unwrap(),
        |task: &Task, name| drop(task.space.extract_right(name, Disposition::MoveSend)),
        |task: &Task, name| task.send(&to(name, MOVE_SEND)),
    ] {
        let sends = task.give(port, MAKE_SEND, &other);
        assert_eq!(other.request(sends, DEAD_NAME, 0, notify), Ok(false));
        end(&other, sends);
        let told = other.receive(notify);
        assert_eq!((told.id, single(&told, 15)), (PORT_DELETED, sends.0));
    }
    // A send with the option to cancel ends the request without a notification.
    let sends = task.give(port, MAKE_SEND, &other);
    assert_eq!(other.request(sends, DEAD_NAME, 0, notify), Ok(false));
    let cancel = MsgArguments { notify, ..Task::arguments(MsgOptions::SEND_CANCEL) };
    system.run(other.send_with(&to(sends, MOVE_SEND), cancel)).unwrap();
    assert_eq!(other.try_receive(notify), Err(MsgErrorKind::ReceiveTimedOut));
    let sends = task.give(port, MAKE_SEND, &other);
    let cancel = MsgArguments { notify: sends, ..cancel };
    let error = system.run(other.send_with(&to(sends, MOVE_SEND), cancel)).unwrap_err();
    assert_eq!(error.kind, MsgErrorKind::SendInvalidNotify);
}

#[test]
fn port_destroyed() {
    let system = System::new();
    let (task, other) = (system.task(), system.task());
    let (port, notify) = (task.port(), other.port());
    let to_other = other.give(notify, MAKE_SEND_ONCE, &task);
    let right = task.space.extract_right(to_other, Disposition::MoveSendOnce).unwrap();
    assert!(task.space.request_notification(port, PORT_DESTROYED, 0, right).unwrap().is_none());
    assert_eq!(task.request(port, PORT_DESTROYED, 1, port), Err(InvalidValue));
    let sends = task.give(port, MAKE_SEND, &other);
    other.send(&to(sends, COPY_SEND).id(9));
    task.space.destroy(port).unwrap();
    let told = other.receive(notify);
    assert_eq!((told.id, told.size), (PORT_DESTROYED, 48));
    assert_eq!(told.bits, COMPLEX | MOVE_SEND_ONCE << 8);
    assert_eq!(told.word(0), u64::from(MOVE_RECEIVE | 64 << 8 | 1 << 29) | 1 << 32);
    // The port still has its messages, and belongs to the task that got the notification.
    assert_eq!(told.name(8), sends);
    let messages: Vec<i32> = (0..2).map(|_| other.receive(sends).id).collect();
    assert_eq!(messages, [SEND_ONCE, 9], "the refused request's right, and the message");
}

#[test]
fn a_port_that_is_to_go_to_itself_ends() {
    let system = System::new();
    let task = system.task();
    let port = task.port_to_send();
    assert_eq!(task.request(port, PORT_DESTROYED, 0, port), Ok(false));
    task.space.modify_references(port, PortRight::Receive, -1).unwrap();
    assert_eq!(task.kind(port), Ok(PortType::DEAD_NAME));
}

#[test]
fn send_once() {
    let system = System::new();
    let (task, other) = (system.task(), system.task());
    let port = task.port();
    let once = task.give(port, MAKE_SEND_ONCE, &other);
    assert_eq!(task.space.receive_status(port).unwrap().send_once_rights, 1);
    other.space.deallocate(once).unwrap();
    let told = task.receive(port);
    assert_eq!((told.id, told.size, told.bits), (SEND_ONCE, 32, MOVE_SEND_ONCE << 8));
    assert_eq!(task.space.receive_status(port).unwrap().send_once_rights, 0);
    // A send-once right with which a message was sent causes no notification.
    let once = task.give(port, MAKE_SEND_ONCE, &other);
    other.send(&to(once, MOVE_SEND_ONCE).id(4));
    assert_eq!(task.receive(port).id, 4);
    assert_eq!(task.try_receive(port), Err(MsgErrorKind::ReceiveTimedOut));
    // The end of a task drops its send-once right, which causes a notification.
    task.give(port, MAKE_SEND_ONCE, &other);
    other.space.terminate();
    assert_eq!(task.receive(port).id, SEND_ONCE);
}

#[test]
fn message_accepted() {
    let system = System::new();
    let (task, other) = (system.task(), system.task());
    let (port, notify) = (task.port(), other.port());
    let sends = task.give(port, MAKE_SEND, &other);
    task.space.set_queue_limit(port, 1).unwrap();
    let arguments = MsgArguments { notify, ..Task::arguments(MsgOptions::SEND_NOTIFY) };
    let send =
        |id| system.run(other.send_with(&to(sends, COPY_SEND).id(id), arguments)).map_err(|error| error.kind);
    assert_eq!(send(1), Ok(()));
    assert_eq!(send(2), Err(MsgErrorKind::SendWillNotify));
    assert_eq!(other.kind(sends), Ok(PortType::SEND | PortType::ACCEPT_REQUEST));
    assert_eq!(send(3), Err(MsgErrorKind::SendNotifyInProgress));
    assert_eq!(task.receive(port).id, 1);
    assert_eq!(other.try_receive(notify), Err(MsgErrorKind::ReceiveTimedOut));
    assert_eq!(task.receive(port).id, 2);
    let told = other.receive(notify);
    assert_eq!((told.id, single(&told, 15)), (MSG_ACCEPTED, sends.0));
    assert_eq!(other.kind(sends), Ok(PortType::SEND));
    // The notification has the new name of a right that was renamed, even if the port has died. A
    // message for whose notification no receive right is named is not sent.
    assert_eq!(send(4), Ok(()));
    assert_eq!(send(5), Err(MsgErrorKind::SendWillNotify));
    other.space.rename(sends, Name(50)).unwrap();
    task.space.destroy(port).unwrap();
    let told = other.receive(notify);
    assert_eq!((told.id, single(&told, 15)), (MSG_ACCEPTED, 50));
    let port = task.port();
    task.space.set_queue_limit(port, 0).unwrap();
    let sends = task.give(port, MAKE_SEND, &other);
    let nowhere = MsgArguments { notify: sends, ..arguments };
    let error = system.run(other.send_with(&to(sends, COPY_SEND), nowhere)).unwrap_err();
    assert_eq!(error.kind, MsgErrorKind::SendInvalidNotify);
    // If the name goes away, the request on it ends.
    assert_eq!(
        system.run(other.send_with(&to(sends, COPY_SEND), arguments)).unwrap_err().kind,
        MsgErrorKind::SendWillNotify
    );
    other.space.destroy(sends).unwrap();
    assert_eq!(other.receive(notify).id, PORT_DELETED);
    task.receive(port);
    assert_eq!(other.try_receive(notify), Err(MsgErrorKind::ReceiveTimedOut));
}

#[test]
fn a_received_reply_port_is_watched() {
    let system = System::new();
    let (server, client) = (system.task(), system.task());
    let (port, notify, reply) = (server.port(), server.port(), client.port());
    let sends = server.give(port, MAKE_SEND, &client);
    client.send(&to(sends, COPY_SEND).reply(reply, MAKE_SEND_ONCE));
    let watch = MsgArguments { receive_name: port, notify, ..Task::arguments(MsgOptions::RECEIVE_NOTIFY) };
    let request = system.run(server.receive_with(watch)).unwrap();
    let kind = PortType::SEND_ONCE | PortType::DEAD_NAME_REQUEST;
    assert_eq!(server.kind(request.remote), Ok(kind));
    client.space.destroy(reply).unwrap();
    let told = server.receive(notify);
    assert_eq!((told.id, single(&told, 15)), (DEAD_NAME, request.remote.0));
    client.send(&to(sends, COPY_SEND).id(8));
    let watch = MsgArguments { notify: request.remote, ..watch };
    let error = system.run(server.receive_with(watch)).unwrap_err();
    assert_eq!(error.kind, MsgErrorKind::ReceiveInvalidNotify);
    assert_eq!(system.run(server.buffer()).id, 8);
}
