//! The calls on the host, processors and processor sets, and on scheduling.

use mach::ipc::Name;
use mach::thread::Policy;

use crate::call;
use crate::support::{Program, STARTED, System, status};

/// The task's names for the host's port and for its control.
fn hosts(system: &System, program: &Program) -> (u64, u64) {
    (program.name(system.kernel().host_right()), program.name(system.kernel().host_control_right()))
}

#[test]
fn the_host_tells_what_it_is_and_what_time_it_is() {
    let system = System::new();
    system.run(async {
        let program = system.program().await;
        let (host, control) = hosts(&system, &program);
        let basic = call!(program, mach_host, host, host_info(1)).unwrap();
        assert_eq!(basic[..], [2, 2, 512 * 4096, 0, 19, 1]);
        assert_eq!(call!(program, mach_host, host, host_info(2)).unwrap()[..], [0, 1]);
        assert_eq!(call!(program, mach_host, host, host_info(3)).unwrap()[..], [1, 10]);
        assert_eq!(call!(program, mach_host, host, host_info(4)).unwrap()[..], [0, 0, 0, 2000, 2000, 2000]);
        assert_eq!(call!(program, mach_host, host, host_info(5)), status(4));
        assert_eq!(call!(program, mach_host, program.own(), host_info(1)), status(22));
        let version = call!(program, mach_host, host, host_get_kernel_version()).unwrap();
        assert!(version.starts_with(b"Macadamia "));

        system.machine.advance(1_500_000);
        assert_eq!(call!(program, mach_host, host, host_get_time()), Ok([STARTED + 1, 500_000]));
        assert_eq!(call!(program, mach_host, host, host_get_time64()), Ok([STARTED + 1, 500_000_000]));
        assert_eq!(call!(program, mach_host, host, host_get_uptime64()), Ok([1, 500_000_000]));
        assert_eq!(call!(program, mach_host, host, host_set_time(&[5, 6])), status(22));
        assert_eq!(call!(program, mach_host, control, host_set_time(&[5, 6])), Ok(()));
        assert_eq!(call!(program, mach_host, control, host_set_time(&[5, 1_000_000])), status(4));
        assert_eq!(call!(program, mach_host, host, host_get_time()), Ok([5, 6]));
        assert_eq!(call!(program, mach_host, control, host_set_time64(&[7, 8000])), Ok(()));
        assert_eq!(call!(program, mach_host, control, host_adjust_time(&[1, 0])), Ok([0, 0]));
        system.machine.advance(200_000);
        assert_eq!(call!(program, mach_host, host, host_get_time()), Ok([7, 201_008]));
        let back = [0, -500_000i64 as u64];
        assert_eq!(call!(program, mach_host, control, host_adjust_time64(&back)), Ok([0, 999_000_000]));
        assert_eq!(call!(program, mach_host, control, host_reboot(0)), status(5));
    });
}

#[test]
fn processors_are_assigned_to_sets() {
    let system = System::new();
    system.run(async {
        let program = system.program().await;
        let (host, control) = hosts(&system, &program);
        assert_eq!(call!(program, mach_host, host, host_processors()), status(22));
        let processors = call!(program, mach_host, control, host_processors()).unwrap();
        let processors = program.words(processors).await;
        assert_eq!(processors.len(), 2);
        let second = u64::from(processors[1]);
        let default = call!(program, mach_host, host, processor_set_default()).unwrap();
        assert_eq!(call!(program, mach_host, host, processor_set_create()), status(22));
        let (set, name) = call!(program, mach_host, control, processor_set_create()).unwrap();
        assert_eq!(call!(program, mach_host, second, processor_get_assignment()), Ok(default));
        assert_eq!(call!(program, mach_host, second, processor_assign(name, 1)), status(4));
        assert_eq!(call!(program, mach_host, second, processor_assign(set, 1)), Ok(()));
        assert_eq!(call!(program, mach_host, second, processor_get_assignment()), Ok(name));
        let names = call!(program, mach_host, name, processor_set_processors()).unwrap();
        let names = program.words(names).await;
        assert!(names.len() == 1 && names[0] != processors[1], "a name is not the control");
        let named = u64::from(names[0]);
        let (to_host, info) = call!(program, mach_host, named, processor_info(1)).unwrap();
        assert_eq!((to_host, &info[..]), (host, &[19, 1, 1, 1, 0][..]));
        assert_eq!(call!(program, mach_host, named, processor_exit()), status(4));
        assert_eq!(call!(program, mach_host, second, processor_exit()), status(5));
        assert_eq!(call!(program, mach_host, second, processor_start()), status(5));
        assert_eq!(call!(program, mach_host, second, processor_control(&[1])), status(5));
        let sets = call!(program, mach_host, host, host_processor_sets()).unwrap();
        assert_eq!(program.words(sets).await, [default as u32, name as u32]);
        assert_eq!(call!(program, mach_host, control, host_processor_set_priv(name)), Ok(set));
        let first = u64::from(processors[0]);
        assert_eq!(call!(program, mach_host, first, processor_assign(set, 1)), status(5));

        assert_eq!(call!(program, mach_host, set, processor_set_destroy()), Ok(()));
        assert_eq!(program.space().port_type(Name(set as u32)).unwrap().bits(), 1 << 20);
        assert_eq!(call!(program, mach_host, second, processor_get_assignment()), Ok(default));
        let control_of_default =
            call!(program, mach_host, control, host_processor_set_priv(default)).unwrap();
        assert_eq!(call!(program, mach_host, control_of_default, processor_set_destroy()), status(5));
    });
}

#[test]
fn tasks_and_threads_move_between_sets_and_keep_to_their_limits() {
    let system = System::new();
    system.run(async {
        let program = system.program().await;
        let own = program.own();
        let (host, control) = hosts(&system, &program);
        let default = call!(program, mach_host, host, processor_set_default()).unwrap();
        let (set, name) = call!(program, mach_host, control, processor_set_create()).unwrap();
        let thread = call!(program, mach, own, thread_create()).unwrap();
        assert_eq!(call!(program, mach_host, thread, thread_get_assignment()), Ok(default));
        assert_eq!(call!(program, mach_host, own, task_assign(set, 1)), Ok(()));
        assert_eq!(call!(program, mach_host, thread, thread_get_assignment()), Ok(name));
        assert_eq!(call!(program, mach_host, own, task_get_assignment()), Ok(name));
        let tasks = call!(program, mach_host, set, processor_set_tasks()).unwrap();
        assert_eq!(program.words(tasks).await, [own as u32]);
        let threads = call!(program, mach_host, set, processor_set_threads()).unwrap();
        assert_eq!(program.words(threads).await, [thread as u32]);
        let (_, info) = call!(program, mach_host, name, processor_set_info(1)).unwrap();
        assert_eq!(info[..3], [0, 1, 1]);

        assert_eq!(call!(program, mach_host, thread, thread_priority(20, 1)), Ok(()));
        assert_eq!(call!(program, mach_host, thread, thread_priority(19, 0)), status(5));
        assert_eq!(call!(program, mach_host, thread, thread_priority(32, 0)), status(4));
        assert_eq!(call!(program, mach_host, thread, thread_max_priority(name, 5)), status(4));
        assert_eq!(call!(program, mach_host, thread, thread_max_priority(set, 5)), Ok(()));
        assert_eq!(call!(program, mach_host, thread, thread_policy(2, 30)), Ok(()));
        let of_thread = program.task.threads().remove(0);
        assert_eq!(of_thread.info().unwrap().policy, Policy::FixedPriority { slice: 30_000 });
        let info = call!(program, mach, thread, thread_info(2)).unwrap();
        assert_eq!(info[..6], [2, 30, 20, 5, 20, u32::MAX]);
        assert_eq!(call!(program, mach_host, set, processor_set_policy_disable(2, 1)), Ok(()));
        assert_eq!(of_thread.info().unwrap().policy, Policy::TimeSharing);
        assert_eq!(call!(program, mach_host, thread, thread_policy(2, 30)), status(5));
        assert_eq!(call!(program, mach_host, set, processor_set_policy_enable(2)), Ok(()));
        assert_eq!(call!(program, mach_host, set, processor_set_max_priority(22, 1)), Ok(()));
        let (_, info) = call!(program, mach_host, name, processor_set_info(2)).unwrap();
        assert_eq!(info[..], [3, 22]);
        assert_eq!(of_thread.info().unwrap().base, 22);

        assert_eq!(call!(program, mach_host, own, task_priority(25, 1)), Ok(()));
        assert_eq!(of_thread.info().unwrap().base, 25);
        assert_eq!(call!(program, mach_host, own, task_priority(3, 0)), status(5));
        assert_eq!(call!(program, mach_host, host, task_max_priority(own, 28, 1, 1)), Ok(()));
        assert_eq!(call!(program, mach_host, host, task_max_priority(own, 20, 0, 0)), status(5));
        assert_eq!(call!(program, mach_host, control, task_max_priority(own, 20, 0, 0)), Ok(()));
        assert_eq!(of_thread.info().unwrap().base, 28);
        assert_eq!(call!(program, mach_host, thread, thread_assign_default()), Ok(()));
        assert_eq!(call!(program, mach_host, thread, thread_assign(set)), Ok(()));
        assert_eq!(call!(program, mach_host, own, task_assign_default(1)), Ok(()));
        assert_eq!(call!(program, mach_host, thread, thread_get_assignment()), Ok(default));
        assert_eq!(call!(program, mach_host, thread, thread_depress_abort()), Ok(()));
    });
}

#[test]
fn memory_is_wired_with_the_control_of_the_host() {
    let system = System::new();
    system.run(async {
        let program = system.program().await;
        let (own, (host, control)) = (program.own(), hosts(&system, &program));
        let address = call!(program, mach, own, vm_allocate(0, 8192, 1)).unwrap();
        assert_eq!(call!(program, mach_host, host, vm_wire(own, address, 8192, 1)), status(22));
        assert_eq!(call!(program, mach_host, control, vm_wire(own, address, 8192, 1)), Ok(()));
        assert_eq!(system.kernel().host().vm().statistics().wired, 2);
        assert_eq!(call!(program, mach_host, control, vm_wire(own, address, 8192, 0)), Ok(()));
        assert_eq!(system.kernel().host().vm().statistics().wired, 0);
        let thread = call!(program, mach, own, thread_create()).unwrap();
        assert_eq!(call!(program, mach_host, control, thread_wire(thread, 1)), Ok(()));
        assert_eq!(call!(program, mach_host, control, thread_wire(thread, 0)), Ok(()));
    });
}
