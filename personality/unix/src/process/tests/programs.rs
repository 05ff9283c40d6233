//! Tests of execve(2) and vfork(2).

use super::*;

#[test]
fn exec_makes_its_thread_the_only_one_with_the_process_id() {
    let (system, init) = system();
    let child = fork(&system, init);
    let threads: Vec<Pid> = (0..10).map(|_| spawn_thread(&system, child)).collect();
    catch(&system, child, Signal::USR1);
    let caller = threads[4];
    let mut exec = Task::new({
        let system = system.clone();
        async move { system.become_only_thread(caller).await }
    });
    exec.waits();
    assert_eq!(system.with(|t| t.begin_exec(threads[5])), Err(Error::EAGAIN));
    for tid in threads.iter().copied().chain([child]).filter(|tid| *tid != caller) {
        assert_eq!(deliver(&system, tid), "Exited(0)");
    }
    assert_eq!(exec.finish(), Ok(()));
    let credentials = Arc::new(Credentials::superuser());
    assert_eq!(
        system.with(|t| t.finish_exec(caller, program(b"a-rather-long-name", credentials))),
        Ok(child)
    );
    system.with(|t| {
        assert!(t.thread(caller).is_err());
        assert_eq!(t.thread(child).unwrap().name(), b"a-rather-long-n");
        assert_eq!(t.process(child).unwrap().thread_count(), 1);
        assert!(t.process(child).unwrap().actions().lock().caught().is_empty());
    });
    assert_eq!(deliver(&system, child), "return");
}

#[test]
fn vfork_waits_for_exec_or_exit() {
    let (system, init) = system();
    for executes in [true, false] {
        let child = system.with(|t| t.create(init, NewThread { vfork: true, ..clone_options() })).unwrap();
        let mut waiting = Task::new({
            let system = system.clone();
            async move { system.wait_vfork(init, child).await }
        });
        waiting.waits();
        match executes {
            true => {
                let done =
                    system.with(|t| t.finish_exec(child, program(b"x", Arc::new(Credentials::superuser()))));
                assert_eq!(done, Ok(child));
            }
            false => drop(exit(&system, child, 0)),
        }
        waiting.finish();
    }
}
