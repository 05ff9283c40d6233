//! The calls on tasks and threads.

use mach::ipc::Name;
use mach::machine::ThreadState;
use message::Memory;

use crate::call;
use crate::support::{BUFFER, Program, STARTED, System, status};

async fn thread_named(program: &Program, name: u64) -> std::sync::Arc<crate::support::Thread> {
    let found = program.task.threads().into_iter().find(|thread| {
        let own = program.name(thread.own_right());
        program.space().deallocate(Name(own as u32)).unwrap();
        own == name
    });
    found.unwrap()
}

#[test]
fn a_task_makes_a_child_and_ends_it() {
    let system = System::new();
    system.run(async {
        let program = system.program().await;
        let own = program.own();
        let child = call!(program, mach, own, task_create(1)).unwrap();
        assert_eq!(system.kernel().host().tasks().len(), 2);
        assert_eq!(call!(program, mach, child, task_suspend()), Ok(()));
        let info = call!(program, mach, child, task_info(1)).unwrap();
        assert_eq!(info.len(), 30);
        assert_eq!((info[0], info[2]), (1, 16 * 4096), "suspend count and size");
        assert_eq!(u64::from(info[14]) | u64::from(info[15]) << 32, STARTED, "time of creation");
        assert_eq!(call!(program, mach, child, task_resume()), Ok(()));
        assert_eq!(call!(program, mach, child, task_resume()), status(5));
        assert_eq!(call!(program, mach, child, task_info(99)), status(4));

        // The child's port dies with the child.
        let notify = program.port();
        let right = u64::from(notify.0);
        call!(program, mach_port, own, mach_port_request_notification(child as u32, 72, 0, right, 21))
            .unwrap();
        assert_eq!(call!(program, mach, child, task_terminate()), Ok(()));
        assert_eq!(program.notification(notify).await, Ok((72, child as u32)));
        assert_eq!(call!(program, mach, child, task_suspend()), Err(message::Error::Transport(0x1000_0003)));
        assert_eq!(system.kernel().host().tasks().len(), 1);
    });
}

#[test]
fn a_thread_gets_its_registers_and_runs() {
    let system = System::new();
    system.run(async {
        let program = system.program().await;
        let own = program.own();
        let name = call!(program, mach, own, thread_create()).unwrap();
        let thread = thread_named(&program, name).await;
        assert!(system.begun.0.lock().unwrap().contains_key(&thread.id()));
        let info = call!(program, mach, name, thread_info(1)).unwrap();
        assert_eq!((info.len(), info[11], info[13]), (31, 2, 1), "stopped, suspended once");

        let state = call!(program, mach, name, thread_get_state(1)).unwrap();
        assert_eq!(state.len(), 42);
        let mut words = state.to_vec();
        (words[32], words[38], words[22]) = (0x4000, 0x7000, 0x6000);
        assert_eq!(call!(program, mach, name, thread_set_state(1, &words)), Ok(()));
        assert_eq!(call!(program, mach, name, thread_set_state(7, &[1, 2, 3, 4])), Ok(()));
        let now = thread.state().await.unwrap();
        let expected = ThreadState {
            rip: 0x4000,
            rsp: 0x7000,
            fs_base: 1 | 2 << 32,
            gs_base: 3 | 4 << 32,
            ..ThreadState::default()
        };
        assert_eq!(now, expected, "the second stack pointer counts");
        assert_eq!(call!(program, mach, name, thread_set_state(1, &[0; 41])), status(4));
        assert_eq!(call!(program, mach, name, thread_get_state(44)), status(4));
        let extended = call!(program, mach, name, thread_get_state(8)).unwrap();
        assert_eq!(extended.len(), 4 + 832 / 4);
        assert_eq!(call!(program, mach, name, thread_set_state(8, &extended)), Ok(()));

        assert_eq!(call!(program, mach, name, thread_resume()), Ok(()));
        assert_eq!(call!(program, mach, name, thread_resume()), status(5));
        let threads = call!(program, mach, own, task_threads()).unwrap();
        assert_eq!(program.words(threads).await, [name as u32]);
        assert_eq!(call!(program, mach, name, thread_abort()), Ok(()));
        assert_eq!(call!(program, mach, name, thread_terminate()), Ok(()));
        assert_eq!(program.space().port_type(Name(name as u32)).unwrap().bits(), 1 << 20, "a dead name");
    });
}

#[test]
fn special_ports_are_set_and_inherited() {
    let system = System::new();
    system.run(async {
        let program = system.program().await;
        let own = program.own();
        let server = u64::from(program.port_to_send().0);
        assert_eq!(call!(program, mach, own, task_get_special_port(4)), Ok(0));
        for which in [3, 4] {
            assert_eq!(call!(program, mach, own, task_set_special_port(which, server)), Ok(()));
        }
        assert_eq!(call!(program, mach, own, task_get_special_port(1)), Ok(own));
        assert_eq!(call!(program, mach, own, task_get_special_port(2)), status(4));
        program.task.map().copyout(BUFFER + 4096, &(server as u32).to_le_bytes()).await.unwrap();
        let rights = Memory { address: BUFFER + 4096, count: 1, deallocate: false };
        assert_eq!(call!(program, mach, own, mach_ports_register(rights)), Ok(()));

        let child = call!(program, mach, own, task_create(0)).unwrap();
        for which in [3, 4] {
            assert_eq!(call!(program, mach, child, task_get_special_port(which)), Ok(server));
        }
        let rights = call!(program, mach, child, mach_ports_lookup()).unwrap();
        assert_eq!(program.words(rights).await, [server as u32, 0, 0, 0]);
        let thread = call!(program, mach, child, thread_create()).unwrap();
        assert_eq!(call!(program, mach, thread, thread_get_special_port(3)), Ok(0));
        assert_eq!(call!(program, mach, thread, thread_set_special_port(3, server)), Ok(()));
        assert_eq!(call!(program, mach, thread, thread_get_special_port(3)), Ok(server));
        assert_eq!(call!(program, mach, thread, thread_get_special_port(1)), Ok(thread));
        assert_eq!(call!(program, mach, thread, thread_get_special_port(4)), status(4));
    });
}

#[test]
fn emulated_calls_are_inherited_until_a_task_changes_its_own() {
    let system = System::new();
    system.run(async {
        let program = system.program().await;
        let own = program.own();
        assert_eq!(call!(program, mach, own, task_set_emulation(0x4000, 7)), Ok(()));
        let vector: Vec<u8> = [1u64, 2, 0].iter().flat_map(|word| word.to_le_bytes()).collect();
        program.task.map().copyout(BUFFER + 4096, &vector).await.unwrap();
        let memory = Memory { address: BUFFER + 4096, count: 3, deallocate: false };
        assert_eq!(call!(program, mach, own, task_set_emulation_vector(-2i32 as u32, memory)), Ok(()));
        let told = |number| program.task.emulated(number);
        assert_eq!([-3, -2, -1, 0, 7, 8].map(told), [None, Some(1), Some(2), None, Some(0x4000), None]);
        assert_eq!(call!(program, mach, own, task_set_emulation(1, 1 << 30)), status(4));

        let child = call!(program, mach, own, task_create(0)).unwrap();
        assert_eq!(call!(program, mach, child, task_set_emulation(0, 7)), Ok(()));
        let (first, entries) = call!(program, mach, child, task_get_emulation_vector()).unwrap();
        assert_eq!((first as i32, entries.count), (-2, 10));
        assert_eq!(told(7), Some(0x4000));
    });
}

#[test]
fn a_port_of_another_kind_is_an_invalid_argument_and_an_unknown_call_a_bad_id() {
    let system = System::new();
    system.run(async {
        let program = system.program().await;
        let own = program.own();
        let thread = call!(program, mach, own, thread_create()).unwrap();
        assert_eq!(call!(program, mach, thread, task_suspend()), status(4));
        assert_eq!(call!(program, mach, own, thread_suspend()), status(4));
        assert_eq!(call!(program, mach_port, thread, mach_port_allocate(1)), status(16));
        let host = program.name(system.kernel().host_right());
        assert_eq!(call!(program, mach, host, task_suspend()), status(4));
        // An interface that kernel objects do not serve.
        let raised = call!(program, exc, own, exception_raise(own, own, 1, 2, 3));
        assert_eq!(raised, status(-303));
    });
}
