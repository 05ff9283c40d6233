//! The calls on names: the interface `mach_port`.

use mach::ipc::Name;

use crate::call;
use crate::support::{System, status};

const RECEIVE: u32 = 1;
const SET: u32 = 3;
const DEAD: u32 = 4;
const MAKE_SEND: u32 = 20;
const MAKE_SEND_ONCE: u32 = 21;
const DEAD_NAME: u32 = 72;

#[test]
fn a_task_makes_uses_and_destroys_names() {
    let system = System::new();
    system.run(async {
        let program = system.program().await;
        let own = program.own();
        let name = call!(program, mach_port, own, mach_port_allocate(RECEIVE)).unwrap();
        assert_eq!(call!(program, mach_port, own, mach_port_type(name)), Ok(1 << 17));
        assert_eq!(call!(program, mach_port, own, mach_port_allocate(9)), status(18));
        assert_eq!(call!(program, mach_port, own, mach_port_allocate_name(DEAD, 77)), Ok(()));
        assert_eq!(call!(program, mach_port, own, mach_port_allocate_name(DEAD, 77)), status(13));
        assert_eq!(call!(program, mach_port, own, mach_port_rename(77, 78)), Ok(()));
        assert_eq!(call!(program, mach_port, own, mach_port_get_refs(78, DEAD)), Ok(1));
        assert_eq!(call!(program, mach_port, own, mach_port_mod_refs(78, DEAD, 2)), Ok(()));
        assert_eq!(call!(program, mach_port, own, mach_port_get_refs(78, DEAD)), Ok(3));
        assert_eq!(call!(program, mach_port, own, mach_port_mod_refs(78, DEAD, -4i32 as u32)), status(18));
        assert_eq!(call!(program, mach_port, own, mach_port_deallocate(78)), Ok(()));
        assert_eq!(call!(program, mach_port, own, mach_port_destroy(78)), Ok(()));
        assert_eq!(call!(program, mach_port, own, mach_port_type(78)), status(15));

        let (names, kinds) = call!(program, mach_port, own, mach_port_names()).unwrap();
        let (names, kinds) = (program.words(names).await, program.words(kinds).await);
        assert_eq!(names.len(), kinds.len());
        let known: Vec<(Name, u32)> =
            program.space().names().unwrap().iter().map(|(name, kind)| (*name, kind.bits())).collect();
        let told: Vec<(Name, u32)> = names.into_iter().map(Name).zip(kinds).collect();
        assert_eq!(told, known);
    });
}

#[test]
fn ports_have_limits_counts_sets_and_payloads() {
    let system = System::new();
    system.run(async {
        let program = system.program().await;
        let own = program.own();
        let port = program.port().0;
        let set = call!(program, mach_port, own, mach_port_allocate(SET)).unwrap();
        assert_eq!(call!(program, mach_port, own, mach_port_set_qlimit(port, 3)), Ok(()));
        assert_eq!(call!(program, mach_port, own, mach_port_set_qlimit(port, 1000)), status(18));
        assert_eq!(call!(program, mach_port, own, mach_port_set_mscount(port, 7)), Ok(()));
        assert_eq!(call!(program, mach_port, own, mach_port_set_seqno(port, 9)), Ok(()));
        assert_eq!(call!(program, mach_port, own, mach_port_move_member(port, set)), Ok(()));
        let state = call!(program, mach_port, own, mach_port_get_receive_status(port)).unwrap();
        assert_eq!(state, [set, 9, 7, 3, 0, 0, 0, 0, 0]);
        let members = call!(program, mach_port, own, mach_port_get_set_status(set)).unwrap();
        assert_eq!(program.words(members).await, [port]);
        assert_eq!(call!(program, mach_port, own, mach_port_move_member(port, 0)), Ok(()));
        assert_eq!(call!(program, mach_port, own, mach_port_move_member(port, 0)), status(12));
        let none = call!(program, mach_port, own, mach_port_get_set_status(set)).unwrap();
        assert_eq!((none.address, none.count), (0, 0));
        assert_eq!(call!(program, mach_port, own, mach_port_set_protected_payload(port, 1 << 40)), Ok(()));
        assert_eq!(call!(program, mach_port, own, mach_port_clear_protected_payload(port)), Ok(()));
        assert_eq!(call!(program, mach_port, own, mach_port_clear_protected_payload(99)), status(15));
    });
}

#[test]
fn rights_travel_between_tasks_by_insert_and_extract() {
    let system = System::new();
    system.run(async {
        let (program, other) = (system.program().await, system.program().await);
        let to = program.name_of(&other);
        let port = program.port();
        // The other task gets a send right under a name that the caller chooses.
        let port_name = u64::from(port.0);
        assert_eq!(call!(program, mach_port, to, mach_port_insert_right(50, port_name, MAKE_SEND)), Ok(()));
        assert_eq!(other.space().port_type(Name(50)).unwrap().bits(), 1 << 16);
        assert_eq!(
            call!(program, mach_port, to, mach_port_insert_right(50, port_name, MAKE_SEND_ONCE)),
            status(13)
        );
        // The caller takes it back: it is a reference to the name of the receive right.
        let (back, kind) = call!(program, mach_port, to, mach_port_extract_right(50, 17)).unwrap();
        assert_eq!((back, kind), (port_name, 17));
        assert_eq!(other.space().port_type(Name(50)), Err(mach::KernError::InvalidName));
        // A receive right is extracted, and the port moves.
        let moved = other.port();
        let (name, kind) = call!(program, mach_port, to, mach_port_extract_right(moved.0, 16)).unwrap();
        assert_eq!(kind, 16);
        assert_eq!(program.space().port_type(Name(name as u32)).unwrap().bits(), 1 << 17);
        assert_eq!(call!(program, mach_port, to, mach_port_extract_right(50, 99)), status(18));
    });
}

#[test]
fn a_notification_is_asked_for_and_the_earlier_request_comes_back() {
    let system = System::new();
    system.run(async {
        let program = system.program().await;
        let own = program.own();
        let (port, notify) = (program.port_to_send(), program.port());
        let right = u64::from(notify.0);
        let first = call!(
            program,
            mach_port,
            own,
            mach_port_request_notification(port.0, DEAD_NAME, 0, right, MAKE_SEND_ONCE)
        );
        assert_eq!(first, Ok(0));
        let previous = call!(
            program,
            mach_port,
            own,
            mach_port_request_notification(port.0, DEAD_NAME, 0, right, MAKE_SEND_ONCE)
        )
        .unwrap();
        assert_eq!(program.space().port_type(Name(previous as u32)).unwrap().bits(), 1 << 18);
        program.space().modify_references(port, mach::ipc::PortRight::Receive, -1).unwrap();
        assert_eq!(program.notification(notify).await, Ok((DEAD_NAME, port.0)));
    });
}
