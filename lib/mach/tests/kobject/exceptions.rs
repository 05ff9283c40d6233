//! Exceptions by port.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use mach::ipc::typed::MsgOptions;
use mach::ipc::{Disposition, Name, PortRight};
use mach::machine::{PageFault, ProcessorException, Protection};
use mach::thread::{Exception, Handled};
use mach::{KernError, kobject};

use crate::call;
use crate::support::{Program, System, Thread};

const SUCCESS: u32 = 0;
const FAILURE: u32 = 5;

/// What a program finds in an exception message: the reply port, and thread, task, exception, code
/// and subcode.
async fn receive(program: &Program, port: Name) -> (u32, [u64; 5]) {
    let mut bytes = [0; 256];
    let options = MsgOptions::RECEIVE | MsgOptions::RECEIVE_TIMEOUT;
    program.message(options, &mut bytes, 0, port).await.unwrap();
    let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!((word(4), word(28)), (112, 2400), "size and id");
    assert_eq!(word(0), 0x8000_0000 | 17 << 8 | 18);
    let descriptor = |name: u64, bits: u64| name | bits << 8 | 1 << 29 | 1 << 32;
    for (at, found) in [(32, (17, 64)), (48, (17, 64)), (64, (2, 32)), (80, (2, 32)), (96, (11, 64))] {
        assert_eq!(long(at), descriptor(found.0, found.1), "descriptor at {at}");
    }
    (word(8), [40, 56, 72, 88, 104].map(long))
}

/// Replies to an exception message.
async fn reply(program: &Program, to: u32, result: u32) {
    let mut bytes = [0; 48];
    for (at, word) in
        [(0, 18), (4, 48), (8, to), (28, 2500), (32, 2 | 32 << 8 | 1 << 29), (36, 1), (40, result)]
    {
        bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
    program.message(MsgOptions::SEND, &mut bytes, 48, Name::NULL).await.unwrap();
}

/// Polls a future once, which must not be ready.
fn waits<T>(future: &mut std::pin::Pin<Box<impl Future<Output = T>>>) {
    assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

fn ready<T>(future: &mut std::pin::Pin<Box<impl Future<Output = T>>>) -> T {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waits"),
    }
}

/// A program with a thread, its name, and ports for the exceptions of the thread and of the task.
async fn victim(system: &System, program: &Program) -> (Arc<Thread>, u64, [Name; 2]) {
    let own = program.own();
    let name = call!(*program, mach, own, thread_create()).unwrap();
    let thread = program.task.threads().remove(0);
    let ports = [program.port_to_send(), program.port_to_send()];
    let _ = system;
    call!(*program, mach, name, thread_set_special_port(3, u64::from(ports[0].0))).unwrap();
    call!(*program, mach, own, task_set_special_port(3, u64::from(ports[1].0))).unwrap();
    (thread, name, ports)
}

fn division() -> Exception {
    Exception::of_processor(&ProcessorException { vector: 0, error: 0, ip: 0x1000 })
}

#[test]
fn the_port_of_the_thread_is_asked_first_and_then_that_of_the_task() {
    let system = System::new();
    system.run(async {
        let program = system.program().await;
        let (thread, name, [own, of_task]) = victim(&system, &program).await;
        let task = program.own();
        let exception = division();
        let mut raised = Box::pin(kobject::raise(&thread, &exception));
        waits(&mut raised);
        let (to, content) = receive(&program, own).await;
        assert_eq!(content, [name, task, 3, 1, 0]);
        reply(&program, to, FAILURE).await;
        waits(&mut raised);
        let (to, content) = receive(&program, of_task).await;
        assert_eq!(content, [name, task, 3, 1, 0]);
        reply(&program, to, SUCCESS).await;
        assert_eq!(ready(&mut raised), Handled::Resume);
    });
}

#[test]
fn a_server_that_drops_the_right_to_reply_or_its_port_has_not_handled_the_exception() {
    let system = System::new();
    system.run(async {
        let program = system.program().await;
        let (thread, _, [own, of_task]) = victim(&system, &program).await;
        let fault = PageFault { address: 0x5008, access: Protection::WRITE, ip: 0x1000 };
        let exception = Exception::of_fault(&fault, KernError::ProtectionFailure);
        let mut raised = Box::pin(kobject::raise(&thread, &exception));
        waits(&mut raised);
        let (to, content) = receive(&program, own).await;
        assert_eq!(content[2..], [1, 2, 0x5008]);
        program.space().deallocate(Name(to)).unwrap();
        waits(&mut raised);
        program.space().modify_references(of_task, PortRight::Receive, -1).unwrap();
        assert_eq!(ready(&mut raised), Handled::Pass);
    });
}

#[test]
fn an_abort_ends_the_wait_and_the_thread_goes_on() {
    let system = System::new();
    system.run(async {
        let program = system.program().await;
        let (thread, name, [own, _]) = victim(&system, &program).await;
        let exception = division();
        let mut raised = Box::pin(kobject::raise(&thread, &exception));
        waits(&mut raised);
        assert_eq!(call!(program, mach, name, thread_abort()), Ok(()));
        assert_eq!(ready(&mut raised), Handled::Resume);
        // The right to reply is to a port that is gone.
        let (to, _) = receive(&program, own).await;
        assert_eq!(to, u32::MAX);
    });
}

#[test]
fn a_reply_with_rights_or_another_id_does_not_handle_the_exception() {
    let system = System::new();
    system.run(async {
        let program = system.program().await;
        let (thread, _, [own, _]) = victim(&system, &program).await;
        program.task.map(); // the task has memory for messages
        let exception = division();
        let mut raised = Box::pin(kobject::raise(&thread, &exception));
        waits(&mut raised);
        let (to, _) = receive(&program, own).await;
        // A receive right in the reply ends, and its port dies.
        let port = program.port();
        let watched = program.space().extract_right(port, Disposition::MakeSend).unwrap();
        let watched = program.space().copyout_right(watched).unwrap();
        let mut bytes = [0; 64];
        for (at, word) in [
            (0, 0x8000_0012u32),
            (4, 48),
            (8, to),
            (28, 2500),
            (32, 16 | 64 << 8 | 1 << 29),
            (36, 1),
            (40, port.0),
        ] {
            bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        program.message(MsgOptions::SEND, &mut bytes, 48, Name::NULL).await.unwrap();
        waits(&mut raised);
        assert_eq!(program.space().port_type(watched).unwrap().bits(), 1 << 20, "a dead name");
        drop(raised);
    });
}

#[test]
fn without_an_exception_port_nothing_handles_the_exception() {
    let system = System::new();
    system.run(async {
        let program = system.program().await;
        call!(program, mach, program.own(), thread_create()).unwrap();
        let thread = program.task.threads().remove(0);
        assert_eq!(kobject::raise(&thread, &division()).await, Handled::Pass);
    });
}
