//! The calls that GNU Mach has in addition, those for debuggers and those for PCs.

use std::task::{Context, Waker};

use mach::ipc::Name;
use message::Error;

use crate::call;
use crate::support::{Program, System, status};

/// An address space's word that tests wait for.
async fn word(program: &Program, value: u32) -> u64 {
    let address = call!(*program, mach, program.own(), vm_allocate(0, 4096, 1)).unwrap();
    program.task.map().copyout(address, &value.to_le_bytes()).await.unwrap();
    address
}

macro_rules! pending {
    ($future:expr) => {
        assert!($future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending())
    };
}

/// Makes another program in the task, with a buffer and a thread's interruption of its own.
async fn waiting(program: &Program, own: u64, address: u64, msec: u32, flags: u32) -> Result<(), Error> {
    call!(*program, gnumach, own, gsync_wait(address, 7, 0, msec, flags))
}

#[test]
fn a_caller_waits_for_a_word_until_it_is_woken() {
    let system = System::new();
    system.run(async {
        let (program, other) = (system.program().await, system.program().await);
        let own = program.own();
        let address = word(&program, 7).await;
        let to = other.name_of(&program);
        assert_eq!(waiting(&program, own, address + 4, 0, 0).await, status(4), "the word has another value");
        assert_eq!(waiting(&program, own, address + 1, 0, 0).await, status(1));
        assert_eq!(waiting(&program, own, 0x7000_0000, 0, 0).await, status(1));
        // It is woken by another task, which also stores a value.
        let mut wait = Box::pin(waiting(&program, own, address, 0, 0));
        pending!(wait);
        assert_eq!(call!(other, gnumach, to, gsync_wake(address, 9, 16)), Ok(()));
        assert_eq!(wait.await, Ok(()));
        assert_eq!(program.task.map().load_u32(address).await, Ok(9));
        // It is moved to another word, and woken there.
        let second = word(&program, 7).await;
        let mut wait = Box::pin(waiting(&program, own, second, 0, 0));
        pending!(wait);
        assert_eq!(call!(other, gnumach, to, gsync_requeue(second, address, 0, 8)), Ok(()));
        assert_eq!(call!(other, gnumach, to, gsync_wake(second, 0, 8)), Ok(()));
        pending!(wait);
        assert_eq!(call!(other, gnumach, to, gsync_wake(address, 0, 0)), Ok(()));
        assert_eq!(wait.await, Ok(()));
        // A time-out and an interruption end the wait.
        assert_eq!(waiting(&program, own, second, 5, 4).await, status(27));
        let mut wait = Box::pin(waiting(&program, own, second, 0, 0));
        pending!(wait);
        assert!(program.interruption.interrupt());
        assert_eq!(wait.await, status(28));
        // A wait that is dropped leaves nothing.
        let mut wait = Box::pin(waiting(&program, own, second, 0, 1));
        pending!(wait);
    });
}

#[test]
fn names_are_kept_and_a_thread_ends_with_what_it_had() {
    let system = System::new();
    system.run(async {
        let program = system.program().await;
        let own = program.own();
        let thread = call!(program, mach, own, thread_create()).unwrap();
        assert_eq!(call!(program, gnumach, thread, thread_get_name()).unwrap()[..], []);
        assert_eq!(call!(program, gnumach, thread, thread_set_name(b"worker")), Ok(()));
        assert_eq!(call!(program, gnumach, thread, thread_get_name()).unwrap()[..], *b"worker");
        assert_eq!(call!(program, gnumach, own, task_set_name(b"program")), Ok(()));
        assert_eq!(program.task.name(), b"program");
        assert_eq!(call!(program, gnumach, own, task_set_essential(1)), Ok(()));
        let reply = program.port();
        let stack = call!(program, mach, own, vm_allocate(0, 4096, 1)).unwrap();
        assert_eq!(
            call!(
                program,
                gnumach,
                thread,
                thread_terminate_release(own, thread as u32, reply.0, stack, 4096)
            ),
            Ok(())
        );
        assert!(program.task.threads().is_empty());
        assert_eq!(program.space().port_type(reply), Err(mach::KernError::InvalidName));
        assert_eq!(program.space().port_type(Name(thread as u32)), Err(mach::KernError::InvalidName));
        assert_eq!(program.task.map().load_u32(stack).await, Err(mach::KernError::InvalidAddress));
    });
}

#[test]
fn a_port_is_told_of_new_tasks() {
    let system = System::new();
    system.run(async {
        let program = system.program().await;
        let (own, control) = (program.own(), program.name(system.kernel().host_control_right()));
        let port = program.port_to_send();
        let right = u64::from(port.0);
        assert_eq!(call!(program, gnumach, own, register_new_task_notification(right, 19)), status(22));
        assert_eq!(call!(program, gnumach, control, register_new_task_notification(right, 19)), Ok(()));
        assert_eq!(call!(program, gnumach, control, register_new_task_notification(right, 19)), status(8));
        let child = call!(program, mach, own, task_create(0)).unwrap();
        assert_eq!(program.notification(port).await, Ok((4400, child as u32)));
    });
}

#[test]
fn memory_is_synchronised_and_wired_as_a_whole() {
    let system = System::new();
    system.run(async {
        let program = system.program().await;
        let (own, control) = (program.own(), program.name(system.kernel().host_control_right()));
        let address = word(&program, 7).await;
        call!(program, mach, own, vm_inherit(address, 4096, 0)).unwrap();
        call!(program, mach, own, task_create(1)).unwrap();
        assert_eq!(call!(program, gnumach, own, vm_msync(address, 4096, 2)), Ok(()));
        assert_eq!(call!(program, gnumach, own, vm_msync(address, 4096, 3)), status(4));
        assert_eq!(call!(program, gnumach, own, vm_msync(0x7000_0000, 4096, 2)), status(3));
        assert_eq!(call!(program, gnumach, control, vm_wire_all(own, 1)), Ok(()));
        assert!(system.kernel().host().vm().statistics().wired >= 17);
        assert_eq!(call!(program, gnumach, control, vm_wire_all(own, 0)), Ok(()));
        assert_eq!(system.kernel().host().vm().statistics().wired, 0);
        assert_eq!(call!(program, gnumach, control, vm_wire_all(own, 2)), status(5));
        let limits = call!(program, gnumach, own, vm_get_size_limit()).unwrap();
        assert_eq!(limits, ((1 << 47) - 4096, (1 << 47) - 4096));
        let cached = call!(program, gnumach, own, vm_cache_statistics()).unwrap();
        assert!(cached[2] + cached[3] > 0);
    });
}

#[test]
fn a_debugger_sees_objects_regions_and_requests() {
    let system = System::new();
    system.run(async {
        let program = system.program().await;
        let own = program.own();
        let thread = call!(program, mach, own, thread_create()).unwrap();
        let host = program.name(system.kernel().host_right());
        let kinds = [(thread, 1), (own, 2), (host, 3), (u64::from(program.port_to_send().0), 0)];
        for (name, kind) in kinds {
            let found = call!(program, mach_debug, own, mach_port_kernel_object(name as u32)).unwrap();
            assert_eq!(found.0, kind);
        }
        assert_eq!(call!(program, mach_debug, own, mach_port_kernel_object(999)), status(15));
        let port = program.port_to_send().0;
        assert_eq!(call!(program, mach_debug, own, mach_port_get_srights(port)), Ok(1));
        assert_eq!(call!(program, mach_debug, own, mach_port_dnrequest_info(port)), Ok((0, 0)));
        let (info, object) = call!(program, mach_debug, own, mach_vm_region_info(0)).unwrap();
        assert_eq!((info[0], info[1], info[2], object), (0x10_0000, 0x11_0000, 3 | 7 << 32, 0));
        let none = call!(program, mach_debug, host, host_slab_info()).unwrap();
        assert!(matches!(none, message::Data::Inline(entries) if entries.is_empty()));
        let size = call!(program, mach_i386, host, i386_get_xstate_size()).unwrap();
        assert_eq!(size, 16 + 832);
        assert_eq!(call!(program, mach_i386, thread, i386_get_gdt(8)), status(4));
        assert_eq!(call!(program, mach_i386, thread, i386_set_gdt(8, &[1, 2])), status(5));
    });
}
