//! Tests that the table's indexes agree with a look at each process, and that their cost does not
//! depend on the number of processes.

use super::*;

proptest::proptest! {
    /// After any sequence of forks, threads, group changes, signals and exits the table is
    /// consistent, and when all processes have ended nothing is left.
    #[test]
    fn the_table_stays_consistent(steps in proptest::collection::vec((0u8..16, proptest::prelude::any::<u16>(), 1u32..=64), 0..150)) {
        let (system, init) = system();
        for (step, which, number) in steps {
            let threads: Vec<Pid> = system.with(|t| t.threads.keys().copied().collect());
            let tid = threads[which as usize % threads.len()];
            let other = threads[(which / 7) as usize % threads.len()];
            let pid = system.with(|t| t.thread(tid).unwrap().pid());
            match step {
                0 | 1 => drop(system.with(|t| t.create(tid, clone_options()))),
                2 => drop(system.with(|t| t.create(tid, NewThread { same_process: true, ..clone_options() }))),
                3 => drop(system.with(|t| t.set_session(pid))),
                4 => drop(system.with(|t| t.set_group(pid, pid, other))),
                10 => drop(system.with(|t| {
                    let target = t.thread(other).unwrap().pid();
                    t.set_group(pid, target, if number > 32 { target } else { pid })
                })),
                11 => drop(system.with(|t| {
                    t.create(tid, NewThread { same_parent: number > 32, exit_signal: None, ..clone_options() })
                })),
                12 => {
                    let options = WaitOptions {
                        ended: number & 1 != 0,
                        stopped: number & 2 != 0,
                        continued: number & 4 != 0,
                        no_hang: true,
                        keep: number & 8 != 0,
                        only_clones: number & 16 != 0,
                        all_kinds: number & 32 != 0,
                        own_only: false,
                    };
                    let which = [WaitFor::Any, WaitFor::Group(other), WaitFor::Process(other)][which as usize % 3];
                    let expected = system.with(|t| model_of_wait(t, pid, which, options));
                    let found = system.with(|t| t.wait_child(pid, which, options));
                    proptest::prop_assert_eq!(found.map(|report| report.map(|report| (report.pid, report.event))), expected);
                }
                13 => {
                    let target = system.with(|t| t.thread(other).unwrap().pid());
                    let signal = if number > 32 { Signal::STOP } else { Signal::CONT };
                    let _ = kill(&system, tid, target, signal);
                }
                5 | 6 => {
                    let target = system.with(|t| t.thread(other).unwrap().pid());
                    let _ = kill(&system, tid, target, Signal::new(number).unwrap());
                }
                7 => drop(wait(&system, pid, any())),
                8 => drop(system.with(|t| t.set_mask(tid, SignalSet::from_bits(u64::from(which) << 8)))),
                _ => drop(deliver(&system, tid)),
            }
            system.with(|t| check(t));
        }
        loop {
            let threads: Vec<Pid> = system.with(|t| t.threads.keys().copied().filter(|tid| *tid != init).collect());
            let Some(tid) = threads.first() else { break };
            let pid = system.with(|t| t.thread(*tid).unwrap().pid());
            if pid == init {
                system.with(|t| t.exit_thread(*tid, ExitStatus::Exited(0)));
                continue;
            }
            system.with(|t| t.begin_exit(pid, ExitStatus::Exited(0)));
            system.with(|t| t.exit_thread(*tid, ExitStatus::Exited(0)));
        }
        while wait(&system, init, WaitOptions { all_kinds: true, ..any() }).is_ok() {}
        system.with(|t| {
            assert_eq!((t.processes.len(), t.groups.len(), t.sessions.len(), t.users[&0].threads), (1, 1, 1, 1));
            assert_eq!(t.users[&0].signals, t.process(init).unwrap().queued);
        });
    }
}

/// The result of wait according to a model that looks at each child.
fn model_of_wait(
    table: &Table,
    parent: Pid,
    which: WaitFor,
    options: WaitOptions,
) -> crate::Result<Option<(Pid, ChildEvent)>> {
    let eligible: Vec<&Process> = table
        .processes()
        .filter(|child| child.parent() == Some(parent))
        .filter(|child| match which {
            WaitFor::Any => true,
            WaitFor::Process(pid) => child.pid() == pid,
            WaitFor::Group(group) => child.group() == group,
        })
        .filter(|child| {
            let is_clone = child.state.exit_signal != Some(Signal::CHLD);
            options.all_kinds || is_clone == options.only_clones
        })
        .collect();
    let event = |child: &&Process| match (child.phase(), child.state.unreported, child.stop()) {
        (Phase::Zombie(status), ..) => options.ended.then(|| status.event()),
        (_, Some(event @ ChildEvent::Stopped(_)), Stop::Stopped(_)) => options.stopped.then_some(event),
        (_, Some(event @ ChildEvent::Continued), _) => options.continued.then_some(event),
        _ => None,
    };
    if eligible.is_empty() {
        return Err(Error::ECHILD);
    }
    Ok(eligible.iter().find_map(|child| event(child).map(|event| (child.pid(), event))))
}

/// How many members keep a group from being orphaned, by a look at each member.
fn supported(table: &Table, group: Pid) -> usize {
    let supports = |child: &&Process| {
        let parent = child.parent().filter(|parent| *parent != Pid::INIT);
        parent.and_then(|parent| table.process(parent).ok()).is_some_and(|parent| {
            !parent.is_zombie() && parent.group() != group && parent.session() == child.session()
        })
    };
    table.processes().filter(|child| child.group() == group && !child.is_zombie()).filter(supports).count()
}

fn check(table: &Table) {
    for process in table.processes.values() {
        let pid = process.pid;
        let group = &table.groups[&process.group()];
        assert!(group.members.contains(&pid));
        assert_eq!(group.session, process.session());
        assert!(process.threads.iter().all(|tid| table.thread(*tid).unwrap().pid == pid));
        assert_eq!(process.is_zombie(), process.threads.is_empty());
        if let Some(parent) = process.parent() {
            assert!(table.process(parent).unwrap().children().any(|child| child == pid));
        }
        assert!(process.children().all(|child| table.process(child).unwrap().parent() == Some(pid)));
        let pending = |tid: &Pid| table.thread(*tid).unwrap().pending.len();
        let records = process.threads.iter().map(pending).sum::<usize>();
        assert_eq!(process.queued as usize, records + process.pending.len());
    }
    for (id, group) in &table.groups {
        assert!(!group.members.is_empty());
        assert!(group.members.iter().all(|member| table.process(*member).unwrap().group() == *id));
        assert_eq!(group.supported, supported(table, *id), "group {id}");
        let stopped = |member: &&Pid| table.process(**member).unwrap().stop() != Stop::Running;
        assert_eq!(group.stopped, group.members.iter().filter(stopped).count(), "group {id}");
    }
    for (session, count) in &table.sessions {
        assert_eq!(table.groups.values().filter(|group| group.session == *session).count(), *count);
    }
    // Looks at more ids than the steps of the test can allocate.
    for id in (1..300).filter_map(Pid::new) {
        assert_eq!(table.ids.is_used(id), table.id_is_used(id), "id {id}");
    }
    let gone_leaders = table.processes.keys().filter(|pid| !table.threads.contains_key(pid)).count();
    let charged = table.users.values().map(|user| user.threads).sum::<u64>() as usize;
    assert_eq!(charged, table.threads.len() + gone_leaders);
}

/// How many records of processes and threads are looked up by a fork, by the end of the child, by
/// the wait for it, and by moves to another group, if the parent has `siblings` other children.
fn looks(siblings: usize) -> [usize; 4] {
    let (system, init) = system();
    let parent = fork(&system, init);
    system.with(|t| t.set_session(parent)).unwrap();
    for number in 0..siblings {
        let sibling = fork(&system, parent);
        if number % 2 == 0 {
            system.with(|t| t.set_group(sibling, sibling, sibling)).unwrap();
        }
    }
    let counted = |work: &mut dyn FnMut() -> Pid| {
        let all = |t: &mut Table| t.processes.looks() + t.threads.looks();
        let before = system.with(all);
        let pid = work();
        (pid, system.with(all) - before)
    };
    let (child, forking) = counted(&mut || fork(&system, parent));
    let (_, ending) = counted(&mut || {
        exit(&system, child, 3);
        child
    });
    let (_, waiting) = counted(&mut || {
        assert_eq!(wait(&system, parent, any()), Ok(Some((child, ChildEvent::Exited(3)))));
        assert_eq!(wait(&system, parent, any()), Ok(None));
        child
    });
    let (_, moving) = counted(&mut || {
        let job = fork(&system, parent);
        system.with(|t| t.set_group(job, job, job)).unwrap();
        system.with(|t| t.set_group(job, job, parent)).unwrap();
        job
    });
    [forking, ending, waiting, moving]
}

#[test]
fn the_cost_of_fork_exit_and_wait_does_not_depend_on_siblings() {
    assert_eq!(looks(10), looks(1000));
}
